/// What an online learner has learned, as a dict of numpy arrays and back.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "online_state.hpp"

namespace ramify {

inline nb::dict to_dict(OnlineArrayStorage&& arrays) {
    nb::dict out;
    out["parent"] = to_numpy(std::move(arrays.parent));
    out["label"] = to_numpy(std::move(arrays.label));
    out["block_node"] = to_numpy(std::move(arrays.block_node));
    out["block_columns"] = to_numpy(std::move(arrays.block_columns));
    out["block_rows"] = to_numpy(std::move(arrays.block_rows));
    out["block_updates"] = to_numpy(std::move(arrays.block_updates));
    out["block_scale"] = to_numpy(std::move(arrays.block_scale));
    out["column_child"] = to_numpy(std::move(arrays.column_child));
    out["feature"] = to_numpy(std::move(arrays.feature));
    out["weight"] = to_numpy(std::move(arrays.weight));
    out["sum"] = to_numpy(std::move(arrays.sum));
    return out;
}

/// A view of one array, good as long as the dict holds it.
template <class T>
std::span<const T> array_of(const nb::dict& arrays, const char* name) {
    Input<T> array;
    if (!arrays.contains(name) || !nb::try_cast(arrays[name], array, false))
        throw nb::value_error((std::string("the model's array ") + name + " is missing or has a wrong type or shape").c_str());
    return view(array);
}

inline OnlineArrays<ArrayView> online_arrays(const nb::dict& arrays) {
    OnlineArrays<ArrayView> in;
    auto take = [&]<class T>(std::span<const T>& target, const char* name) { target = array_of<T>(arrays, name); };
    take(in.parent, "parent");
    take(in.label, "label");
    take(in.block_node, "block_node");
    take(in.block_columns, "block_columns");
    take(in.block_rows, "block_rows");
    take(in.block_updates, "block_updates");
    take(in.block_scale, "block_scale");
    take(in.column_child, "column_child");
    take(in.feature, "feature");
    take(in.weight, "weight");
    take(in.sum, "sum");
    return in;
}

}  // namespace ramify
