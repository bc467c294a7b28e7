/// Frozen sibling blocks: what a trained model keeps of a node's children, as a few flat arrays that can be
/// memory-mapped.
///
/// The children of a node are cut into panels of at most 256 columns. A panel maps a feature to a row of weights,
/// signed bytes times a scale per column; pruned ones are not stored (panel_rows.hpp). A row is found by a bitmap where
/// the panel knows many of the features, and by hash buckets where it knows few. A hashed panel has no rows: its
/// weights are in `table`, shared by all nodes (hashed_blocks.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/flat_arrays.hpp"
#include "base/freed_memory.hpp"
#include "base/hashing.hpp"
#include "kernels/kernels.hpp"
#include "plt/dense_run.hpp"
#include "plt/packed_rows.hpp"
#include "plt/panel_rows.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

inline constexpr int max_panel_columns = 256;  ///< what a byte can number

/// One line of the `panels` array.
struct PanelRecord {
    std::int64_t node;          ///< whose children these are; n_nodes stands for the root's own classifier
    std::int64_t first_column;  ///< into column_child, column_scale, column_rate
    std::int64_t n_columns;
    std::int64_t n_rows;
    std::int64_t bucket_bits;  ///< bitmap_index, hashed_index, or the logarithm of the number of buckets; plus
                               ///< packed_mark and dense_run_mark if the rows begin with packed ones, a dense run
    std::int64_t index_begin;  ///< into index
    std::int64_t row_begin;    ///< into rows; of a hashed panel the number of its first tile
    std::int64_t n_bytes;      ///< of all its rows
};
inline constexpr int panel_fields = sizeof(PanelRecord) / sizeof(std::int64_t);

template <template <class> class Array>
struct BlockArrays {
    Array<std::int64_t> panels;  ///< PanelRecord, flattened
    Array<std::int32_t> column_child;
    Array<float> column_scale;
    Array<float> column_rate;  ///< log of the share of the node's rows for which the child is true; 0 where not known
    Array<std::uint32_t> index;
    Array<std::uint8_t> rows;
    Array<float> table;  ///< of hashed panels, 2^hash_bits
};
using BlockStorage = BlockArrays<OwnedArray>;

/// A panel before it joins the flat arrays.
struct FrozenPanel {
    PanelRecord record{};
    std::vector<std::int32_t> child;
    std::vector<float> scale, rate;
    std::vector<std::uint32_t> index;
    std::vector<std::uint8_t> rows;

    /// With `packs`, rows of few weights lose precision in large panels (packed_rows.hpp).
    FrozenPanel(Panel&& panel, std::int64_t n_features, bool packs = false) {
        record.node = panel.node;
        record.n_columns = static_cast<std::int64_t>(panel.child.size());
        const bool is_large = panel.is_large();
        if (packs) rows = RowPacker(panel, n_features).bytes;
        record.bucket_bits = rows.empty() ? 0 : packed_mark;
        const std::vector<std::uint8_t> run = take_dense_run(panel);
        record.bucket_bits += run.empty() ? 0 : dense_run_mark;
        RowWriter writer(panel, n_features, is_large);
        record.n_rows = static_cast<std::int64_t>(panel.feature.size());
        record.bucket_bits += writer.bucket_bits;
        child = std::move(panel.child);
        scale = std::move(panel.scale);
        rate = std::move(panel.rate);
        rate.resize(child.size(), 0.0f);
        index = std::move(writer.index);
        if (rows.empty() && run.empty()) {
            rows = std::move(writer.rows);
        } else {
            rows.insert(rows.end(), run.begin(), run.end());
            rows.insert(rows.end(), writer.rows.begin(), writer.rows.end());
        }
        rows.shrink_to_fit();
        record.n_bytes = static_cast<std::int64_t>(rows.size());
    }
};

/// Appends a panel to the flat arrays, and frees it.
inline void append_panel(BlockStorage& out, FrozenPanel&& panel) {
    panel.record.first_column = static_cast<std::int64_t>(out.column_child.size());
    panel.record.index_begin = static_cast<std::int64_t>(out.index.size());
    panel.record.row_begin = static_cast<std::int64_t>(out.rows.size());
    const auto* fields = reinterpret_cast<const std::int64_t*>(&panel.record);
    out.panels.insert(out.panels.end(), fields, fields + panel_fields);
    auto move_to = [](auto& target, auto& source) {
        target.insert(target.end(), source.begin(), source.end());
        std::remove_cvref_t<decltype(source)>().swap(source);  // assigning {} would keep its memory
    };
    move_to(out.column_child, panel.child);
    move_to(out.column_scale, panel.scale);
    move_to(out.column_rate, panel.rate);
    move_to(out.index, panel.index);
    move_to(out.rows, panel.rows);
}

