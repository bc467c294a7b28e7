/// The format of a frozen panel's rows: bytes, found by feature.
///
/// Most rows of a large model hold one or two weights, so the overhead per row matters. Rows come in chunks: those
/// of 64 neighbouring features, or those of a hash bucket. A chunk begins with where its rows end; then come the rows,
/// so that a feature is found and read within one or two cache lines. A weight is a pair (column, signed byte); eight
/// neighbouring columns of which many are in use are a group (its number, eight signed bytes) instead. A row of many
/// weights holds all groups of the panel, in order, and no pairs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "kernels/kernels.hpp"

namespace ramify {

inline constexpr std::int64_t bitmap_index = -1;
inline constexpr std::int64_t hashed_index = -2;
inline constexpr int features_per_word = 64;
inline constexpr int most_rows_in_chunk = 64;
inline constexpr int dense_group =
    4;  ///< this many weights make a group: nine bytes instead of eight, but one addition instead of four

/// A row of all groups may take this many times its bytes, as it is read several times as fast: except where a panel
/// is so large that fetching its rows takes the time.
inline constexpr std::size_t full_row_bytes = 3, large_panel = std::size_t{512} << 10;

/// A panel as training leaves it: rows in order of feature, each a list of groups.
struct Panel {
    std::int64_t node = 0;
    std::vector<std::int32_t> child;
    std::vector<float> scale;
    std::vector<float> rate;  ///< log of the share of the node's rows for which the child is true; empty: not known
    std::vector<std::uint32_t> feature;
    std::vector<std::uint32_t> row_group{0};
    std::vector<std::uint8_t> group_id;
    std::vector<std::int8_t> group_weight;

    bool is_large() const { return group_id.size() * (1 + group_columns) > large_panel; }
};

/// Which of a group's eight weights are not zero: the highest bit of each byte, in order from the lowest.
inline std::uint64_t weights_in_use(const std::int8_t* weight) {
    std::uint64_t bytes;  // little-endian, as the whole file
    std::memcpy(&bytes, weight, sizeof bytes);
    constexpr std::uint64_t low = 0x7f7f7f7f7f7f7f7f;
    return (((bytes & low) + low) | bytes) & ~low;
}

inline int n_weights(std::uint64_t in_use) { return static_cast<int>((in_use >> 7) * 0x0101010101010101 >> 56); }

/// Bytes of a key in a hash bucket: what remains of a feature without the bits that choose the bucket.
inline int key_bytes(std::int64_t n_features, std::int64_t bucket_bits) {
    const std::int64_t largest = std::max<std::int64_t>(n_features - 1, 0) >> bucket_bits;
    return largest < 1 << 8 ? 1 : largest < 1 << 16 ? 2 : 4;
}

inline std::uint32_t read_key(const std::uint8_t* keys, int k, int bytes) {
    std::uint32_t key = 0;  // little-endian, as the whole file
    for (int b = 0; b < bytes; ++b) key |= static_cast<std::uint32_t>(keys[k * bytes + b]) << (8 * b);
    return key;
}

/// A panel's index and rows, being written.
class RowWriter {
public:
    std::int64_t bucket_bits = bitmap_index;
    std::vector<std::uint32_t>
        index;  ///< of a bitmap: per word of features where its chunk begins, and the two halves of the word
    std::vector<std::uint8_t> rows;

    RowWriter(const Panel& panel, std::int64_t n_features, bool is_large) : panel_(panel), is_large_(is_large) {
        bucket_bits = choose_index(n_features);
        if (bucket_bits == bitmap_index)
            write_words(n_features);
        else
            write_buckets(key_bytes(n_features, bucket_bits));
    }

private:
    std::size_t n_rows() const { return panel_.feature.size(); }
    std::size_t bucket_of(std::size_t row) const { return panel_.feature[row] & ((std::size_t{1} << bucket_bits) - 1); }

    /// Buckets of about eight rows where they take less room than a bitmap.
    std::int64_t choose_index(std::int64_t n_features) {
        const auto n_words = static_cast<std::size_t>(n_features + features_per_word - 1) / features_per_word;
        int bits = std::max(0, static_cast<int>(std::bit_width(n_rows())) - 3);
        for (;; ++bits) {
            const std::size_t n_buckets = std::size_t{1} << bits;
            if (4 * (n_buckets + 1) + (1 + key_bytes(n_features, bits)) * n_rows() >= 12 * n_words) return bitmap_index;
            std::vector<std::uint8_t> count(n_buckets, 0);
            bucket_bits = bits;
            bool fits = true;
            for (std::size_t r = 0; r < n_rows() && fits; ++r) fits = ++count[bucket_of(r)] <= most_rows_in_chunk;
            if (fits) return bits;
        }
    }

