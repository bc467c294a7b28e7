/// Rows of few weights in a large panel, packed: twelve bits a weight, and one bit for where a row may end.
///
/// Near the leaves of a large tree most features have one or two weights in a panel. A packed weight is a column and
/// one of sixteen values, which the panel has for itself: those of least squared error (Lloyd's quantiser). Rows with
/// groups or with many weights are not packed, so that the bias and frequent features keep their precision.
///
/// The bytes: a header (number of all bytes, the values in 1/256), the index (for each 128 neighbouring features where
/// their chunk begins and a bitmap), the chunks, and padding that reads of whole words may touch. A chunk of a block
/// without rows has no bytes. The others begin with their number of weights; then come a bit for each weight, set for
/// the last of a row, and the weights, column first.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "plt/panel_rows.hpp"

namespace ramify {

/// In PanelRecord::bucket_bits, added to what it says about the other rows: the panel begins with packed rows.
inline constexpr std::int64_t packed_mark = 1 << 21;
inline constexpr int packed_header = sizeof(std::uint32_t) + packed_values * sizeof(std::int16_t);
inline constexpr float packed_unit = 256.0f;    ///< a value is stored as so many times itself
inline constexpr int most_packed_weights = 16;  ///< of a row
inline constexpr int largest_packed = 64;       ///< weights above half of their column's largest
                                                ///< say much and are few: they keep a byte
inline constexpr std::size_t least_packed_weights = std::size_t{1} << 13;  ///< of a panel

inline bool has_packed_rows(std::int64_t bucket_bits) { return bucket_bits >= packed_mark + bitmap_index; }

/// The packed rows in the bytes of a panel; not owned.
struct PackedRows {
    std::uint32_t n_bytes = 0;  ///< 0: the panel has none
    std::array<float, packed_values> value{};
    const std::uint8_t* index = nullptr;
    const std::uint8_t* chunks = nullptr;

    static std::int64_t n_blocks(std::int64_t n_features) {
        return (n_features + features_per_block - 1) / features_per_block;
    }
    static std::int64_t least_bytes(std::int64_t n_features) {
        return packed_header + n_blocks(n_features) * packed_index_bytes + packed_padding;
    }

    /// `bytes` has at least the least number.
    static PackedRows read(const std::uint8_t* bytes, std::int64_t n_features) {
        PackedRows packed;
        std::memcpy(&packed.n_bytes, bytes, sizeof packed.n_bytes);
        for (int k = 0; k < packed_values; ++k) {
            std::int16_t stored;
            std::memcpy(&stored, bytes + sizeof packed.n_bytes + sizeof stored * k, sizeof stored);
            packed.value[k] = static_cast<float>(stored) / packed_unit;
        }
        packed.index = bytes + packed_header;
        packed.chunks = packed.index + n_blocks(n_features) * packed_index_bytes;
        return packed;
    }

