/// Frozen sibling blocks: what a trained model keeps of a node's children, as a few flat arrays that can be memory-mapped.
///
/// The children of a node are cut into panels of at most 256 columns. A panel maps a feature to a row; a row is a list
/// of groups, each holding the weights of 8 neighbouring columns as signed bytes (times a scale per column). Groups whose
/// weights were all pruned are not stored. A row is found by a bitmap with ranks where the panel knows many of the
/// features, and by hash buckets where it knows few. A hashed panel has no rows: its weights are in `table`, shared by all nodes
/// (hashed_blocks.hpp).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "hashing.hpp"
#include "kernels.hpp"
#include "label_tree.hpp"

namespace ramify {

inline constexpr int max_panel_columns = 256;
inline constexpr std::int64_t bitmap_index = -1;
inline constexpr std::int64_t hashed_index = -2;

/// One line of the `panels` array.
struct PanelRecord {
    std::int64_t node;          ///< whose children these are; n_nodes stands for the root's own classifier
    std::int64_t first_column;  ///< into column_child, column_scale
    std::int64_t n_columns;
    std::int64_t first_row;  ///< into row_group, which has n_rows + 1 entries for a panel
    std::int64_t n_rows;
    std::int64_t first_group;
    std::int64_t bucket_bits;  ///< bitmap_index, hashed_index, or the logarithm of the number of buckets
    std::int64_t index_begin;  ///< into bitmap and rank, or into bucket
    std::int64_t key_begin;    ///< into key; unused by a bitmap; of a hashed panel the number of its first tile
};
inline constexpr int panel_fields = sizeof(PanelRecord) / sizeof(std::int64_t);

inline std::uint32_t bucket_of(std::uint32_t feature, std::int64_t bits) {
    return bits == 0 ? 0 : (feature * 2654435769u) >> (32 - bits);
}

template <template <class> class Array>
struct BlockArrays {
    Array<std::int64_t> panels;  ///< PanelRecord, flattened
    Array<std::int32_t> column_child;
    Array<float> column_scale;
    Array<std::uint32_t> row_group;
    Array<std::uint8_t> group_id;
    Array<std::int8_t> group_weight;
    Array<std::uint64_t> bitmap;
    Array<std::uint32_t> rank;
    Array<std::uint32_t> bucket;
    Array<std::uint32_t> key;
    Array<float> table;  ///< of hashed panels, 2^hash_bits
};
template <class T>
using OwnedArray = std::vector<T>;
template <class T>
using ArrayView = std::span<const T>;

using BlockStorage = BlockArrays<OwnedArray>;

/// A panel before it joins the flat arrays: rows in order of feature.
struct Panel {
    std::int64_t node = 0;
    std::vector<std::int32_t> child;
    std::vector<float> scale;
    std::vector<std::uint32_t> feature;
    std::vector<std::uint32_t> row_group{0};
    std::vector<std::uint8_t> group_id;
    std::vector<std::int8_t> group_weight;
};

/// Makes room for the largest arrays of all these panels at once.
inline void reserve(BlockStorage& out, std::span<const Panel> panels) {
    std::size_t n_columns = 0, n_rows = 0, n_groups = 0;
    for (const Panel& panel : panels) {
        n_columns += panel.child.size();
        n_rows += panel.row_group.size();
        n_groups += panel.group_id.size();
    }
    out.panels.reserve(panels.size() * panel_fields);
    out.column_child.reserve(n_columns);
    out.column_scale.reserve(n_columns);
    out.row_group.reserve(n_rows);
    out.group_id.reserve(n_groups);
    out.group_weight.reserve(n_groups * group_columns);
}

/// Appends a panel, choosing its index.
inline void append_panel(BlockStorage& out, const Panel& panel, std::int64_t n_features) {
    const auto n_rows = static_cast<std::int64_t>(panel.feature.size());
    PanelRecord record{panel.node,
                       static_cast<std::int64_t>(out.column_child.size()),
                       static_cast<std::int64_t>(panel.child.size()),
                       static_cast<std::int64_t>(out.row_group.size()),
                       n_rows,
                       static_cast<std::int64_t>(out.group_id.size()),
                       bitmap_index,
                       static_cast<std::int64_t>(out.bitmap.size()),
                       static_cast<std::int64_t>(out.key.size())};
    out.column_child.insert(out.column_child.end(), panel.child.begin(), panel.child.end());
    out.column_scale.insert(out.column_scale.end(), panel.scale.begin(), panel.scale.end());
    if (n_rows * 32 >= n_features) {  // the bitmap is the smaller and the faster one
        const std::size_t n_words = static_cast<std::size_t>(n_features + 63) / 64, base = out.bitmap.size();
        out.bitmap.resize(base + n_words, 0);
        out.rank.resize(base + n_words, 0);
        for (std::uint32_t f : panel.feature) out.bitmap[base + f / 64] |= 1ull << (f % 64);
        std::uint32_t before = 0;
        for (std::size_t w = base; w < base + n_words; ++w) {
            out.rank[w] = before;
            before += static_cast<std::uint32_t>(std::popcount(out.bitmap[w]));
        }
        out.row_group.insert(out.row_group.end(), panel.row_group.begin(), panel.row_group.end());
        out.group_id.insert(out.group_id.end(), panel.group_id.begin(), panel.group_id.end());
        out.group_weight.insert(out.group_weight.end(), panel.group_weight.begin(), panel.group_weight.end());
    } else {  // rows in order of bucket, about four to a bucket
        const int bits = std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n_rows))) - 2);
        record.bucket_bits = bits;
        record.index_begin = static_cast<std::int64_t>(out.bucket.size());
        std::vector<std::uint32_t> start((1u << bits) + 1, 0);
        for (std::uint32_t f : panel.feature) ++start[bucket_of(f, bits) + 1];
        for (std::size_t b = 1; b < start.size(); ++b) start[b] += start[b - 1];
        out.bucket.insert(out.bucket.end(), start.begin(), start.end());
        std::vector<std::uint32_t> from(n_rows);
        for (std::uint32_t r = 0; r < n_rows; ++r) from[start[bucket_of(panel.feature[r], bits)]++] = r;
        out.row_group.push_back(0);
        for (std::uint32_t r : from) {
            out.key.push_back(panel.feature[r]);
            const std::uint32_t a = panel.row_group[r], b = panel.row_group[r + 1];
            out.group_id.insert(out.group_id.end(), panel.group_id.begin() + a, panel.group_id.begin() + b);
            out.group_weight.insert(out.group_weight.end(), panel.group_weight.begin() + std::ptrdiff_t{8} * a,
                                    panel.group_weight.begin() + std::ptrdiff_t{8} * b);
            out.row_group.push_back(out.row_group.back() + (b - a));
        }
    }
    const auto* fields = reinterpret_cast<const std::int64_t*>(&record);
    out.panels.insert(out.panels.end(), fields, fields + panel_fields);
}

