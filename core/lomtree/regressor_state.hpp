/// Linear regressors as flat arrays, to be saved and resumed exactly.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/flat_arrays.hpp"
#include "lomtree/node_regressor.hpp"

namespace ramify {

/// Regressors one after the other; a regressor's dense columns, then those of its table in order of column.
template <template <class> class Array>
struct RegressorArrays {
    Array<std::int32_t> dense_width;
    Array<std::int64_t> slot_begin;
    Array<float> dense_weight, dense_sum;
    Array<std::uint32_t> slot_column;
    Array<float> slot_weight, slot_sum;
};

template <template <class> class Array, class Work>
void for_each_array(RegressorArrays<Array>& a, Work&& work) {
    work("dense_width", a.dense_width);
    work("slot_begin", a.slot_begin);
    work("dense_weight", a.dense_weight);
    work("dense_sum", a.dense_sum);
    work("slot_column", a.slot_column);
    work("slot_weight", a.slot_weight);
    work("slot_sum", a.slot_sum);
}

/// To arrays that have the begin of the first regressor already.
inline void append(const NodeRegressor& r, RegressorArrays<OwnedArray>& out) {
    out.dense_width.push_back(r.dense_width());
    out.dense_weight.insert(out.dense_weight.end(), r.dense_weight().begin(), r.dense_weight().end());
    out.dense_sum.insert(out.dense_sum.end(), r.dense_sum().begin(), r.dense_sum().end());
    for (const auto& [column, stored] : r.table().sorted()) {
        out.slot_column.push_back(column);
        out.slot_weight.push_back(stored.weight);
        out.slot_sum.push_back(stored.sum);
    }
    out.slot_begin.push_back(std::ssize(out.slot_column));
}

inline RegressorArrays<OwnedArray> to_arrays(std::span<const NodeRegressor> regressors) {
    RegressorArrays<OwnedArray> out;
    out.slot_begin.push_back(0);
    for (const NodeRegressor& r : regressors) append(r, out);
    return out;
}

/// The saved regressors; throws std::invalid_argument if the arrays are inconsistent.
inline std::vector<NodeRegressor> regressors_from(const RegressorArrays<ArrayView>& in, std::size_t n) {
    check_arrays(in.dense_width.size() == n && in.slot_begin.size() == n + 1, "one entry a regressor is needed");
    check_begin(in.slot_begin, n, in.slot_column.size(), "slot_begin");
    check_arrays(in.slot_weight.size() == in.slot_column.size() && in.slot_sum.size() == in.slot_column.size(),
                 "slots");
    check_arrays(in.dense_sum.size() == in.dense_weight.size(), "dense_sum");
    auto is_sound = [](float weight, float sum) { return std::isfinite(weight) && std::isfinite(sum) && sum >= 0; };
    for (std::size_t i = 0; i < in.dense_weight.size(); ++i)
        check_arrays(is_sound(in.dense_weight[i], in.dense_sum[i]), "dense weights");
    std::vector<NodeRegressor> out;
    std::size_t dense = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int32_t width = in.dense_width[i];
        check_arrays(width >= 0 && width % regressor_lanes == 0 &&
                         static_cast<std::size_t>(width) <= in.dense_weight.size() - dense,
                     "dense_width");
        NodeRegressor& r = out.emplace_back(width);
        r.restore_dense(in.dense_weight.subspan(dense, width), in.dense_sum.subspan(dense, width));
        dense += width;
        r.reserve(static_cast<std::size_t>(in.slot_begin[i + 1] - in.slot_begin[i]));
        for (std::int64_t k = in.slot_begin[i]; k < in.slot_begin[i + 1]; ++k) {
            check_arrays(is_sound(in.slot_weight[k], in.slot_sum[k]), "slot weights");
            check_arrays(r.restore(in.slot_column[k], {in.slot_weight[k], in.slot_sum[k]}), "slot_column");
        }
    }
    check_arrays(dense == in.dense_weight.size(), "dense weights are left over");
    return out;
}

}  // namespace ramify
