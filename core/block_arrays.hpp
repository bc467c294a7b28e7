/// Frozen blocks as a dict of numpy arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <utility>

#include "arrays.hpp"
#include "frozen_blocks.hpp"

namespace ramify {

inline nb::dict to_dict(BlockStorage&& storage) {
    nb::dict arrays;
    const std::size_t n_panels = storage.panels.size() / panel_fields;
    arrays["panels"] = to_numpy(std::move(storage.panels), {n_panels, static_cast<std::size_t>(panel_fields)});
    arrays["column_child"] = to_numpy(std::move(storage.column_child));
    arrays["column_scale"] = to_numpy(std::move(storage.column_scale));
    arrays["row_group"] = to_numpy(std::move(storage.row_group));
    arrays["group_id"] = to_numpy(std::move(storage.group_id));
    arrays["group_weight"] = to_numpy(std::move(storage.group_weight));
    arrays["bitmap"] = to_numpy(std::move(storage.bitmap));
    arrays["rank"] = to_numpy(std::move(storage.rank));
    arrays["bucket"] = to_numpy(std::move(storage.bucket));
    arrays["key"] = to_numpy(std::move(storage.key));
    arrays["table"] = to_numpy(std::move(storage.table));
    return arrays;
}

}  // namespace ramify