/// Scratch space for scoring one row; reused from row to row.
struct ScoreScratch {
    std::vector<std::uint32_t> matched_row;
    std::vector<float> matched_value;
    std::vector<float> score;          ///< of the node's columns, in the order of `child`
    std::vector<std::int32_t> child;   ///< position among the node's children
};

/// Read-only view of the arrays, checked once so that no damaged file can make the loops below read outside them.
struct FrozenBlocks : BlockArrays<ArrayView> {
    std::int64_t n_features = 0;  ///< including the bias feature
    std::vector<std::int32_t> panel_begin;  ///< per node, and one more for the root's own classifier

    const PanelRecord& panel(std::size_t i) const { return reinterpret_cast<const PanelRecord*>(panels.data())[i]; }
    std::size_t n_panels() const { return panels.size() / panel_fields; }

    void attach(const TreeView& tree) {
        if (panels.size() % panel_fields != 0) fail("panels");
        if (column_child.size() != column_scale.size()) fail("column_scale");
        if (group_weight.size() != group_id.size() * group_columns) fail("group_weight");
        if (bitmap.size() != rank.size()) fail("rank");
        panel_begin.assign(tree.n_nodes() + 2, 0);
        std::int64_t last_node = 0;
        std::vector<bool> has_column(tree.n_nodes());  // a child met twice would be searched twice, and its children four times
        for (std::size_t i = 0; i < n_panels(); ++i) {
            check_panel(i, tree, last_node);
            for (std::int32_t child : column_child.subspan(panel(i).first_column, panel(i).n_columns)) {
                const std::size_t at = panel(i).node == tree.n_nodes() ? 0 : tree.first_child[panel(i).node] + child;
                if (has_column[at]) fail("column_child");
                has_column[at] = true;
            }
            last_node = panel(i).node;
            panel_begin[last_node + 1] = static_cast<std::int32_t>(i) + 1;
        }
        for (std::size_t v = 1; v < panel_begin.size(); ++v) panel_begin[v] = std::max(panel_begin[v], panel_begin[v - 1]);
    }

