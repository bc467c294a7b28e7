/// Neighbouring features that nearly all columns of a panel have a weight for, such as the floats of an embedding.
///
/// Their weights need no index: they lie in order, a signed byte for each column, columns rounded up to whole groups. A
/// panel that has such a run begins with it: a header of two numbers (first feature, number of features), then the
/// weights; the chunks of all other features follow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "plt/panel_rows.hpp"

namespace ramify {

/// In PanelRecord::bucket_bits, added to what it says about the other features: the panel begins with a dense run.
inline constexpr std::int64_t dense_run_mark = 1 << 20;
inline constexpr int least_dense_features = 64;
inline constexpr int dense_header = 2 * sizeof(std::uint32_t);

inline bool has_dense_run(std::int64_t bucket_bits) { return bucket_bits >= dense_run_mark + bitmap_index; }

inline int dense_stride(std::int64_t n_columns) {
    return static_cast<int>((n_columns + group_columns - 1) / group_columns * group_columns);
}

/// A dense run in the bytes of a panel; not owned.
struct DenseRun {
    std::uint32_t first = 0, n_features = 0;
    const std::int8_t* weights = nullptr;

    /// `bytes` has at least a header.
    static DenseRun read(const std::uint8_t* bytes) {
        DenseRun run;
        std::memcpy(&run.first, bytes, sizeof run.first);
        std::memcpy(&run.n_features, bytes + sizeof run.first, sizeof run.n_features);
        run.weights = reinterpret_cast<const std::int8_t*>(bytes + dense_header);
        return run;
    }

    std::int64_t n_bytes(std::int64_t n_columns) const {
        return dense_header + std::int64_t{n_features} * dense_stride(n_columns);
    }

    bool has(std::uint32_t feature) const { return feature - first < n_features; }

    /// The entries of a row, which rise, that belong to the run.
    std::span<const Entry> part_of(std::span<const Entry> x) const {
        auto at = [&](std::uint64_t feature) {
            return std::lower_bound(x.begin(), x.end(), feature,
                                    [](const Entry& e, std::uint64_t f) { return e.feature < f; });
        };
        return {at(first), at(std::uint64_t{first} + n_features)};
    }
};

/// What a row takes in a wide chunk.
inline std::int64_t chunk_row_bytes(const Panel& panel, std::size_t row) {
    std::int64_t bytes = 2, n_groups = 0;
    for (std::uint32_t g = panel.row_group[row]; g < panel.row_group[row + 1]; ++g) {
        const std::int8_t* weight = panel.group_weight.data() + std::size_t{group_columns} * g;
        const int n = n_weights(weights_in_use(weight));
        n_groups += n >= dense_group;
        bytes += n >= dense_group ? 1 + group_columns : 2 * n;
    }
    return bytes + (n_groups > 0);
}

/// Takes the run of a panel, if it has one, out of its rows. Returns its bytes, header included; empty if there is
/// none.
///
/// The run is the one that saves most bytes, found in one pass as the neighbouring rows of the largest sum; a feature
/// without weights inside it costs a whole row. Bytes of a run count four fifths: they are read faster.
inline std::vector<std::uint8_t> take_dense_run(Panel& panel) {
    const int stride = dense_stride(static_cast<std::int64_t>(panel.child.size()));
    const std::size_t n_rows = panel.feature.size();
    std::int64_t sum = 0, largest = 0;
    std::size_t first = 0, best_first = 0, best_end = 0;
    for (std::size_t r = 0; r < n_rows; ++r) {
        if (r > first) sum -= std::int64_t{4 * stride} * (panel.feature[r] - panel.feature[r - 1] - 1);
        if (sum <= 0) sum = 0, first = r;
        sum += 5 * chunk_row_bytes(panel, r) - 4 * stride;
        if (sum > largest) largest = sum, best_first = first, best_end = r + 1;
    }
    if (best_end == 0) return {};
    const std::uint32_t begin = panel.feature[best_first], n = panel.feature[best_end - 1] - begin + 1;
    if (n < least_dense_features || std::uint64_t{n} * stride >= wide_chunk / 2) return {};
    std::vector<std::uint8_t> bytes(dense_header + std::size_t{n} * stride, 0);
    std::memcpy(bytes.data(), &begin, sizeof begin);
    std::memcpy(bytes.data() + sizeof begin, &n, sizeof n);
    Panel rest;
    for (std::size_t r = 0; r < n_rows; ++r) {
        const std::uint32_t group = panel.row_group[r], end = panel.row_group[r + 1];
        if (r >= best_first && r < best_end) {
            std::uint8_t* row = bytes.data() + dense_header + std::size_t{panel.feature[r] - begin} * stride;
            for (std::uint32_t g = group; g < end; ++g)
                std::memcpy(row + panel.group_id[g] * group_columns,
                            panel.group_weight.data() + std::size_t{g} * group_columns, group_columns);
            continue;
        }
        rest.feature.push_back(panel.feature[r]);
        rest.group_id.insert(rest.group_id.end(), panel.group_id.begin() + group, panel.group_id.begin() + end);
        rest.group_weight.insert(rest.group_weight.end(),
                                 panel.group_weight.begin() + std::ptrdiff_t{group} * group_columns,
                                 panel.group_weight.begin() + std::ptrdiff_t{end} * group_columns);
        rest.row_group.push_back(static_cast<std::uint32_t>(rest.group_id.size()));
    }
    panel.feature = std::move(rest.feature);
    panel.row_group = std::move(rest.row_group);
    panel.group_id = std::move(rest.group_id);
    panel.group_weight = std::move(rest.group_weight);
    return bytes;
}

}  // namespace ramify