inline BlockStorage join_panels(std::vector<FrozenPanel>&& panels) {
    BlockStorage out;
    std::size_t n_columns = 0, index_size = 0, n_bytes = 0;
    for (const FrozenPanel& panel : panels) {
        n_columns += panel.child.size();
        index_size += panel.index.size();
        n_bytes += panel.rows.size();
    }
    out.panels.reserve(panels.size() * panel_fields);  // exactly: growing by doubling would need three times the memory
    out.column_child.reserve(n_columns);
    out.column_scale.reserve(n_columns);
    out.column_rate.reserve(n_columns);
    out.index.reserve(index_size);
    out.rows.reserve(n_bytes);
    FreedMemory freed;
    for (FrozenPanel& panel : panels) {
        const std::size_t n = panel.rows.size() + panel.index.size() * sizeof(std::uint32_t);
        append_panel(out, std::move(panel));
        freed.add(n);
    }
    return out;
}

/// Scratch space for scoring one row; reused from row to row.
class ScoreScratch {
public:
    std::vector<RowMatch> match;
    std::span<float> score;               ///< of the node's columns, in the order of `child`; more room follows
    std::span<const std::int32_t> child;  ///< position among the node's children
    float claimed = 0;                    ///< if asked for: what the children claim together, each for itself

    /// Room for the scores of these children. A damaged pair may name any of 256 columns, also in the last panel.
    void begin(std::span<const std::int32_t> children) {
        const std::size_t needed = children.size() + max_panel_columns;
        if (room_.size() < needed) room_.resize(needed);
        score = std::span(room_).first(children.size());
        child = children;
    }

private:
    std::vector<float> room_;
};

/// Read-only view of the arrays, checked once so that no damaged file can make the loops below read outside them.
struct FrozenBlocks : BlockArrays<ArrayView> {
    std::int64_t n_features = 0;            ///< including the bias feature
    std::vector<std::int32_t> panel_begin;  ///< per node, and one more for the root's own classifier

    const PanelRecord& panel(std::size_t i) const { return reinterpret_cast<const PanelRecord*>(panels.data())[i]; }
    std::size_t n_panels() const { return panels.size() / panel_fields; }

    void attach(const TreeView& tree) {
        if (panels.size() % panel_fields != 0) refuse_arrays("panels");
        if (column_child.size() != column_scale.size()) refuse_arrays("column_scale");
        if (column_child.size() != column_rate.size()) refuse_arrays("column_rate");
        panel_begin.assign(tree.n_nodes() + 2, 0);
        std::int64_t last_node = 0, n_columns = 0;
        std::vector<bool> has_column(
            tree.n_nodes());  // a child met twice would be searched twice, and its children four times
        for (std::size_t i = 0; i < n_panels(); ++i) {
            check_panel(i, tree, last_node);
            if (panel(i).first_column != n_columns) refuse_arrays("panel columns");  // a node's lie side by side
            n_columns += panel(i).n_columns;
            for (std::int32_t child : column_child.subspan(panel(i).first_column, panel(i).n_columns)) {
                const std::size_t at = panel(i).node == tree.n_nodes() ? 0 : tree.first_child[panel(i).node] + child;
                if (has_column[at]) refuse_arrays("column_child");
                has_column[at] = true;
            }
            last_node = panel(i).node;
            panel_begin[last_node + 1] = static_cast<std::int32_t>(i) + 1;
        }
        for (std::size_t v = 1; v < panel_begin.size(); ++v)
            panel_begin[v] = std::max(panel_begin[v], panel_begin[v - 1]);
    }

    bool has(int node) const { return panel_begin[node] < panel_begin[node + 1]; }

