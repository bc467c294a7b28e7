// Weights of a tile as signed bytes (plt/train_blocks.hpp). Included by kernels.inl inside its namespace.

template <int Groups>
inline void scan_lines(const float* weights, std::size_t n_lines, const float* ratio, float prune, float* largest,
                       std::uint8_t* bits) {
    vfloat most[Groups];
    for (int g = 0; g < Groups; ++g) most[g] = load(largest + lanes * g);
    for (std::size_t line = 0; line < n_lines; ++line) {
        const float* w = weights + line * (lanes * Groups);
        const float times = ratio ? ratio[line] : 1.0f;
        int above = 0;
#pragma GCC unroll 8
        for (int g = 0; g < Groups; ++g) {
            const vfloat size = absolute(load(w + lanes * g)) * times;
            most[g] = maximum(size, most[g]);  // in this order: what is not a number counts as nothing
            above |= any(size > prune) << g;
        }
        bits[line] = static_cast<std::uint8_t>(above);
    }
    for (int g = 0; g < Groups; ++g) store(largest + lanes * g, most[g]);
}

void freeze_scan(const float* weights, std::size_t n_lines, int stride, const float* ratio, float prune, float* largest,
                 std::uint8_t* bits) {
    static_assert(lanes == group_columns);
    switch (stride / lanes) {
        case 1: return scan_lines<1>(weights, n_lines, ratio, prune, largest, bits);
        case 2: return scan_lines<2>(weights, n_lines, ratio, prune, largest, bits);
        case 3: return scan_lines<3>(weights, n_lines, ratio, prune, largest, bits);
        case 4: return scan_lines<4>(weights, n_lines, ratio, prune, largest, bits);
    }
}

void freeze_to_bytes(const float* weight, float ratio, float prune, const float* times, std::int8_t* byte) {
    const vfloat w = load(weight) * ratio;
    const vfloat kept = absolute(w) > prune ? w * load(times) : vfloat{};
    // Added to 1.5 * 2^23, a number ends in its lowest bits, rounded to the nearest.
    const vint rounded = (vint)(kept + 12582912.0f);
#if defined(__AVX512VL__)
    _mm_storel_epi64(reinterpret_cast<__m128i*>(byte), _mm256_cvtepi32_epi8((__m256i)rounded));
#else
    for (int c = 0; c < lanes; ++c) byte[c] = static_cast<std::int8_t>(rounded[c]);
#endif
}