    /// Whether no search can read outside these bytes, of which there are at most so many; checked once.
    bool is_sound(std::int64_t n_features, std::int64_t most_bytes) const {
        if (n_bytes < least_bytes(n_features) || n_bytes > most_bytes) return false;
        const std::int64_t n_chunk_bytes = n_bytes - least_bytes(n_features);
        std::int64_t at = 0;
        for (std::int64_t b = 0; b < n_blocks(n_features); ++b) {
            std::uint32_t begin;
            std::array<std::uint64_t, features_per_block / 64> bits;
            std::memcpy(&begin, index + b * packed_index_bytes, sizeof begin);
            std::memcpy(bits.data(), index + b * packed_index_bytes + sizeof begin, sizeof bits);
            if (begin != at) return false;
            int n_rows = 0;
            for (std::uint64_t word : bits) n_rows += std::popcount(word);
            const std::int64_t size = checked_chunk(chunks + at, n_rows, n_chunk_bytes - at);
            if (size < 0) return false;
            at += size;
        }
        return at == n_chunk_bytes;
    }

private:
    /// The size of a chunk, or -1: it has so many rows, none too long, inside so many bytes.
    static std::int64_t checked_chunk(const std::uint8_t* chunk, int n_rows, std::int64_t size) {
        if (n_rows == 0) return 0;
        if (size < static_cast<std::int64_t>(sizeof(std::uint16_t))) return -1;
        std::uint16_t n_weights;
        std::memcpy(&n_weights, chunk, sizeof n_weights);
        const std::int64_t needed = packed_weights_at(n_weights) + (3 * std::int64_t{n_weights} + 1) / 2;
        if (n_weights == 0 || needed > size) return -1;
        const std::uint8_t* bits = chunk + sizeof n_weights;
        int length = 0;
        for (int i = 0; i < n_weights; ++i) {
            if (++length > most_packed_weights) return -1;
            if ((bits[i / 8] >> (i % 8) & 1) != 0) length = 0, --n_rows;
        }
        return n_rows == 0 && length == 0 ? needed : -1;
    }
};

/// The sixteen values of least squared error for signed bytes of these counts (of -128, …, 127), in rising order.
inline std::array<double, packed_values> best_values(const std::array<std::int64_t, 256>& count) {
    std::array<double, packed_values> value{};
    double total = 0, seen = 0;
    for (std::int64_t n : count) total += static_cast<double>(n);
    std::size_t n_started = 0;
    for (int v = 0; v < 256; ++v) {  // equally frequent ones to start with
        seen += static_cast<double>(count[v]);
        while (n_started < value.size() && seen >= total * (static_cast<double>(n_started) + 0.5) / packed_values)
            value[n_started++] = v - 128;
    }
    constexpr int most_rounds = 50;
    bool moved = true;
    for (int round = 0; round < most_rounds && moved; ++round) {
        std::array<double, packed_values> sum{}, n{}, error{};
        std::array<double, packed_values> farthest{}, distance{};
        std::size_t k = 0;
        for (int v = 0; v < 256; ++v) {
            if (count[v] == 0) continue;
            const double w = v - 128, times = static_cast<double>(count[v]);
            while (k + 1 < value.size() && value[k + 1] - w <= w - value[k]) ++k;
            sum[k] += times * w;
            n[k] += times;
            const double squared = (w - value[k]) * (w - value[k]);
            error[k] += times * squared;
            if (squared > distance[k]) distance[k] = squared, farthest[k] = w;
        }
        moved = false;
        for (std::size_t i = 0; i < value.size(); ++i) {
            double next = value[i];
            if (n[i] > 0) {
                next = sum[i] / n[i];
            } else {  // an unused value goes where the error is largest
                const auto worst = static_cast<std::size_t>(std::ranges::max_element(error) - error.begin());
                if (error[worst] == 0) continue;
                next = farthest[worst];
                error[worst] = 0;
            }
            moved |= next != value[i];
            value[i] = next;
        }
        std::ranges::sort(value);
    }
    return value;
}

/// Takes the rows of few weights out of a large panel, packed, if that makes it clearly smaller; else empty.
class RowPacker {
public:
    RowPacker(Panel& panel, std::int64_t n_features) : panel_(panel), n_features_(n_features) {
        const std::size_t n_rows = panel.feature.size();
        is_packed_.resize(n_rows);
        std::array<std::int64_t, 256> count{};
        std::size_t n_packed_rows = 0;
        for (std::size_t r = 0; r < n_rows; ++r)
            if (const int n = packed_weights(r); n > 0) {
                is_packed_[r] = true;
                ++n_packed_rows;
                n_weights_ += static_cast<std::size_t>(n);
                for_each_weight(r, [&](int, std::int8_t weight) { ++count[weight + 128]; });
            }
        if (n_weights_ < least_packed_weights || !saves_bytes(n_packed_rows)) return;
        pack(best_values(count));
        keep_others();
    }

    std::vector<std::uint8_t> bytes;

private:
    const std::int8_t* weights(std::uint32_t group) const {
        return panel_.group_weight.data() + std::size_t{group} * group_columns;
    }

    template <class Visit>
    void for_each_weight(std::size_t row, Visit&& visit) const {
        for (std::uint32_t g = panel_.row_group[row]; g < panel_.row_group[row + 1]; ++g)
            for (int c = 0; c < group_columns; ++c)
                if (const std::int8_t weight = weights(g)[c]; weight != 0)
                    visit(panel_.group_id[g] * group_columns + c, weight);
    }

    /// How many weights a row has if it is to be packed, else 0.
    int packed_weights(std::size_t row) const {
        std::ptrdiff_t n = 0;
        for (std::uint32_t g = panel_.row_group[row]; g < panel_.row_group[row + 1]; ++g) {
            const std::span<const std::int8_t> weight(weights(g), group_columns);
            const auto of_group = group_columns - std::ranges::count(weight, std::int8_t{0});
            n += of_group;
            if (of_group >= dense_group || n > most_packed_weights) return 0;
            if (std::ranges::any_of(weight, [](int w) { return std::abs(w) > largest_packed; })) return 0;
        }
        return static_cast<int>(n);
    }

    /// Compared with pairs, ends of rows, and the smaller index of two.
    bool saves_bytes(std::size_t n_packed_rows) const {
        const auto n_words = static_cast<std::size_t>(n_features_ + features_per_word - 1) / features_per_word;
        const std::size_t pairs = 2 * n_weights_ + n_packed_rows + std::min(12 * n_words, 5 * n_packed_rows / 2);
        const std::size_t packed = static_cast<std::size_t>(PackedRows::least_bytes(n_features_)) +
                                   13 * n_weights_ / 8 + 2 * n_words / (features_per_block / features_per_word);
        return 10 * packed < 9 * pairs && pairs < wide_chunk / 2;
    }

