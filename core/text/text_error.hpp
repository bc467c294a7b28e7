/// Error messages for a header, a label or a feature of sparse text. Only runs after an error.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/decimal.hpp"

namespace ramify {

/// A mistake found at a place in the text; line and column are worked out when it is reported.
struct Mistake {
    const char* where = nullptr;
    std::string message;
    std::string hint;
};

namespace detail {

/// The token in quotes, cut if long; bytes that are not printable ASCII become \xNN.
inline std::string quoted(std::string_view token) {
    static constexpr std::size_t longest = 40;
    static constexpr char hex[] = "0123456789abcdef";
    std::string result = "'";
    for (char c : token.substr(0, longest)) {
        if (c >= ' ' && c <= '~') {
            result += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            result += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        }
    }
    if (token.size() > longest) result += "...";
    return result += "'";
}

inline bool is_whole_number(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

inline bool is_negative_number(std::string_view text) {
    return text.starts_with('-') && is_whole_number(text.substr(1));
}

/// "nan", "-inf", "Infinity" and the like.
inline bool is_not_finite(std::string_view text) {
    std::string lower(text.substr(text.starts_with('-') || text.starts_with('+')));
    for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower == "nan" || lower == "inf" || lower == "infinity";
}

}  // namespace detail

/// The limits that a row is checked against, and how to speak of them.
struct RowLimits {
    std::int64_t first_feature = 0;
    std::int64_t n_features = 0;
    std::int64_t n_labels = 0;
    bool has_header = true;
    bool features_are_limited = true;  ///< else n_features is only what a 32-bit index can hold
    bool labels_are_limited = true;
};

inline Mistake mistake_in_index(std::string_view index, const char* token, const std::string& what, std::int64_t first,
                                std::int64_t limit, bool is_limited, bool has_header) {
    const std::string source =
        has_header ? "the header's number of " + what + "s" : "the number of " + what + "s asked for";
    if (detail::is_negative_number(index))
        return {token, what + " " + std::string(index.substr(0, 40)) + " is negative",
                what + "s are numbered from " + std::to_string(first)};
    if (!detail::is_whole_number(index))
        return {token, what + " " + detail::quoted(index) + " is not a whole number",
                what + "s are numbered from " + std::to_string(first)};
    if (first == 1 && index.find_first_not_of('0') == index.npos)
        return {token, what + " 0 in a file whose " + what + "s are numbered from 1", "read it with zero_based=True"};
    if (!is_limited)
        return {token, what + " " + std::string(index.substr(0, 40)) + " does not fit a 32-bit index",
                "renumber the " + what + "s; the largest possible is 2147483646"};
    return {token,
            what + " " + std::string(index.substr(0, 40)) + " is outside " + source + ", " + std::to_string(limit),
            limit == 0
                ? "there can be none"
                : what + "s are numbered from " + std::to_string(first) + " to " + std::to_string(limit - 1 + first) +
                      "; correct " + (has_header ? "the header" : "n_" + what + "s") + " if there are more"};
}

inline Mistake mistake_in_label(std::string_view label, const char* where, const RowLimits& limits) {
    if (label.empty())
        return {where, "a label is missing beside a comma", "labels look like 3,17,5: commas between them, no spaces"};
    Mistake mistake =
        mistake_in_index(label, where, "label", 0, limits.n_labels, limits.labels_are_limited, limits.has_header);
    if (detail::is_negative_number(label))
        mistake.hint = "labels are columns, numbered from 0; write two classes as 0 and 1";
    return mistake;
}

inline Mistake mistake_in_feature(std::string_view token, const RowLimits& limits) {
    const char* where = token.data();
    const std::size_t colon = token.find(':');
    if (colon == token.npos)
        return {where, "feature " + detail::quoted(token) + " has no colon",
                "features look like 17:0.25; labels come first in the line, with commas and no spaces between them"};
    const std::string_view index = token.substr(0, colon), value = token.substr(colon + 1);
    if (index.empty())
        return {where, "feature " + detail::quoted(token) + " has no number before the colon",
                "features look like 17:0.25"};
    const Decimal decimal = parse_decimal(value.data());
    const bool is_good_index = detail::is_whole_number(index) && index.size() <= 18 &&
                               std::stoll(std::string(index)) >= limits.first_feature &&
                               std::stoll(std::string(index)) - limits.first_feature < limits.n_features;
    if (!is_good_index)
        return mistake_in_index(index, where, "feature", limits.first_feature, limits.n_features,
                                limits.features_are_limited, limits.has_header);
    if (detail::is_not_finite(value))
        return {where, "feature " + detail::quoted(token) + " is not finite",
                "drop the feature if its value is not known"};
    if (!decimal.end)
        return {where, "feature " + detail::quoted(token) + " has no number after the colon",
                "values look like 17:0.25; drop the feature if it is absent"};
    if (decimal.end != value.data() + value.size())
        return {where,
                "feature " + detail::quoted(token) + " has " +
                    detail::quoted(value.substr(static_cast<std::size_t>(decimal.end - value.data()))) +
                    " behind its number",
                *decimal.end == ',' ? "decimals have a point: 17:0.25"
                                    : "features look like 17:0.25 with a space between them"};
    return {where, "feature " + detail::quoted(token) + " is too large for a 32-bit float", "scale the feature down"};
}

}  // namespace ramify
