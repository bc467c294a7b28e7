/// Labelled sparse rows as text: `l1,l2 f:v f:v ...`, one row a line, with a header (XMC) or without (libsvm).
#pragma once

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "text/decimal.hpp"
#include "text/text_error.hpp"

namespace ramify {

/// Memory that is not set to zero first, and how much of it is in use.
template <class T>
struct Buffer {
    std::unique_ptr<T[]> data;
    std::size_t size = 0;

    Buffer() = default;
    explicit Buffer(std::size_t capacity) : data(std::make_unique_for_overwrite<T[]>(capacity)), size(capacity) {}
};

/// Features and labels as two CSR matrices with sorted indices and no repetition.
struct SparseText {
    std::int64_t n_features = 0;
    std::int64_t n_labels = 0;
    Buffer<std::int64_t> feature_ptr, label_ptr;
    Buffer<std::int32_t> features, labels;
    Buffer<float> values;
};

struct SparseTextFormat {
    bool has_header = true;          ///< else blank lines are no rows, and `#` starts a comment
    std::int64_t first_feature = 0;  ///< the number that the file gives to its first feature: 0 or 1
    std::int64_t n_features = -1;    ///< without a header: the limit, or -1 for none
    std::int64_t n_labels = -1;
};

namespace detail {

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

inline const char* end_of_token(const char* p, const char* line_end) {
    while (p != line_end && !is_blank(*p)) ++p;
    return p;
}

inline const char* skip_blanks(const char* p, const char* line_end) {
    while (p != line_end && is_blank(*p)) ++p;
    return p;
}

inline const char* find_or_end(const char* p, const char* end, char wanted) {
    const void* found = std::memchr(p, wanted, static_cast<std::size_t>(end - p));
    return found ? static_cast<const char*>(found) : end;
}

/// Whole lines of the text that one task parses, and where its results go: the counts of newlines, colons and commas
/// bound the sizes, so that every task writes straight into the final arrays and gaps are closed afterwards.
struct Chunk {
    const char* begin;
    const char* end;
    std::size_t n_lines = 0, n_features = 0, n_labels = 0;           // upper bounds, then actual counts
    std::size_t first_line = 0, first_feature = 0, first_label = 0;  // places in the arrays
    std::int64_t largest_feature = -1, largest_label = -1;

    void count() {
        // Sums of at most 255 ones fit a byte, and bytes are what the compiler vectorises best.
        for (const char* p = begin; p != end;) {
            const char* const stop = p + std::min<std::ptrdiff_t>(end - p, 255);
            std::uint8_t lines = 0, colons = 0, commas = 0;
            for (; p != stop; ++p) {
                lines += *p == '\n';
                colons += *p == ':';
                commas += *p == ',';
            }
            n_lines += lines;
            n_features += colons;
            n_labels += commas;
        }
        if (begin != end && end[-1] != '\n') ++n_lines;
        n_labels += n_lines;
    }
};

class SparseTextParser {
public:
    SparseTextParser(std::string_view text, SparseTextFormat format) : text_(text), format_(format) {}

    SparseText parse(int n_threads) {
        const char* rows = text_.data();
        if (text_.starts_with("\xef\xbb\xbf")) rows += 3;  // a byte order mark, as some editors write
        if (format_.has_header)
            rows = parse_header(rows);
        else
            set_limits(format_.n_features, format_.n_labels);
        split(rows);
        parallel_for(chunks_.size(), n_threads, [&](std::size_t i, int) { chunks_[i].count(); });
        allocate();
        mistakes_.resize(chunks_.size());
        parallel_for(chunks_.size(), n_threads, [&](std::size_t i, int) {
            if (i < first_bad_chunk_) parse_chunk(i);
        });
        for (const auto& mistake : mistakes_)
            if (mistake) throw *mistake;
        close_gaps();
        if (format_.has_header && n_rows_found_ < n_rows_)
            throw Mistake{text_.data() + text_.size(),
                          "the file ends after " + std::to_string(n_rows_found_) + " rows, but the header announces " +
                              std::to_string(n_rows_),
                          "the file may be cut off; else correct the first number of the header"};
        result_.n_features = limits_.features_are_limited ? limits_.n_features : largest(&Chunk::largest_feature) + 1;
        result_.n_labels = limits_.labels_are_limited ? limits_.n_labels : largest(&Chunk::largest_label) + 1;
        return std::move(result_);
    }

private:
    static constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max();
    static constexpr std::ptrdiff_t chunk_bytes = 1 << 20;

