// The loops of embedding bags: sums of rows, inner products with rows, and additions to rows.
// Included by kernels.inl. A row has `stride` floats, a multiple of 8; every row's arithmetic is its own, so that work
// may be divided by rows in any way without changing a bit.

/// Rows are scattered: where the next ones lie is known well before they are read.
constexpr int rows_ahead = 4;

inline float sum_of(vfloat v) {
    float low[lanes];
    store(low, v);
    return ((low[0] + low[4]) + (low[2] + low[6])) + ((low[1] + low[5]) + (low[3] + low[7]));
}

void embedding_sum(const float* rows, std::size_t stride, const std::uint32_t* index, const float* value, int n,
                   float* sum) {
    for (std::size_t c = 0; c < stride; c += lanes) store(sum + c, vfloat{});
    for (int k = 0; k < n && k < rows_ahead; ++k) prefetch(rows + index[k] * stride, stride * sizeof(float));
    int k = 0;
    for (; k + 2 <= n; k += 2) {  // two rows at a time: the sum is loaded and stored half as often
        for (int next = k + rows_ahead; next < n && next < k + rows_ahead + 2; ++next)
            prefetch(rows + index[next] * stride, stride * sizeof(float));
        const float *one = rows + index[k] * stride, *two = rows + index[k + 1] * stride;
        const vfloat x = splat(value[k]), y = splat(value[k + 1]);
        for (std::size_t c = 0; c < stride; c += lanes)
            store(sum + c, add_product(add_product(load(sum + c), x, load(one + c)), y, load(two + c)));
    }
    if (k < n) {
        const float* row = rows + index[k] * stride;
        const vfloat x = splat(value[k]);
        for (std::size_t c = 0; c < stride; c += lanes) store(sum + c, add_product(load(sum + c), x, load(row + c)));
    }
}

void embedding_dots(const float* rows, std::size_t stride, const std::uint32_t* index, int n, const float* x,
                    float* products) {
    for (int k = 0; k < n && k < rows_ahead; ++k) prefetch(rows + index[k] * stride, stride * sizeof(float));
    for (int k = 0; k < n; ++k) {
        if (k + rows_ahead < n) prefetch(rows + index[k + rows_ahead] * stride, stride * sizeof(float));
        const float* row = rows + index[k] * stride;
        vfloat sum = vfloat{}, other = vfloat{};  // independent sums hide the latency of the additions
        std::size_t c = 0;
        for (; c + 2 * lanes <= stride; c += 2 * lanes) {
            sum = add_product(sum, load(row + c), load(x + c));
            other = add_product(other, load(row + c + lanes), load(x + c + lanes));
        }
        if (c < stride) sum = add_product(sum, load(row + c), load(x + c));
        products[k] = sum_of(sum + other);
    }
}

void embedding_add(float* rows, std::size_t stride, const std::uint32_t* index, const float* value, int n,
                   const float* x) {
    for (int k = 0; k < n && k < rows_ahead; ++k) prefetch(rows + index[k] * stride, stride * sizeof(float));
    for (int k = 0; k < n; ++k) {
        if (k + rows_ahead < n) prefetch(rows + index[k + rows_ahead] * stride, stride * sizeof(float));
        float* row = rows + index[k] * stride;
        const vfloat v = splat(value[k]);
        for (std::size_t c = 0; c < stride; c += lanes) store(row + c, add_product(load(row + c), v, load(x + c)));
    }
}

void embedding_sum_bytes(const std::int8_t* rows, const float* scale, std::size_t stride, const std::uint32_t* index,
                         const float* value, int n, float* sum) {
    for (std::size_t c = 0; c < stride; c += lanes) store(sum + c, vfloat{});
    for (int k = 0; k < n; ++k) {
        if (k + rows_ahead < n) prefetch(rows + index[k + rows_ahead] * stride, stride);
        const std::int8_t* row = rows + index[k] * stride;
        const vfloat x = splat(value[k] * scale[index[k]]);
        for (std::size_t c = 0; c < stride; c += lanes)
            store(sum + c, add_product(load(sum + c), x, load_weights(row + c)));
    }
}

void embedding_dots_bytes(const std::int8_t* rows, const float* scale, std::size_t stride, const std::uint32_t* index,
                          int n, const float* x, float* products) {
    for (int k = 0; k < n; ++k) {
        const std::int8_t* row = rows + index[k] * stride;
        vfloat sum = vfloat{}, other = vfloat{};
        std::size_t c = 0;
        for (; c + 2 * lanes <= stride; c += 2 * lanes) {
            sum = add_product(sum, load_weights(row + c), load(x + c));
            other = add_product(other, load_weights(row + c + lanes), load(x + c + lanes));
        }
        if (c < stride) sum = add_product(sum, load_weights(row + c), load(x + c));
        products[k] = sum_of(sum + other) * scale[index[k]];
    }
}