    bool has(int node) const { return panel_begin[node] < panel_begin[node + 1]; }

    /// Raw scores of a node's children, into scratch.score and scratch.child.
    void score(int node, std::span<const Entry> x, ScoreScratch& scratch, LinkMap map) const {
        scratch.score.clear();
        scratch.child.clear();
        for (int i = panel_begin[node]; i < panel_begin[node + 1]; ++i) score_panel(panel(i), x, scratch, map);
    }

    /// The weight of a panel's column for a feature.
    float weight(const PanelRecord& p, std::uint32_t feature, int column) const {
        if (p.bucket_bits == hashed_index) {
            const int tile = column / max_tile_columns;
            const int stride = hashed_stride(tile_columns(p, tile));
            const HashedTile hashed(p.node, p.key_begin + tile, stride, table.size());
            return table[static_cast<std::size_t>(hashed.slot(feature)) * stride + column % max_tile_columns];
        }
        const std::int64_t row = find_row(p, feature);
        if (row < 0) return 0.0f;
        for (std::uint32_t g = row_group[p.first_row + row]; g < row_group[p.first_row + row + 1]; ++g)
            if (group_id[p.first_group + g] == column / group_columns)
                return group_weight[(p.first_group + g) * group_columns + column % group_columns] * column_scale[p.first_column + column];
        return 0.0f;
    }

private:
    static int tile_columns(const PanelRecord& p, int tile) {
        return std::min<int>(max_tile_columns, static_cast<int>(p.n_columns) - tile * max_tile_columns);
    }

    /// The row of a feature in a panel, or -1.
    std::int64_t find_row(const PanelRecord& p, std::uint32_t feature) const {
        if (p.bucket_bits == bitmap_index) {
            const std::size_t word = p.index_begin + feature / 64;
            const std::uint64_t bits = bitmap[word];
            if (!(bits >> (feature % 64) & 1)) return -1;
            return rank[word] + std::popcount(bits & ((1ull << (feature % 64)) - 1));
        }
        const std::size_t b = p.index_begin + bucket_of(feature, p.bucket_bits);
        for (std::uint32_t r = bucket[b]; r < bucket[b + 1]; ++r)
            if (key[p.key_begin + r] == feature) return r;
        return -1;
    }

    [[noreturn]] static void fail(const std::string& what) {
        throw std::invalid_argument("model arrays do not fit together: " + what);
    }

