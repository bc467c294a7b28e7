/// Frozen blocks as numpy arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <utility>

#include "bindings/arrays.hpp"
#include "plt/frozen_blocks.hpp"

namespace ramify {

inline ArrayDict to_dict(BlockStorage&& storage) {
    nb::dict arrays;
    const std::size_t n_panels = storage.panels.size() / panel_fields;
    arrays["panels"] = to_numpy(std::move(storage.panels), {n_panels, static_cast<std::size_t>(panel_fields)});
    arrays["column_child"] = to_numpy(std::move(storage.column_child));
    arrays["column_scale"] = to_numpy(std::move(storage.column_scale));
    arrays["column_rate"] = to_numpy(std::move(storage.column_rate));
    arrays["index"] = to_numpy(std::move(storage.index));
    arrays["rows"] = to_numpy(std::move(storage.rows));
    arrays["table"] = to_numpy(std::move(storage.table));
    return arrays;
}

}  // namespace ramify
