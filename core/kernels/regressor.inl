// The loops of a linear regressor that learns online. Included by kernels.inl, after the loops of online blocks.

static inline float added_up(vfloat v) {
    float total = 0;
    for (int i = 0; i < lanes; ++i) total += v[i];
    return total;
}

float regressor_dot(const float* weight, const float* x, int n) {
    constexpr int unroll =
        regressor_lanes / lanes > 1 ? regressor_lanes / lanes : 1;  // independent sums hide the latency of additions
    vfloat sum[unroll];
    for (int u = 0; u < unroll; ++u) sum[u] = vfloat{};
    for (int k = 0; k < n; k += unroll * lanes)
#pragma GCC unroll 4
        for (int u = 0; u < unroll; ++u)
            sum[u] = add_product(sum[u], load(weight + k + u * lanes), load(x + k + u * lanes));
    for (int u = 1; u < unroll; ++u) sum[0] += sum[u];
    return added_up(sum[0]);
}

float regressor_adagrad_factors(float* sum, const float* x, int n, float gradient, float rate, float eps,
                                float* factor) {
    vfloat total{};
    for (int k = 0; k < n; k += lanes) {
        const vfloat v = load(x + k), g = v * gradient;
        const vfloat squares = add_product(load(sum + k), g, g);
        store(sum + k, squares);
        const vfloat f = rate * adagrad_factor(squares, {.eps = eps});
        store(factor + k, f);
        total = add_product(total, v * v, f);
    }
    return added_up(total);
}

void regressor_descend(float* weight, const float* x, const float* factor, int n, float step) {
    for (int k = 0; k < n; k += lanes)
        store(weight + k, subtract_product(load(weight + k), step * load(x + k), load(factor + k)));
}