    void write_words(std::int64_t n_features) {
        std::size_t row = 0;
        std::vector<std::uint32_t> members;
        for (std::int64_t first = 0; first < n_features; first += features_per_word) {
            std::uint64_t word = 0;
            members.clear();
            for (; row < n_rows() && panel_.feature[row] < first + features_per_word; ++row) {
                word |= 1ull << (panel_.feature[row] - first);
                members.push_back(static_cast<std::uint32_t>(row));
            }
            const std::uint32_t at = position();
            index.insert(index.end(), {at | write_chunk(members), static_cast<std::uint32_t>(word),
                                       static_cast<std::uint32_t>(word >> 32)});
        }
    }

    void write_buckets(int bytes_per_key) {
        const std::size_t n_buckets = std::size_t{1} << bucket_bits;
        std::vector<std::uint32_t> begin(n_buckets + 2, 0), members(n_rows());
        for (std::size_t r = 0; r < n_rows(); ++r) ++begin[bucket_of(r) + 2];
        for (std::size_t bucket = 2; bucket < begin.size(); ++bucket) begin[bucket] += begin[bucket - 1];
        for (std::size_t r = 0; r < n_rows(); ++r) members[begin[bucket_of(r) + 1]++] = static_cast<std::uint32_t>(r);
        for (std::size_t k = 0; k < n_buckets; ++k) {
            const auto bucket = std::span<const std::uint32_t>(members).subspan(begin[k], begin[k + 1] - begin[k]);
            const std::uint32_t at = position();
            if (!bucket.empty()) rows.push_back(static_cast<std::uint8_t>(bucket.size()));
            for (std::uint32_t r : bucket)
                for (int b = 0; b < bytes_per_key; ++b)
                    rows.push_back(static_cast<std::uint8_t>(panel_.feature[r] >> bucket_bits >> (8 * b)));
            index.push_back(at | write_chunk(bucket));
        }
        index.push_back(position());
    }

    std::uint32_t position() const {
        if (rows.size() >= wide_chunk)
            throw std::length_error("the weights of one node take more than 2 GB: raise prune or lower max_leaf");
        return static_cast<std::uint32_t>(rows.size());
    }

    /// Where rows end, and the rows. Returns the mark of a wide chunk if it is one.
    std::uint32_t write_chunk(std::span<const std::uint32_t> members) {
        end_.clear();
        bytes_.clear();
        bool has_groups = false;
        for (std::uint32_t r : members) {
            const std::size_t start = bytes_.size();
            int n_groups = write_row(r);
            if (takes_all_groups(bytes_.size() - start)) {
                bytes_.resize(start);
                n_groups = write_all_groups(r, bytes_);
            }
            end_.push_back(static_cast<std::uint32_t>(bytes_.size()) | (n_groups > 0 ? row_has_groups : 0));
            has_groups |= n_groups > 0;
        }
        const bool is_wide = has_groups || bytes_.size() > 2 * 255;
        for (std::uint32_t e : end_) {
            rows.push_back(static_cast<std::uint8_t>(is_wide ? e : e / 2));
            if (is_wide) rows.push_back(static_cast<std::uint8_t>(e >> 8));
        }
        rows.insert(rows.end(), bytes_.begin(), bytes_.end());
        return is_wide ? wide_chunk : 0;
    }