    const char* text_end() const { return text_.data() + text_.size(); }

    /// Where the line's newline is, or the end of the text.
    const char* end_of_line(const char* p) const { return find_or_end(p, text_end(), '\n'); }

    void set_limits(std::int64_t n_features, std::int64_t n_labels) {
        limits_.has_header = format_.has_header;
        limits_.first_feature = format_.first_feature;
        limits_.features_are_limited = n_features >= 0;
        limits_.labels_are_limited = n_labels >= 0;
        limits_.n_features = n_features >= 0 ? n_features : largest_size;
        limits_.n_labels = n_labels >= 0 ? n_labels : largest_size;
    }

    const char* parse_header(const char* p) {
        static constexpr const char* hint =
            "the first line holds the numbers of rows, features and labels, as in: 45000 17213 4193; "
            "a file without it is read with format=\"libsvm\"";
        const char* const newline = end_of_line(p);
        const char* line_end = newline;
        if (line_end != p && line_end[-1] == '\r') --line_end;
        const char* const begin = p;
        std::vector<std::string_view> fields;
        while ((p = skip_blanks(p, line_end)) != line_end) {
            const char* const end = end_of_token(p, line_end);
            fields.emplace_back(p, static_cast<std::size_t>(end - p));
            p = end;
        }
        std::int64_t sizes[3] = {};
        for (std::size_t i = 0; i < std::min<std::size_t>(fields.size(), 3); ++i) {
            const char* const end = fields[i].data() + fields[i].size();
            const auto [stop, error] = std::from_chars(fields[i].data(), end, sizes[i]);
            if (error == std::errc::result_out_of_range || (stop == end && i > 0 && sizes[i] > largest_size))
                throw Mistake{fields[i].data(), "the header's number " + quoted(fields[i]) + " is too large", hint};
            if (error != std::errc{} || stop != end || sizes[i] < 0)
                throw Mistake{fields[i].data(), "the header holds " + quoted(fields[i]) + ", which is not a count",
                              hint};
        }
        if (fields.size() != 3)
            throw Mistake{begin, "the header has " + std::to_string(fields.size()) + " numbers instead of 3", hint};
        n_rows_ = sizes[0];
        set_limits(sizes[1], sizes[2]);
        return newline == text_end() ? newline : newline + 1;
    }

    /// Cuts by size alone, never by the number of threads.
    void split(const char* p) {
        while (p != text_end()) {
            const char* end = p + std::min(text_end() - p, chunk_bytes);
            if (end != text_end()) end = std::min(end_of_line(end) + 1, text_end());
            chunks_.push_back({p, end});
            p = end;
        }
    }

    void allocate() {
        std::size_t n_lines = 0, n_features = 0, n_labels = 0;
        for (Chunk& chunk : chunks_) {
            chunk.first_line = std::exchange(n_lines, n_lines + chunk.n_lines);
            chunk.first_feature = std::exchange(n_features, n_features + chunk.n_features);
            chunk.first_label = std::exchange(n_labels, n_labels + chunk.n_labels);
        }
        result_.feature_ptr = Buffer<std::int64_t>(n_lines + 1);
        result_.label_ptr = Buffer<std::int64_t>(n_lines + 1);
        result_.features = Buffer<std::int32_t>(n_features);
        result_.values = Buffer<float>(n_features);
        result_.labels = Buffer<std::int32_t>(n_labels);
    }

