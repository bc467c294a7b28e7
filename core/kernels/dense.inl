// Dense runs of a panel's features (plt/dense_run.hpp): rows of signed bytes, one after the other.
// Included by kernels.inl inside its namespace. Every column adds up feature by feature, so that the sum has the same
// bits as that of a row found by its feature.

/// The sums of Groups groups of columns stay in registers while all features pass.
template <int Groups>
inline void add_dense_groups(const Entry* x, int n, std::uint32_t first, const std::int8_t* weights, std::size_t stride,
                             float* sums) {
#if defined(__AVX512F__)
    if constexpr (Groups % 2 == 0) {
        constexpr int n_wide = Groups / 2;
        __m512 sum[n_wide];
        for (int g = 0; g < n_wide; ++g) sum[g] = _mm512_loadu_ps(sums + 16 * g);
        for (int k = 0; k < n; ++k) {
            const std::int8_t* w = weights + (x[k].feature - first) * stride;
            const __m512 value = _mm512_set1_ps(x[k].value);
#pragma GCC unroll 8
            for (int g = 0; g < n_wide; ++g)
                sum[g] = _mm512_fmadd_ps(value,
                                         _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
                                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + 16 * g)))),
                                         sum[g]);
        }
        for (int g = 0; g < n_wide; ++g) _mm512_storeu_ps(sums + 16 * g, sum[g]);
        return;
    }
#endif
    vfloat sum[Groups];
    for (int g = 0; g < Groups; ++g) sum[g] = load(sums + lanes * g);
    for (int k = 0; k < n; ++k) {
        const std::int8_t* w = weights + (x[k].feature - first) * stride;
        const vfloat value = splat(x[k].value);
#pragma GCC unroll 8
        for (int g = 0; g < Groups; ++g) sum[g] = add_product(sum[g], value, load_weights(w + group_columns * g));
    }
    for (int g = 0; g < Groups; ++g) store(sums + lanes * g, sum[g]);
}

void add_dense(const Entry* x, int n, std::uint32_t first, const std::int8_t* weights, int n_columns, float* sums) {
    static_assert(lanes == group_columns);
    const auto stride = static_cast<std::size_t>(n_columns);
    int c = 0;
    for (; c + 8 * lanes <= n_columns; c += 8 * lanes) add_dense_groups<8>(x, n, first, weights + c, stride, sums + c);
    if (c + 4 * lanes <= n_columns) add_dense_groups<4>(x, n, first, weights + c, stride, sums + c), c += 4 * lanes;
    if (c + 2 * lanes <= n_columns) add_dense_groups<2>(x, n, first, weights + c, stride, sums + c), c += 2 * lanes;
    if (c < n_columns) add_dense_groups<1>(x, n, first, weights + c, stride, sums + c);
}
