/// Rows of texts as the parts of a CSR array.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "text/term_rows.hpp"

namespace ramify {

/// Rows collected into the parts of a CSR array.
struct RowArrays {
    std::vector<std::int64_t> indptr{0};
    std::vector<std::int32_t> indices;
    std::vector<float> values;

    void add(const TermRows& rows) {
        for (std::int64_t length : rows.lengths) indptr.push_back(indptr.back() + length);
        indices.insert(indices.end(), rows.columns.begin(), rows.columns.end());
        values.insert(values.end(), rows.values.begin(), rows.values.end());
    }
    CsrArrays to_tuple() && {
        return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(indices)), to_numpy(std::move(values)));
    }
};

}  // namespace ramify