    void parse_chunk(std::size_t number) {
        Chunk& chunk = chunks_[number];
        const auto first_line = static_cast<std::int64_t>(chunk.first_line);
        std::int32_t* feature = result_.features.data.get() + chunk.first_feature;
        float* value = result_.values.data.get() + chunk.first_feature;
        std::int32_t* label = result_.labels.data.get() + chunk.first_label;
        const std::int32_t* const features_begin = feature;
        const std::int32_t* const labels_begin = label;
        std::int64_t n_rows = 0;
        try {
            for (const char* p = chunk.begin; p != chunk.end;) {
                const char* const newline = end_of_line(p);
                const char* line_end = newline;
                if (line_end != p && line_end[-1] == '\r') --line_end;
                if (!format_.has_header) line_end = find_or_end(p, line_end, '#');
                if (is_row(p, line_end, first_line + n_rows)) {
                    const std::int64_t n_labels = parse_labels(p, line_end, label, chunk);
                    const std::int64_t n_features = parse_features(p, line_end, feature, value, chunk);
                    // One place to the right: the sums over rows become the pointers later.
                    result_.feature_ptr.data[chunk.first_line + static_cast<std::size_t>(n_rows) + 1] = n_features;
                    result_.label_ptr.data[chunk.first_line + static_cast<std::size_t>(n_rows) + 1] = n_labels;
                    feature += n_features;
                    value += n_features;
                    label += n_labels;
                    ++n_rows;
                }
                p = newline == chunk.end ? newline : newline + 1;
            }
        } catch (Mistake& mistake) {
            mistakes_[number] = std::move(mistake);
            for (std::size_t known = first_bad_chunk_;
                 number < known && !first_bad_chunk_.compare_exchange_weak(known, number);) {}
        }
        chunk.n_lines = static_cast<std::size_t>(n_rows);
        chunk.n_features = static_cast<std::size_t>(feature - features_begin);
        chunk.n_labels = static_cast<std::size_t>(label - labels_begin);
    }

    /// With a header every line is a row until there are enough; without one, lines with nothing in them are not.
    bool is_row(const char* p, const char* line_end, std::int64_t row) const {
        if (format_.has_header && row < n_rows_) return true;
        const bool is_empty = skip_blanks(p, line_end) == line_end;
        if (format_.has_header && !is_empty)
            throw Mistake{
                p, "there are more rows than the " + std::to_string(n_rows_) + " that the header announces",
                "correct the first number of the header; a blank line counts as a row without labels and features"};
        return !is_empty;
    }

    /// Reads the labels at the start of the line, if it has any, and moves p behind them.
    std::int64_t parse_labels(const char*& p, const char* line_end, std::int32_t* out, Chunk& chunk) const {
        if (p == line_end || is_blank(*p)) return 0;
        const char* q = p;
        std::int64_t n = 0;
        bool is_sorted = true;
        for (;; ++q) {
            const char* const begin = q;
            std::uint64_t label = 0;
            while (is_digit(*q)) label = label * 10 + static_cast<std::uint64_t>(*q++ - '0');
            const bool ends_label = q == line_end || *q == ',' || is_blank(*q);
            if (q == begin || q - begin > 18 || !ends_label || label >= static_cast<std::uint64_t>(limits_.n_labels)) {
                // A first token with a colon is a feature: the row has no labels.
                const char* const end = end_of_token(p, line_end);
                if (std::find(p, end, ':') != end && std::find(p, end, ',') == end) return 0;
                throw mistake_in_label({begin, static_cast<std::size_t>(std::find(begin, end, ',') - begin)}, begin,
                                       limits_);
            }
            is_sorted = is_sorted && (n == 0 || static_cast<std::int64_t>(label) > out[n - 1]);
            out[n++] = static_cast<std::int32_t>(label);
            if (q == line_end || *q != ',') break;
        }
        p = q;
        if (!is_sorted) {
            std::sort(out, out + n);
            n = std::unique(out, out + n) - out;
        }
        chunk.largest_label = std::max<std::int64_t>(chunk.largest_label, out[n - 1]);
        return n;
    }