    /// Logits of a node's children, into scratch.score and scratch.child. With `claims`, a map to the logit of each
    /// child for itself, the sum of those probabilities into scratch.claimed.
    void score(int node, std::span<const Entry> x, ScoreScratch& scratch, LinkMap map,
               const LinkMap* claims = nullptr) const {
        const int first = panel_begin[node], end = panel_begin[node + 1];
        std::size_t n_columns = 0;
        for (int i = first; i < end; ++i) n_columns += static_cast<std::size_t>(panel(i).n_columns);
        scratch.begin(first < end ? column_child.subspan(panel(first).first_column, n_columns) : column_child.first(0));
        scratch.claimed = 0;
        float* sums = scratch.score.data();
        for (int i = first; i < end; sums += panel(i++).n_columns) score_panel(panel(i), x, scratch, map, claims, sums);
    }

    /// The weight of a panel's column for a feature.
    float weight(const PanelRecord& p, std::uint32_t feature, int column) const {
        if (p.bucket_bits == hashed_index) {
            const int tile = column / max_tile_columns;
            const int stride = hashed_stride(tile_columns(p, tile));
            const HashedTile hashed(p.node, p.row_begin + tile, stride, table.size());
            return table[static_cast<std::size_t>(hashed.slot(feature)) * stride + column % max_tile_columns];
        }
        const PanelParts parts = parts_of(p);
        if (parts.run.has(feature))
            return static_cast<float>(
                       parts.run.weights[std::size_t{feature - parts.run.first} * dense_stride(p.n_columns) + column]) *
                   column_scale[p.first_column + column];
        const Entry x{feature, 1.0f};
        RowMatch match[2];
        alignas(64) float sums[max_panel_columns] = {};
        if (const PackedRows& packed = parts.packed; packed.n_bytes > 0)
            kernels().add_packed(match, kernels().match_packed(&x, 1, packed.index, packed.chunks, match),
                                 packed.chunks, packed.value.data(), sums);
        kernels().add_rows(match, match_rows(p, parts, {&x, 1}, match), parts.chunks, static_cast<int>(p.n_columns),
                           sums);
        return sums[column] * column_scale[p.first_column + column];
    }

private:
    static int tile_columns(const PanelRecord& p, int tile) {
        return std::min<int>(max_tile_columns, static_cast<int>(p.n_columns) - tile * max_tile_columns);
    }

    /// The bytes of a panel: its packed rows and its dense run, empty if it has none, and the chunks of all other
    /// features.
    struct PanelParts {
        PackedRows packed;
        DenseRun run;
        const std::uint8_t* chunks = nullptr;
        std::int64_t bucket_bits = 0, n_bytes = 0;  ///< of the chunks
    };
    PanelParts parts_of(const PanelRecord& p) const {
        PanelParts parts{{}, {}, rows.data() + p.row_begin, p.bucket_bits, p.n_bytes};
        auto take = [&](std::int64_t mark, std::int64_t n_bytes) {
            parts.bucket_bits -= mark;
            parts.chunks += n_bytes;
            parts.n_bytes -= n_bytes;
        };
        if (has_packed_rows(parts.bucket_bits)) {
            parts.packed = PackedRows::read(parts.chunks, n_features);
            take(packed_mark, parts.packed.n_bytes);
        }
        if (has_dense_run(parts.bucket_bits)) {
            parts.run = DenseRun::read(parts.chunks);
            take(dense_run_mark, parts.run.n_bytes(p.n_columns));
        }
        return parts;
    }

    /// The features of x that the panel's chunks know; returns how many. Room for as many as x has.
    int match_rows(const PanelRecord& p, const PanelParts& parts, std::span<const Entry> x, RowMatch* match) const {
        const std::uint8_t* bytes = parts.chunks;
        const std::uint32_t* begin = index.data() + p.index_begin;
        if (parts.bucket_bits == bitmap_index)
            return kernels().match_bitmap(x.data(), static_cast<int>(x.size()), begin, bytes, match);
        return kernels().match_buckets(x.data(), static_cast<int>(x.size()), begin, static_cast<int>(parts.bucket_bits),
                                       key_bytes(n_features, parts.bucket_bits), bytes, rows.data() + rows.size(),
                                       match);
    }

