/// Which rows train which node: node v sees the rows with z_v = 1, and its positive children are those with z = 1.
/// (Jasinska-Kobus et al., "Online probabilistic label trees", section 3: every example is assigned to the nodes on the
/// paths of its labels.) Where some row has no label at all, one node more, number n_nodes, is the root's gate: it sees
/// every row, and its only child is the root.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

/// The entries of node v are begin[v] .. begin[v + 1]; each names a row and the positions of its positive children.
struct NodeRows {
    std::vector<std::int64_t> begin;
    std::vector<std::int32_t> row;
    std::vector<std::int64_t> positive_begin;  ///< per entry, one more at the end
    std::vector<std::int32_t> positive;        ///< position among the node's children

    /// Y's rows are y_indices[y_indptr[i] .. y_indptr[i + 1]]; leaf_of maps a label to its leaf, -1 for none.
    NodeRows(const TreeView& tree, std::span<const std::int64_t> y_indptr, std::span<const std::int32_t> y_indices,
             std::span<const std::int32_t> leaf_of, int n_threads) {
        const int n_nodes = tree.n_nodes();
        const std::int64_t n_rows = static_cast<std::int64_t>(y_indptr.size()) - 1;
        // Each thread takes some neighbouring rows and counts for itself, which only pays off if a node has some rows.
        const int n_parts = usable_threads(n_threads, 1 + static_cast<std::size_t>(n_rows / std::max(n_nodes, 1)));
        std::vector<Part> parts(n_parts);
        auto for_every_part = [&](auto&& work) {
            parallel_for(n_parts, n_parts, [&](std::size_t k, int) {
                const auto part = static_cast<std::int64_t>(k);
                work(parts[k], n_rows * part / n_parts, n_rows * (part + 1) / n_parts);
            });
        };
        for_every_part([&](Part& part, std::int64_t first, std::int64_t end) {
            part.n_entries.assign(n_nodes + 1, 0);
            part.n_positives.assign(n_nodes + 1, 0);
            part.for_positive_nodes(tree, y_indptr, y_indices, leaf_of, first, end,
                                    [&](std::int64_t, std::int32_t, std::int32_t parent, bool is_first) {
                                        part.n_entries[parent] += is_first;
                                        ++part.n_positives[parent];
                                    });
            for (std::int64_t i = first; i < end; ++i) part.n_positives[n_nodes] += y_indptr[i + 1] > y_indptr[i];
            part.n_entries[n_nodes] = end - first;
        });
        std::int64_t n_labelled = 0;
        for (const Part& part : parts) n_labelled += part.n_positives[n_nodes];
        const bool has_gate = n_labelled < n_rows;
        // From counts to places: a node's rows of the first part, then those of the second, and so on.
        std::int64_t n_entries = 0, n_positives = 0;
        begin.reserve(n_nodes + 2);
        for (int v = 0; v <= n_nodes; ++v) {
            begin.push_back(n_entries);
            if (v == n_nodes && !has_gate) break;
            for (Part& part : parts) {
                n_entries += std::exchange(part.n_entries[v], n_entries);
                n_positives += std::exchange(part.n_positives[v], n_positives);
            }
        }
        begin.push_back(n_entries);
        row.resize(n_entries);
        positive_begin.resize(n_entries + 1);
        positive.resize(n_positives);
        positive_begin.back() = n_positives;
        for_every_part([&](Part& part, std::int64_t first, std::int64_t end) {
            auto add_entry = [&](int node, std::int64_t i) {
                row[part.n_entries[node]] = static_cast<std::int32_t>(i);
                positive_begin[part.n_entries[node]++] = part.n_positives[node];
            };
            part.for_positive_nodes(tree, y_indptr, y_indices, leaf_of, first, end,
                                    [&](std::int64_t i, std::int32_t v, std::int32_t parent, bool is_first) {
                                        if (is_first) add_entry(parent, i);
                                        positive[part.n_positives[parent]++] = v - tree.first_child[parent];
                                    });
            for (std::int64_t i = first; has_gate && i < end; ++i) {
                add_entry(n_nodes, i);
                if (y_indptr[i + 1] > y_indptr[i]) positive[part.n_positives[n_nodes]++] = 0;
            }
        });
    }

    std::int64_t n_rows(int node) const { return begin[node + 1] - begin[node]; }

private:
    /// A thread's counts of its rows.
    struct Part {
        std::vector<std::int64_t> n_entries, n_positives;  ///< per node and gate; later the place of the next one
        std::vector<std::int32_t> marked_by, visited;

        /// Calls visit(row, node, parent, whether it is the row's first node of that parent) for all positive nodes but
        /// the root.
        template <class Visit>
        void for_positive_nodes(const TreeView& tree, std::span<const std::int64_t> y_indptr,
                                std::span<const std::int32_t> y_indices, std::span<const std::int32_t> leaf_of,
                                std::int64_t first, std::int64_t end, Visit&& visit) {
            marked_by.assign(tree.n_nodes(), -1);
            for (std::int64_t i = first; i < end; ++i) {
                visited.clear();
                for (std::int64_t q = y_indptr[i]; q < y_indptr[i + 1]; ++q)
                    for (std::int32_t v = leaf_of[y_indices[q]]; v > 0 && marked_by[v] != static_cast<std::int32_t>(i);
                         v = tree.parent[v]) {
                        marked_by[v] = static_cast<std::int32_t>(i);
                        visited.push_back(v);
                    }
                std::ranges::sort(visited);  // so that siblings stand together
                std::int32_t last = -1;
                for (std::int32_t v : visited) {
                    const std::int32_t parent = tree.parent[v];
                    visit(i, v, parent, parent != last);
                    last = parent;
                }
            }
        }
    };
};

}  // namespace ramify