    template <class Number>
    void append(Number number) {
        const auto* first = reinterpret_cast<const std::uint8_t*>(&number);
        bytes.insert(bytes.end(), first, first + sizeof number);
    }

    void pack(const std::array<double, packed_values>& value) {
        std::array<std::uint8_t, 256> code{};
        for (int v = 0; v < 256; ++v) {
            auto distance = [&](double to) { return std::abs(to - (v - 128)); };
            code[v] = static_cast<std::uint8_t>(std::ranges::min_element(value, {}, distance) - value.begin());
        }
        append(std::uint32_t{0});  // the number of bytes, when it is known
        for (double v : value) append(static_cast<std::int16_t>(std::lrint(v * packed_unit)));
        const std::int64_t n_blocks = PackedRows::n_blocks(n_features_);
        bytes.reserve(static_cast<std::size_t>(PackedRows::least_bytes(n_features_)) + 7 * n_weights_ / 4);
        const std::size_t index = bytes.size();
        bytes.resize(index + static_cast<std::size_t>(n_blocks) * packed_index_bytes, 0);
        const std::size_t chunks = bytes.size();
        std::size_t row = 0;
        std::vector<std::uint16_t> weight;
        std::vector<std::uint8_t> last;
        for (std::int64_t b = 0; b < n_blocks; ++b) {
            const auto at = static_cast<std::uint32_t>(bytes.size() - chunks);
            std::array<std::uint64_t, features_per_block / 64> bits{};
            weight.clear();
            last.clear();
            for (; row < is_packed_.size() && panel_.feature[row] < (b + 1) * features_per_block; ++row) {
                if (!is_packed_[row]) continue;
                const std::uint32_t place = panel_.feature[row] % features_per_block;
                bits[place / 64] |= std::uint64_t{1} << (place % 64);
                for_each_weight(row, [&](int column, std::int8_t w) {
                    weight.push_back(static_cast<std::uint16_t>(column | code[w + 128] << 8));
                    last.push_back(0);
                });
                last.back() = 1;
            }
            std::uint8_t* entry = bytes.data() + index + static_cast<std::size_t>(b) * packed_index_bytes;
            std::memcpy(entry, &at, sizeof at);
            std::memcpy(entry + sizeof at, bits.data(), sizeof bits);
            write_chunk(weight, last);
        }
        bytes.resize(bytes.size() + packed_padding, 0);
        const auto n_bytes = static_cast<std::uint32_t>(bytes.size());
        std::memcpy(bytes.data(), &n_bytes, sizeof n_bytes);
    }

    void write_chunk(std::span<const std::uint16_t> weight, std::span<const std::uint8_t> last) {
        if (weight.empty()) return;
        const std::size_t begin = bytes.size(), data = begin + packed_weights_at(static_cast<int>(weight.size()));
        append(static_cast<std::uint16_t>(weight.size()));
        bytes.resize(data + (3 * weight.size() + 1) / 2, 0);
        for (std::size_t i = 0; i < weight.size(); ++i) {
            bytes[begin + sizeof(std::uint16_t) + i / 8] |= static_cast<std::uint8_t>(last[i] << (i % 8));
            const unsigned shifted = static_cast<unsigned>(weight[i]) << (i % 2 * 4);
            bytes[data + 3 * i / 2] |= static_cast<std::uint8_t>(shifted);
            bytes[data + 3 * i / 2 + 1] |= static_cast<std::uint8_t>(shifted >> 8);
        }
    }

    void keep_others() {
        Panel rest;
        for (std::size_t r = 0; r < is_packed_.size(); ++r) {
            if (is_packed_[r]) continue;
            const std::uint32_t begin = panel_.row_group[r], end = panel_.row_group[r + 1];
            rest.feature.push_back(panel_.feature[r]);
            rest.group_id.insert(rest.group_id.end(), panel_.group_id.begin() + begin, panel_.group_id.begin() + end);
            rest.group_weight.insert(rest.group_weight.end(), weights(begin), weights(end));
            rest.row_group.push_back(static_cast<std::uint32_t>(rest.group_id.size()));
        }
        panel_.feature = std::move(rest.feature);
        panel_.row_group = std::move(rest.row_group);
        panel_.group_id = std::move(rest.group_id);
        panel_.group_weight = std::move(rest.group_weight);
    }

    Panel& panel_;
    std::int64_t n_features_;
    std::vector<bool> is_packed_;
    std::size_t n_weights_ = 0;
};

}  // namespace ramify