    void check_panel(std::size_t i, const TreeView& tree, std::int64_t last_node) const {
        const PanelRecord& p = panel(i);
        auto inside = [](std::int64_t first, std::int64_t n, std::size_t size) {
            return first >= 0 && n >= 0 && first <= static_cast<std::int64_t>(size) &&
                   n <= static_cast<std::int64_t>(size) - first;
        };
        const bool is_root_gate = p.node == tree.n_nodes();
        if (p.node < last_node || p.node > tree.n_nodes() || (!is_root_gate && tree.is_leaf(static_cast<int>(p.node))))
            refuse_arrays("panel node");
        const std::int64_t n_children = is_root_gate ? 1 : tree.n_children[p.node];
        if (p.n_columns < (is_root_gate ? 0 : 1) || p.n_columns > max_panel_columns ||
            !inside(p.first_column, p.n_columns, column_child.size()))
            refuse_arrays("panel columns");
        for (std::int64_t c = 0; c < p.n_columns; ++c) {
            const std::int32_t child = column_child[p.first_column + c];
            if (child < 0 || child >= n_children) refuse_arrays("column_child");
            if (!std::isfinite(column_scale[p.first_column + c])) refuse_arrays("column_scale");
            if (!std::isfinite(column_rate[p.first_column + c])) refuse_arrays("column_rate");
        }
        if (p.bucket_bits == hashed_index) {
            if (table.size() < max_tile_columns || table.size() > std::uint64_t{1} << 32 || p.row_begin < 0 ||
                p.row_begin >= 1 << 20)
                refuse_arrays("table");
            return;
        }
        if (p.n_rows < 0 || p.n_rows > n_features || p.n_bytes >= wide_chunk ||
            !inside(p.row_begin, p.n_bytes, rows.size()))
            refuse_arrays("panel rows");
        std::int64_t bucket_bits = p.bucket_bits, at = 0;
        if (has_packed_rows(bucket_bits)) {
            if (p.n_bytes < PackedRows::least_bytes(n_features)) refuse_arrays("rows");
            const PackedRows packed = PackedRows::read(rows.data() + p.row_begin, n_features);
            if (!packed.is_sound(n_features, p.n_bytes)) refuse_arrays("rows");
            bucket_bits -= packed_mark;
            at = packed.n_bytes;
        }
        if (has_dense_run(bucket_bits)) {
            if (p.n_bytes - at < dense_header) refuse_arrays("rows");
            const DenseRun run = DenseRun::read(rows.data() + p.row_begin + at);
            if (std::int64_t{run.first} + run.n_features > n_features || run.n_bytes(p.n_columns) > p.n_bytes - at)
                refuse_arrays("rows");
        }
        const PanelParts parts = parts_of(p);
        const bool is_sound =
            parts.bucket_bits == bitmap_index ? are_words_sound(p, parts) : are_buckets_sound(p, parts);
        if (!is_sound) refuse_arrays("rows");
    }

    /// Chunks follow each other without gaps, so that one walk over the bytes has seen all that a search can reach.
    bool are_words_sound(const PanelRecord& p, const PanelParts& parts) const {
        const std::int64_t n_words = (n_features + features_per_word - 1) / features_per_word;
        if (p.index_begin < 0 || p.index_begin > std::ssize(index) || 3 * n_words > std::ssize(index) - p.index_begin)
            refuse_arrays("index");
        const std::uint8_t* bytes = parts.chunks;
        std::int64_t at = 0, n_rows = 0;
        for (std::int64_t w = 0; w < n_words; ++w) {
            const std::uint32_t* entry = index.data() + p.index_begin + 3 * w;
            const int n = std::popcount(entry[1]) + std::popcount(entry[2]);
            if ((entry[0] & ~wide_chunk) != at) return false;
            const std::int64_t size =
                checked_chunk(bytes + at, entry[0] & wide_chunk, n, parts.n_bytes - at, p.n_columns);
            if (size < 0) return false;
            at += size;
            n_rows += n;
        }
        return at == parts.n_bytes && n_rows == p.n_rows;
    }