    /// Appends a row to bytes_: its groups of many weights with their number, then all other weights as pairs. Returns
    /// how many groups.
    int write_row(std::uint32_t r) {
        const std::uint32_t first = panel_.row_group[r], last = panel_.row_group[r + 1];
        const std::size_t start = bytes_.size();
        bytes_.resize(start + 1 + std::size_t{last - first} * (1 + group_columns));  // at most; pairs take less
        std::uint8_t* at = bytes_.data() + start + 1;
        int n_groups = 0;
        const auto weights = [&](std::uint32_t g) {
            return panel_.group_weight.data() + std::size_t{group_columns} * g;
        };
        for (std::uint32_t g = first; g < last; ++g) {
            if (n_weights(weights_in_use(weights(g))) < dense_group) continue;
            *at++ = panel_.group_id[g];
            std::memcpy(at, weights(g), group_columns);
            at += group_columns;
            ++n_groups;
        }
        if (n_groups > 0)
            bytes_[start] = static_cast<std::uint8_t>(n_groups);
        else
            --at;
        for (std::uint32_t g = first; g < last; ++g) {
            std::uint64_t in_use = weights_in_use(weights(g));
            if (n_weights(in_use) >= dense_group) continue;
            for (; in_use != 0; in_use &= in_use - 1) {
                const int c = std::countr_zero(in_use) / 8;
                *at++ = static_cast<std::uint8_t>(panel_.group_id[g] * group_columns + c);
                *at++ = static_cast<std::uint8_t>(weights(g)[c]);
            }
        }
        bytes_.resize(static_cast<std::size_t>(at - bytes_.data()));
        return n_groups;
    }

    std::size_t all_groups() const { return (panel_.child.size() + group_columns - 1) / group_columns; }

    /// Whether a row of so many bytes is better written as all groups of the panel.
    bool takes_all_groups(std::size_t n_bytes) const {
        return 1 + all_groups() * (1 + group_columns) <= (is_large_ ? 1 : full_row_bytes) * n_bytes;
    }

    /// A row as all groups in order, those without weights too. Returns their number.
    std::uint8_t write_all_groups(std::uint32_t r, std::vector<std::uint8_t>& bytes) const {
        const std::size_t n_groups = all_groups(), start = bytes.size() + 1;
        bytes.push_back(static_cast<std::uint8_t>(n_groups));
        bytes.resize(start + n_groups * (1 + group_columns), 0);
        auto group = [&](std::size_t g) { return bytes.data() + start + g * (1 + group_columns); };
        for (std::size_t g = 0; g < n_groups; ++g) *group(g) = static_cast<std::uint8_t>(g);
        for (std::uint32_t g = panel_.row_group[r]; g < panel_.row_group[r + 1]; ++g)
            std::memcpy(group(panel_.group_id[g]) + 1, panel_.group_weight.data() + std::size_t{group_columns} * g,
                        group_columns);
        return static_cast<std::uint8_t>(n_groups);
    }

    const Panel& panel_;
    bool is_large_;                    ///< see full_row_bytes
    std::vector<std::uint32_t> end_;   ///< of the rows of a chunk
    std::vector<std::uint8_t> bytes_;  ///< those rows
};

/// Whether a chunk's rows lie inside `size` bytes and name only groups that the panel has; its own size, or -1. A
/// pair's column is a byte, and there is room for 256 sums: no pair can write elsewhere.
inline std::int64_t checked_chunk(const std::uint8_t* chunk, bool is_wide, int n_rows, std::int64_t size,
                                  std::int64_t n_columns) {
    const std::int64_t header = std::int64_t{n_rows} << is_wide;
    if (header > size) return -1;
    if (!is_wide) {  // most chunks: only where rows end can be wrong
        std::uint8_t last = 0;
        bool rises = true;
        for (int place = 0; place < n_rows; ++place) {
            rises &= chunk[place] >= last;
            last = chunk[place];
        }
        return rises && header + 2 * last <= size ? header + 2 * last : -1;
    }
    std::uint32_t begin = 0;
    for (int place = 0; place < n_rows; ++place) {
        const RowEnd end = row_end(chunk, is_wide, place);
        if (end.byte < begin || header + end.byte > size) return -1;
        const std::uint8_t *at = chunk + header + begin, *stop = chunk + header + end.byte;
        if (end.has_groups) {
            if (at == stop || stop - at - 1 < *at * (group_columns + 1)) return -1;
            const int n_groups = *at++;
            const bool is_full = n_groups == (n_columns + group_columns - 1) / group_columns;
            for (int g = 0; g < n_groups; ++g, at += group_columns + 1)
                if (*at * group_columns >= n_columns || (is_full && *at != g)) return -1;
            if (is_full && at != stop) return -1;
        }
        if ((stop - at) % 2 != 0) return -1;
        begin = end.byte;
    }
    return header + begin;
}

}  // namespace ramify