    void check_panel(std::size_t i, const TreeView& tree, std::int64_t last_node) const {
        const PanelRecord& p = panel(i);
        auto inside = [](std::int64_t first, std::int64_t n, std::size_t size) {
            return first >= 0 && n >= 0 && first <= static_cast<std::int64_t>(size) && n <= static_cast<std::int64_t>(size) - first;
        };
        const bool is_root_gate = p.node == tree.n_nodes();
        if (p.node < last_node || p.node > tree.n_nodes() || (!is_root_gate && tree.is_leaf(static_cast<int>(p.node)))) fail("panel node");
        const std::int64_t n_children = is_root_gate ? 1 : tree.n_children[p.node];
        if (p.n_columns < (is_root_gate ? 0 : 1) || p.n_columns > max_panel_columns || !inside(p.first_column, p.n_columns, column_child.size())) fail("panel columns");
        for (std::int64_t c = 0; c < p.n_columns; ++c) {
            const std::int32_t child = column_child[p.first_column + c];
            if (child < 0 || child >= n_children) fail("column_child");
            if (!std::isfinite(column_scale[p.first_column + c])) fail("column_scale");
        }
        if (p.bucket_bits == hashed_index) {
            if (table.size() < max_tile_columns || table.size() > std::uint64_t{1} << 32 || p.key_begin < 0 || p.key_begin >= 1 << 20) fail("table");
            return;
        }
        if (p.n_rows < 0 || p.n_rows > n_features || !inside(p.first_row, p.n_rows + 1, row_group.size())) fail("panel rows");
        const std::uint32_t* groups = row_group.data() + p.first_row;
        for (std::int64_t r = 0; r < p.n_rows; ++r)
            if (groups[r] > groups[r + 1]) fail("row_group");
        if (groups[0] != 0 || !inside(p.first_group, groups[p.n_rows], group_id.size())) fail("panel groups");
        const auto n_groups = static_cast<std::uint8_t>((p.n_columns + group_columns - 1) / group_columns);
        std::uint8_t largest = 0;
        for (std::uint32_t g = 0; g < groups[p.n_rows]; ++g) largest = std::max(largest, group_id[p.first_group + g]);
        if (largest >= n_groups && groups[p.n_rows] > 0) fail("group_id");
        if (p.bucket_bits == bitmap_index) {
            const std::int64_t n_words = (n_features + 63) / 64;
            if (!inside(p.index_begin, n_words, bitmap.size())) fail("bitmap");
            std::int64_t before = 0;
            for (std::int64_t w = p.index_begin; w < p.index_begin + n_words; ++w) {
                if (rank[w] != before) fail("rank");
                before += std::popcount(bitmap[w]);
            }
            if (before != p.n_rows) fail("bitmap");
        } else {
            if (p.bucket_bits < 0 || p.bucket_bits > 30 || !inside(p.index_begin, (std::int64_t{1} << p.bucket_bits) + 1, bucket.size()) ||
                !inside(p.key_begin, p.n_rows, key.size()))
                fail("bucket");
            const std::uint32_t* b = bucket.data() + p.index_begin;
            for (std::int64_t k = 0; k < std::int64_t{1} << p.bucket_bits; ++k)
                if (b[k] > b[k + 1]) fail("bucket");
            if (b[0] != 0 || b[std::int64_t{1} << p.bucket_bits] != p.n_rows) fail("bucket");
        }
    }

    void score_panel(const PanelRecord& p, std::span<const Entry> x, ScoreScratch& scratch, LinkMap map) const {
        alignas(64) float sums[max_panel_columns];
        const int n_columns = static_cast<int>(p.n_columns);
        std::fill_n(sums, (n_columns + group_columns - 1) / group_columns * group_columns, 0.0f);
        if (p.bucket_bits == hashed_index)
            sum_hashed(p, x, sums);
        else
            sum_rows(p, x, scratch, sums);
        kernels().to_logits(sums, column_scale.data() + p.first_column, n_columns, map);
        scratch.score.insert(scratch.score.end(), sums, sums + n_columns);
        scratch.child.insert(scratch.child.end(), column_child.begin() + p.first_column, column_child.begin() + p.first_column + p.n_columns);
    }

    void sum_hashed(const PanelRecord& p, std::span<const Entry> x, float* sums) const {
        for (int tile = 0; tile * max_tile_columns < p.n_columns; ++tile) {
            const int stride = hashed_stride(tile_columns(p, tile));
            const HashedTile hashed(p.node, p.key_begin + tile, stride, table.size());
            float* target = sums + tile * max_tile_columns;
            for (const Entry& e : x) {
                const float* w = table.data() + static_cast<std::size_t>(hashed.slot(e.feature)) * stride;
                for (int c = 0; c < stride; ++c) target[c] += e.value * w[c];
            }
        }
    }

    void sum_rows(const PanelRecord& p, std::span<const Entry> x, ScoreScratch& scratch, float* sums) const {
        scratch.matched_row.resize(x.size());
        scratch.matched_value.resize(x.size());
        std::uint32_t* row = scratch.matched_row.data();
        float* value = scratch.matched_value.data();
        int n = 0;
        if (p.bucket_bits == bitmap_index) {
            n = kernels().match_bitmap(x.data(), static_cast<int>(x.size()), bitmap.data() + p.index_begin, rank.data() + p.index_begin, row, value);
        } else {
            const std::uint32_t* start = bucket.data() + p.index_begin;
            const std::uint32_t* keys = key.data() + p.key_begin;
            for (const Entry& e : x) {
                const std::uint32_t b = bucket_of(e.feature, p.bucket_bits);
                for (std::uint32_t r = start[b]; r < start[b + 1]; ++r)
                    if (keys[r] == e.feature) {
                        row[n] = r;
                        value[n++] = e.value;
                        break;
                    }
            }
        }
        kernels().add_groups(row, value, n, row_group.data() + p.first_row, group_id.data() + p.first_group,
                             group_weight.data() + p.first_group * group_columns, sums);
    }
};

}  // namespace ramify
