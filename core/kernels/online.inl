// The loops of online learning: scores of a block's columns, their gradients, and the two update rules.
// Included by kernels.inl. Every column's arithmetic is its own, so that a column that sees the same examples gets the
// same weights whatever its neighbours are, and a column that sees only negatives mirrors one that sees only positives.

// Rows of up to four columns, as in trees of arity two or three, use vectors half as wide.
constexpr int narrow_lanes = 4;

template <class V>
inline V load_as(const float* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
template <class V>
inline void store_as(float* p, V v) {
    __builtin_memcpy(p, &v, sizeof v);
}

/// scores of `Groups` vectors of columns.
template <class V, int Groups>
inline void score_tile(const float* const* row, int first, const float* value, int n, float* scores) {
    constexpr int width = sizeof(V) / sizeof(float);
    V sum[Groups];
    for (int t = 0; t < Groups; ++t) sum[t] = V{};
#pragma GCC unroll 4
    for (int k = 0; k < n; ++k) {
        const float* w = row[k] + first;
        const V x = V{} + value[k];
#pragma GCC unroll 8
        for (int t = 0; t < Groups; ++t) sum[t] = add_product(sum[t], x, load_as<V>(w + t * width));
    }
    for (int t = 0; t < Groups; ++t) store_as(scores + t * width, sum[t]);
}

void online_score(const float* const* row, const float* value, int n, int n_columns, float* scores) {
    if (n_columns == narrow_lanes) return score_tile<narrow, 1>(row, 0, value, n, scores);
    int c = 0;
    for (; c + 4 * lanes <= n_columns; c += 4 * lanes) score_tile<vfloat, 4>(row, c, value, n, scores + c);
    for (; c < n_columns; c += lanes) score_tile<vfloat, 1>(row, c, value, n, scores + c);
}

void online_gradient(const float* sign, float scale, float weight, int n_columns, float* scores) {
    for (int c = 0; c < n_columns; c += lanes) {
        const vfloat y = load(sign + c);
        store(scores + c, -y * sigmoid(-y * (load(scores + c) * scale)) * weight);
    }
}

/// 1 / (sqrt(sum + eps_in_root) + decay * sum + eps), good to about three digits where the processor has a fast
/// approximation: a step's size needs no more.
template <class V>
inline V adagrad_factor(V sum, AdaGradSteps steps) {
    const V least = V{} + 1e-20f, given = sum + steps.eps_in_root;
    const V inside = given > least ? given : least;
#if defined(__AVX512VL__)
    if constexpr (sizeof(V) == 32)
        return (V)_mm256_rcp14_ps(
            (__m256)(add_product(steps.decay * sum, inside, (V)_mm256_rsqrt14_ps((__m256)inside)) + steps.eps));
    else
        return (V)_mm_rcp14_ps(
            (__m128)(add_product(steps.decay * sum, inside, (V)_mm_rsqrt14_ps((__m128)inside)) + steps.eps));
#elif defined(__AVX2__)
    if constexpr (sizeof(V) == 32)
        return (V)_mm256_rcp_ps(
            (__m256)(add_product(steps.decay * sum, inside, (V)_mm256_rsqrt_ps((__m256)inside)) + steps.eps));
    else
        return (V)_mm_rcp_ps(
            (__m128)(add_product(steps.decay * sum, inside, (V)_mm_rsqrt_ps((__m128)inside)) + steps.eps));
#else
    V root;
    for (std::size_t i = 0; i < sizeof(V) / sizeof(float); ++i) root[i] = __builtin_sqrtf(inside[i]);
    return 1.0f / (root + steps.decay * sum + steps.eps);
#endif
}

/// A step of AdaGrad with gradient g.
template <class V>
inline void adagrad_step(V g, AdaGradSteps steps, V& weight, V& sum) {
    sum = add_product(sum, g, g);
    weight = subtract_product(weight, steps.rate * g, adagrad_factor(sum, steps));
}

template <class V>
inline void adagrad_rows(float* const* row, std::size_t to_sums, const float* value, int n, int n_columns,
                         const float* gradient, AdaGradSteps steps) {
    for (int k = 0; k < n; ++k) {
        float* w = row[k];
        float* sums = w + to_sums;
        const V x = V{} + value[k];
        for (int c = 0; c < n_columns; c += sizeof(V) / sizeof(float)) {
            V weight = load_as<V>(w + c), sum = load_as<V>(sums + c);
            adagrad_step(load_as<V>(gradient + c) * x, steps, weight, sum);
            store_as(sums + c, sum);
            store_as(w + c, weight);
        }
    }
}

void online_adagrad(float* const* row, std::size_t to_sums, const float* value, int n, int n_columns,
                    const float* gradient, AdaGradSteps steps) {
    const auto learn = n_columns == narrow_lanes ? adagrad_rows<narrow> : adagrad_rows<vfloat>;
    learn(row, to_sums, value, n, n_columns, gradient, steps);
}

template <class V>
inline void descend_rows(float* const* row, const float* value, int n, int n_columns, const float* gradient,
                         float rate) {
    for (int k = 0; k < n; ++k) {
        float* w = row[k];
        const V x = V{} + value[k] * rate;
        for (int c = 0; c < n_columns; c += sizeof(V) / sizeof(float))
            store_as(w + c, subtract_product(load_as<V>(w + c), load_as<V>(gradient + c), x));
    }
}

void online_descend(float* const* row, const float* value, int n, int n_columns, const float* gradient, float rate) {
    const auto learn = n_columns == narrow_lanes ? descend_rows<narrow> : descend_rows<vfloat>;
    learn(row, value, n, n_columns, gradient, rate);
}

template <class V>
inline void replay_adagrad_row(const ReplayedStep* step, int n, const float* gradients, std::size_t stride,
                               int n_columns, AdaGradSteps steps, float* weights, float* sums) {
    for (int c = 0; c < n_columns; c += sizeof(V) / sizeof(float)) {
        V weight{}, sum{};
        for (int k = 0; k < n; ++k)
            adagrad_step(load_as<V>(gradients + step[k].gradient * stride + c) * (V{} + step[k].value), steps, weight,
                         sum);
        store_as(weights + c, weight);
        store_as(sums + c, sum);
    }
}

void online_replay_adagrad(const ReplayedStep* step, int n, const float* gradients, std::size_t stride, int n_columns,
                           AdaGradSteps steps, float* weights, float* sums) {
    const auto replay = n_columns == narrow_lanes ? replay_adagrad_row<narrow> : replay_adagrad_row<vfloat>;
    replay(step, n, gradients, stride, n_columns, steps, weights, sums);
}

template <class V>
inline void replay_descend_row(const ReplayedStep* step, int n, const float* gradients, std::size_t stride,
                               int n_columns, float* weights) {
    for (int c = 0; c < n_columns; c += sizeof(V) / sizeof(float)) {
        V weight{};
        for (int k = 0; k < n; ++k)
            weight =
                subtract_product(weight, load_as<V>(gradients + step[k].gradient * stride + c), V{} + step[k].value);
        store_as(weights + c, weight);
    }
}

void online_replay_descend(const ReplayedStep* step, int n, const float* gradients, std::size_t stride, int n_columns,
                           float* weights) {
    const auto replay = n_columns == narrow_lanes ? replay_descend_row<narrow> : replay_descend_row<vfloat>;
    replay(step, n, gradients, stride, n_columns, weights);
}