    std::int64_t parse_features(const char* p, const char* line_end, std::int32_t* indices, float* values,
                                Chunk& chunk) const {
        const char* const begin = p;
        const auto first = static_cast<std::uint64_t>(limits_.first_feature);
        std::int64_t n = 0, previous = -1;
        bool is_sorted = true;
        while ((p = skip_blanks(p, line_end)) != line_end) {
            const char* const token = p;
            std::uint64_t index = 0;
            while (is_digit(*p)) index = index * 10 + static_cast<std::uint64_t>(*p++ - '0');
            const std::ptrdiff_t n_digits = p - token;
            index -= first;  // wraps round below the first, and is then too large
            if (*p != ':' || n_digits == 0 || n_digits > 18 || index >= static_cast<std::uint64_t>(limits_.n_features))
                throw mistake_in_feature({token, static_cast<std::size_t>(end_of_token(token, line_end) - token)},
                                         limits_);
            const Decimal decimal = parse_decimal(p + 1);
            if (!decimal.end || decimal.too_large || !(decimal.end == line_end || is_blank(*decimal.end)))
                throw mistake_in_feature({token, static_cast<std::size_t>(end_of_token(token, line_end) - token)},
                                         limits_);
            p = decimal.end;
            is_sorted = is_sorted && static_cast<std::int64_t>(index) > previous;
            previous = static_cast<std::int64_t>(index);
            indices[n] = static_cast<std::int32_t>(index);
            values[n++] = decimal.value;
        }
        if (!is_sorted) n = sort_and_sum(indices, values, n, begin);
        if (n > 0) chunk.largest_feature = std::max<std::int64_t>(chunk.largest_feature, indices[n - 1]);
        return n;
    }

    /// Puts a row's features in order; values of a repeated feature are added in the order of the file.
    static std::int64_t sort_and_sum(std::int32_t* indices, float* values, std::int64_t n, const char* where) {
        std::vector<std::pair<std::int32_t, float>> row(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i) row[static_cast<std::size_t>(i)] = {indices[i], values[i]};
        std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        std::int64_t last = -1;
        for (const auto& [index, value] : row) {
            if (last >= 0 && indices[last] == index) {
                values[last] += value;
                if (!std::isfinite(values[last]))
                    throw Mistake{where,
                                  "feature " + std::to_string(index) +
                                      " is repeated, and its sum is too large for a 32-bit float",
                                  "values of a repeated feature are added; keep one of them"};
            } else {
                indices[++last] = index;
                values[last] = value;
            }
        }
        return last + 1;
    }

    void close_gaps() {
        std::size_t rows = 0, features = 0, labels = 0;
        const auto move = [](auto& buffer, std::size_t to, std::size_t from, std::size_t n) {
            if (to != from && n > 0)
                std::memmove(buffer.data.get() + to, buffer.data.get() + from, n * sizeof(buffer.data[0]));
        };
        for (const Chunk& chunk : chunks_) {
            move(result_.feature_ptr, rows + 1, chunk.first_line + 1, chunk.n_lines);
            move(result_.label_ptr, rows + 1, chunk.first_line + 1, chunk.n_lines);
            move(result_.features, features, chunk.first_feature, chunk.n_features);
            move(result_.values, features, chunk.first_feature, chunk.n_features);
            move(result_.labels, labels, chunk.first_label, chunk.n_labels);
            rows += chunk.n_lines;
            features += chunk.n_features;
            labels += chunk.n_labels;
        }
        n_rows_found_ = static_cast<std::int64_t>(rows);
        for (Buffer<std::int64_t>* pointers : {&result_.feature_ptr, &result_.label_ptr}) {
            pointers->size = rows + 1;
            pointers->data[0] = 0;
            std::partial_sum(pointers->data.get(), pointers->data.get() + rows + 1, pointers->data.get());
        }
        result_.features.size = result_.values.size = features;
        result_.labels.size = labels;
    }

    std::int64_t largest(std::int64_t Chunk::* which) const {
        std::int64_t result = -1;
        for (const Chunk& chunk : chunks_) result = std::max(result, chunk.*which);
        return result;
    }

    std::string_view text_;
    SparseTextFormat format_;
    RowLimits limits_;
    std::int64_t n_rows_ = 0, n_rows_found_ = 0;
    std::vector<Chunk> chunks_;
    std::vector<std::optional<Mistake>> mistakes_;
    std::atomic<std::size_t> first_bad_chunk_{std::numeric_limits<std::size_t>::max()};
    SparseText result_;
};

}  // namespace detail

/// Parses the text, which must be followed by a zero byte (std::string and Python's bytes are). Throws the first
/// Mistake. The result does not depend on n_threads.
inline SparseText parse_sparse_text(std::string_view text, SparseTextFormat format, int n_threads) {
    return detail::SparseTextParser(text, format).parse(n_threads);
}

}  // namespace ramify