    bool are_buckets_sound(const PanelRecord& p, const PanelParts& parts) const {
        if (parts.bucket_bits < 0 || parts.bucket_bits > 30) refuse_arrays("panel index");
        const std::int64_t n_buckets = std::int64_t{1} << parts.bucket_bits;
        if (p.index_begin < 0 || p.index_begin > std::ssize(index) || n_buckets + 1 > std::ssize(index) - p.index_begin)
            refuse_arrays("index");
        const std::uint32_t* begin = index.data() + p.index_begin;
        const std::uint8_t* bytes = parts.chunks;
        const int n_key_bytes = key_bytes(n_features, parts.bucket_bits);
        std::int64_t at = 0, n_rows = 0;
        for (std::int64_t b = 0; b < n_buckets; ++b) {
            const std::int64_t end = begin[b + 1] & ~wide_chunk;
            if ((begin[b] & ~wide_chunk) != at || end < at || end > parts.n_bytes) return false;
            if (end == at) continue;
            const int n = bytes[at];
            const std::int64_t header = 1 + n * n_key_bytes;
            if (n > most_rows_in_chunk || header > end - at) return false;
            if (checked_chunk(bytes + at + header, begin[b] & wide_chunk, n, end - at - header, p.n_columns) !=
                end - at - header)
                return false;
            at = end;
            n_rows += n;
        }
        return at == parts.n_bytes && (begin[n_buckets] & ~wide_chunk) == at && n_rows == p.n_rows;
    }

    /// Into `sums`, which has room for max_panel_columns.
    void score_panel(const PanelRecord& p, std::span<const Entry> x, ScoreScratch& scratch, LinkMap map,
                     const LinkMap* claims, float* sums) const {
        const int n_columns = static_cast<int>(p.n_columns);
        std::fill_n(sums, (n_columns + group_columns - 1) / group_columns * group_columns, 0.0f);
        if (p.bucket_bits == hashed_index)
            sum_hashed(p, x, sums);
        else
            sum_rows(p, x, scratch, sums);
        const float *scale = column_scale.data() + p.first_column, *rate = column_rate.data() + p.first_column;
        if (claims) {
            alignas(64) float claim[max_panel_columns];
            std::copy_n(sums, n_columns, claim);
            std::fill(claim + n_columns, claim + (n_columns + group_columns - 1) / group_columns * group_columns, 0.0f);
            kernels().to_logits(claim, scale, rate, n_columns, *claims);
            kernels().to_probabilities(claim, n_columns);
            for (int c = 0; c < n_columns; ++c) scratch.claimed += claim[c];
        }
        kernels().to_logits(sums, scale, rate, n_columns, map);
    }

    void sum_hashed(const PanelRecord& p, std::span<const Entry> x, float* sums) const {
        for (int tile = 0; tile * max_tile_columns < p.n_columns; ++tile) {
            const int stride = hashed_stride(tile_columns(p, tile));
            const HashedTile hashed(p.node, p.row_begin + tile, stride, table.size());
            float* target = sums + tile * max_tile_columns;
            for (const Entry& e : x) {
                const float* w = table.data() + static_cast<std::size_t>(hashed.slot(e.feature)) * stride;
                for (int c = 0; c < stride; ++c) target[c] += e.value * w[c];
            }
        }
    }

    void sum_rows(const PanelRecord& p, std::span<const Entry> x, ScoreScratch& scratch, float* sums) const {
        const PanelParts parts = parts_of(p);
        if (const PackedRows& packed = parts.packed; packed.n_bytes > 0) {
            scratch.match.resize(x.size() + 1);
            RowMatch* match = scratch.match.data();
            const int n =
                kernels().match_packed(x.data(), static_cast<int>(x.size()), packed.index, packed.chunks, match);
            kernels().add_packed(match, n, packed.chunks, packed.value.data(), sums);
        }
        if (parts.run.n_features > 0) {
            const std::span<const Entry> dense = parts.run.part_of(x);
            const int stride = dense_stride(p.n_columns);
            auto add_others = [&](std::span<const Entry> others) {
                if (p.n_rows > 0 && !others.empty()) add_chunks(p, parts, others, scratch, sums);
            };
            add_others({x.begin(), dense.begin()});  // in order of feature, as without a run
            kernels().add_dense(dense.data(), static_cast<int>(dense.size()), parts.run.first, parts.run.weights,
                                stride, sums);
            add_others({dense.end(), x.end()});
            return;
        }
        add_chunks(p, parts, x, scratch, sums);
    }

    void add_chunks(const PanelRecord& p, const PanelParts& parts, std::span<const Entry> x, ScoreScratch& scratch,
                    float* sums) const {
        scratch.match.resize(x.size() + 1);
        const int n = match_rows(p, parts, x, scratch.match.data());
        kernels().add_rows(scratch.match.data(), n, parts.chunks, static_cast<int>(p.n_columns), sums);
    }
};

}  // namespace ramify
