// The loops of online learning: scores of a block's columns, their gradients, and the two update rules.
// Included by kernels.inl. Every column's arithmetic is its own, so that a column that sees the same examples gets the
// same weights whatever its neighbours are, and a column that sees only negatives mirrors one that sees only positives.

/// scores of `Groups` groups of 8 columns, from `first` on.
template <int Groups>
inline void score_tile(const float* rows, std::size_t row_size, const std::uint32_t* row, const float* value, int n, float* scores) {
    vfloat sum[Groups];
    for (int t = 0; t < Groups; ++t) sum[t] = vfloat{};
#pragma GCC unroll 4
    for (int k = 0; k < n; ++k) {
        const float* w = rows + row[k] * row_size;
        const vfloat x = splat(value[k]);
#pragma GCC unroll 8
        for (int t = 0; t < Groups; ++t) sum[t] += x * load(w + t * lanes);
    }
    for (int t = 0; t < Groups; ++t) store(scores + t * lanes, sum[t]);
}

void online_score(const float* rows, std::size_t row_size, const std::uint32_t* row, const float* value, int n, int n_columns, float* scores) {
    int c = 0;
    for (; c + 4 * lanes <= n_columns; c += 4 * lanes) score_tile<4>(rows + c, row_size, row, value, n, scores + c);
    for (; c < n_columns; c += lanes) score_tile<1>(rows + c, row_size, row, value, n, scores + c);
}

void online_gradient(const float* sign, float scale, float weight, int n_columns, float* scores) {
    for (int c = 0; c < n_columns; c += lanes) {
        const vfloat y = load(sign + c);
        store(scores + c, -y * sigmoid(-y * (load(scores + c) * scale)) * weight);
    }
}

/// 1 / (sqrt(sum) + decay * sum + eps), good to about three digits where the processor has a fast approximation: a step's size needs no more.
inline vfloat adagrad_factor(vfloat sum, float eps, float decay) {
    sum = maximum(sum, splat(1e-20f));
#if RAMIFY_LANES == 8 && defined(__AVX512VL__)
    const vfloat root = sum * (vfloat)_mm256_rsqrt14_ps((__m256)sum);
    return (vfloat)_mm256_rcp14_ps((__m256)(root + decay * sum + eps));
#elif RAMIFY_LANES == 8 && defined(__AVX2__)
    const vfloat root = sum * (vfloat)_mm256_rsqrt_ps((__m256)sum);
    return (vfloat)_mm256_rcp_ps((__m256)(root + decay * sum + eps));
#else
    vfloat root;
    for (int i = 0; i < lanes; ++i) root[i] = __builtin_sqrtf(sum[i]);
    return 1.0f / (root + decay * sum + eps);
#endif
}

void online_adagrad(float* rows, std::size_t row_size, const std::uint32_t* row, const float* value, int n, int n_columns, const float* gradient,
                    float rate, float eps, float decay) {
    const std::size_t to_sums = row_size / 2;
    for (int k = 0; k < n; ++k) {
        float* w = rows + row[k] * row_size;
        float* sums = w + to_sums;
        const vfloat x = splat(value[k]);
        for (int c = 0; c < n_columns; c += lanes) {
            const vfloat g = load(gradient + c) * x;
            const vfloat sum = load(sums + c) + g * g;
            store(sums + c, sum);
            store(w + c, load(w + c) - (rate * g) * adagrad_factor(sum, eps, decay));
        }
    }
}

void online_descend(float* rows, std::size_t row_size, const std::uint32_t* row, const float* value, int n, int n_columns, const float* gradient, float rate) {
    for (int k = 0; k < n; ++k) {
        float* w = rows + row[k] * row_size;
        const vfloat x = splat(value[k] * rate);
        for (int c = 0; c < n_columns; c += lanes) store(w + c, load(w + c) - load(gradient + c) * x);
    }
}
