/// Writing sparse rows as XMC text.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ramify {

/// Rows as lines of XMC text, without a header; every float32 is written so that it is read back exactly.
/// The pointers must not decrease and must stay inside the arrays.
inline std::string format_sparse_text(std::size_t n_rows, const std::int64_t* feature_ptr, const std::int32_t* features,
                                      const float* values, const std::int64_t* label_ptr, const std::int32_t* labels) {
    // The longest entries are " 2147483647:-1.1754944e-38" and ",2147483647".
    std::string text(static_cast<std::size_t>(feature_ptr[n_rows] - feature_ptr[0]) * 28 +
                         static_cast<std::size_t>(label_ptr[n_rows] - label_ptr[0]) * 12 + n_rows,
                     '\0');
    char* p = text.data();
    char* const end = p + text.size();
    for (std::size_t row = 0; row < n_rows; ++row) {
        for (std::int64_t i = label_ptr[row]; i < label_ptr[row + 1]; ++i) {
            if (i > label_ptr[row]) *p++ = ',';
            p = std::to_chars(p, end, labels[i]).ptr;
        }
        for (std::int64_t i = feature_ptr[row]; i < feature_ptr[row + 1]; ++i) {
            *p++ = ' ';
            p = std::to_chars(p, end, features[i]).ptr;
            *p++ = ':';
            p = std::to_chars(p, end, values[i]).ptr;
        }
        *p++ = '\n';
    }
    text.resize(static_cast<std::size_t>(p - text.data()));
    return text;
}

}  // namespace ramify
