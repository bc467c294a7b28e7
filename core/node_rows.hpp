/// Which rows train which node: node v sees the rows with z_v = 1, and its positive children are those with z = 1.
/// (online-plt, section 3: every example is assigned to the nodes on the paths of its labels.)
/// Where some row has no label at all, one node more, number n_nodes, is the root's gate: it sees every row, and its
/// only child is the root.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "label_tree.hpp"

namespace ramify {

/// The entries of node v are begin[v] .. begin[v + 1]; each names a row and the positions of its positive children.
struct NodeRows {
    std::vector<std::int64_t> begin;
    std::vector<std::int32_t> row;
    std::vector<std::int64_t> positive_begin;  ///< per entry, one more at the end
    std::vector<std::int32_t> positive;        ///< position among the node's children

    /// Y's rows are y_indices[y_indptr[i] .. y_indptr[i + 1]]; leaf_of maps a label to its leaf, -1 for none.
    NodeRows(const TreeView& tree, std::span<const std::int64_t> y_indptr, std::span<const std::int32_t> y_indices,
             std::span<const std::int32_t> leaf_of) {
        const int n_nodes = tree.n_nodes();
        const std::int64_t n_rows = static_cast<std::int64_t>(y_indptr.size()) - 1;
        std::vector<std::int32_t> marked_by(n_nodes, -1), visited;
        // All nodes but the root that are positive for a row, sorted, so that siblings stand together.
        auto positive_nodes = [&](std::int64_t i) {
            visited.clear();
            for (std::int64_t q = y_indptr[i]; q < y_indptr[i + 1]; ++q)
                for (std::int32_t v = leaf_of[y_indices[q]]; v > 0 && marked_by[v] != i; v = tree.parent[v]) {
                    marked_by[v] = static_cast<std::int32_t>(i);
                    visited.push_back(v);
                }
            std::ranges::sort(visited);
        };
        std::vector<std::int64_t> n_entries(n_nodes + 1, 0), n_positives(n_nodes + 1, 0);
        for (std::int64_t i = 0; i < n_rows; ++i) {
            positive_nodes(i);
            std::int32_t last = -1;
            for (std::int32_t v : visited) {
                const std::int32_t p = tree.parent[v];
                n_entries[p + 1] += p != last;
                ++n_positives[p + 1];
                last = p;
            }
        }
        for (int v = 0; v < n_nodes; ++v) {
            n_entries[v + 1] += n_entries[v];
            n_positives[v + 1] += n_positives[v];
        }
        std::int64_t n_labelled = 0;
        for (std::int64_t i = 0; i < n_rows; ++i) n_labelled += y_indptr[i + 1] > y_indptr[i];
        const bool has_gate = n_labelled < n_rows;
        n_entries.push_back(n_entries.back() + (has_gate ? n_rows : 0));
        n_positives.push_back(n_positives.back() + (has_gate ? n_labelled : 0));
        begin = n_entries;
        row.resize(begin.back());
        positive_begin.resize(begin.back() + 1);
        positive.resize(n_positives.back());
        positive_begin.back() = n_positives.back();
        std::ranges::fill(marked_by, -1);
        for (std::int64_t i = 0; i < n_rows; ++i) {
            positive_nodes(i);
            std::int32_t last = -1;
            for (std::int32_t v : visited) {
                const std::int32_t p = tree.parent[v];
                if (p != last) {
                    row[n_entries[p]] = static_cast<std::int32_t>(i);
                    positive_begin[n_entries[p]++] = n_positives[p];
                }
                positive[n_positives[p]++] = v - tree.first_child[p];
                last = p;
            }
            if (has_gate) {
                row[n_entries[n_nodes]] = static_cast<std::int32_t>(i);
                positive_begin[n_entries[n_nodes]++] = n_positives[n_nodes];
                if (y_indptr[i + 1] > y_indptr[i]) positive[n_positives[n_nodes]++] = 0;
            }
        }
    }

    std::int64_t n_rows(int node) const { return begin[node + 1] - begin[node]; }
};

}  // namespace ramify
