/// A node's training problem: its rows with features numbered locally, its children in order of frequency, solved a
/// tile of columns at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <vector>

#include "base/hashing.hpp"
#include "base/huge_pages.hpp"
#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"
#include "kernels/kernels.hpp"
#include "plt/held_out.hpp"
#include "plt/node_plan.hpp"
#include "plt/node_rows.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

struct AlignedDelete {
    std::size_t alignment = 64;
    void operator()(float* p) const { ::operator delete[](p, std::align_val_t{alignment}); }
};

/// A growing buffer of floats, aligned for vector loads and not initialised.
class FloatBuffer {
public:
    float* zeroed(std::size_t n) {
        if (n > capacity_) {
            std::size_t size = (n + n / 4 + 64) * sizeof(float), alignment = 64;
            if (size >= huge_page / 2) alignment = huge_page, size = (size + huge_page - 1) / huge_page * huge_page;
            data_ = Memory(static_cast<float*>(::operator new[](size, std::align_val_t{alignment})),
                           AlignedDelete{alignment});
            ask_for_huge_pages(data_.get(), size);
            capacity_ = size / sizeof(float);
        }
        if (n > 0) std::memset(data_.get(), 0, n * sizeof(float));
        return data_.get();
    }
    float* data() { return data_.get(); }
    const float* data() const { return data_.get(); }

private:
    using Memory = std::unique_ptr<float[], AlignedDelete>;
    Memory data_;
    std::size_t capacity_ = 0;
};

/// Features that occur in one row of a node only always move together: their weights are the row's values times one
/// number per child. So the solver sees them as one feature whose value is their length, which leaves all scores and
/// steps as they are. Near the leaves most features are such, and what is left fits the cache.
struct NodeProblem {
    /// Where the weights of a feature are: a line of the solver's weights, times a ratio.
    struct Place {
        std::uint32_t line;
        float ratio;
    };
    /// A feature that shares its line.
    struct Merged {
        std::uint32_t number;
        float ratio;
    };

    std::vector<const Entry*> row;  ///< training rows name lines; rows that are held out name features by number
    std::vector<int> length;
    std::vector<float> squared_norm, weight;
    std::vector<std::int64_t> entry;     ///< of NodeRows
    std::vector<std::uint32_t> feature;  ///< number -> feature; empty: numbers are the features themselves, and lines
    std::vector<Place> place;            ///< by number
    std::vector<std::uint32_t> number_of_line;  ///< of the lines of single features, which come first
    std::vector<Merged> merged;                 ///< features of the other lines
    std::vector<std::size_t> merged_begin;      ///< per line of merged features, one more at the end
    std::vector<float> largest_ratio;           ///< per line of merged features
    std::vector<Entry> local;                   ///< of all rows; more room follows
    std::size_t n_features = 0, n_lines = 0;
    static constexpr std::int32_t never_positive = -1, not_taken = -2;  ///< instead of a column
    std::vector<std::int32_t> child, column_of_child;
    std::vector<float> rate;  ///< of each column: log of the share of the training rows, by weight, that have it
    std::size_t n_train = 0;  ///< rows beyond these are held out, for scoring
    bool is_full = false;     ///< every training row has every feature: dropping small weights would save nothing
    std::vector<std::int32_t> number;  ///< scratch: by feature; always zero between nodes
    std::vector<std::uint32_t> found;  ///< scratch

    float prune(float given) const { return is_full ? 0.0f : given; }
    bool has_numbers() const { return !place.empty(); }
    Place place_of(std::uint32_t number) const { return has_numbers() ? place[number] : Place{number, 1.0f}; }

    int n_tiles() const { return (static_cast<int>(child.size()) + max_tile_columns - 1) / max_tile_columns; }
    int tile_columns(int tile) const {
        return std::min(max_tile_columns, static_cast<int>(child.size()) - tile * max_tile_columns);
    }
};

/// Scratch space for solving one tile, reused from tile to tile.
struct TileScratch {
    FloatBuffer weights, dual;
    std::vector<TileRow> rows;
    std::vector<std::uint8_t> active;
    std::vector<int> order;
};

/// Makes and solves the problems of a tree's nodes. The arguments must outlive it; `row_weight` may be empty.
/// `row_number` holds the numbers of the rows where they are some rows of a larger set; empty: they are all of it.
class NodeProblems {
public:
    NodeProblems(const PreparedRows& X, const TreeView& tree, const NodeRows& rows, std::span<const float> row_weight,
                 std::int64_t n_features, std::uint64_t seed, std::span<const std::int64_t> row_number = {})
        : X_(X),
          tree_(tree),
          rows_(rows),
          row_weight_(row_weight),
          n_features_(n_features),
          seed_(seed),
          row_number_(row_number) {}

    int n_children(int node) const { return node == tree_.n_nodes() ? 1 : tree_.n_children[node]; }

    /// Every node that has rows.
    std::vector<NodeTask> tasks() const {
        return node_tasks(tree_, rows_, [&](std::int32_t row) { return X_.length(row); });
    }

    void prepare(const NodeTask& task, NodeProblem& p) const {
        p.row.clear(), p.length.clear(), p.squared_norm.clear(), p.weight.clear(), p.entry.clear(), p.feature.clear();
        p.place.clear(), p.number_of_line.clear(), p.merged.clear(), p.merged_begin.clear(), p.largest_ratio.clear();
        std::size_t non_zeros = 0;
        for (bool held_out : {false, true}) {
            for (std::int64_t e = rows_.begin[task.node]; e < rows_.begin[task.node + 1]; ++e) {
                const std::int32_t i = rows_.row[e];
                if (!row_weight_.empty() && row_weight_[i] <= 0) continue;
                if (task.held_out) {
                    const std::int64_t number = row_number_.empty() ? i : row_number_[i];
                    const std::uint64_t drawn = draw_row(seed_, task.node, number);
                    const bool is_out = task.of_paths ? is_held_out_of_paths(seed_, number) : is_held_out(drawn);
                    if (held_out != is_out || !is_sampled(drawn, task.sample)) continue;
                } else if (held_out) {
                    break;
                }
                p.entry.push_back(e);
                p.row.push_back(X_.row(i));
                p.length.push_back(X_.length(i));
                p.squared_norm.push_back(X_.squared_norm[i]);
                if (!row_weight_.empty()) p.weight.push_back(row_weight_[i]);
                non_zeros += X_.length(i);
            }
            if (!held_out) {
                p.n_train = p.row.size();
                p.is_full = p.n_train > 0 && non_zeros == p.n_train * static_cast<std::size_t>(n_features_);
            }
        }
        const auto n_columns = static_cast<std::size_t>(n_features_);
        if (non_zeros > 8 * n_columns)
            p.n_features = p.n_lines =
                n_columns;  // most features occur: renumbering them would cost more than it saves
        else
            number_locally(p, non_zeros);

        set_columns(p, task);
        set_rates(p);
    }

    /// Solves a tile of a prepared problem. Returns the number of floats per feature in space.weights.
    int solve(const NodeTask& task, const NodeProblem& p, int tile, const SolverSettings& solver, TileScratch& space,
              Watch* watch) const {
        const Kernels& kernel = kernels();
        const int n_rows = static_cast<int>(p.n_train), n_columns = p.tile_columns(tile);
        const int stride = (n_columns + kernel.lanes - 1) / kernel.lanes * kernel.lanes;
        space.rows.resize(n_rows);
        for (int r = 0; r < n_rows; ++r)
            space.rows[r] = {p.row[r], p.length[r], p.squared_norm[r], p.weight.empty() ? 1.0f : p.weight[r],
                             positive_bits(p, p.entry[r], tile * max_tile_columns, n_columns)};
        space.active.resize(n_rows);
        space.order.resize(n_rows);
        TileProblem problem{};
        problem.n_rows = n_rows;
        problem.n_columns = n_columns;
        problem.stride = stride;
        problem.rows = space.rows.data();
        problem.weights = space.weights.zeroed(p.n_lines * stride);
        problem.dual = space.dual.zeroed(static_cast<std::size_t>(n_rows) * stride);
        problem.active = space.active.data();
        problem.order = space.order.data();
        problem.end_epoch = solver.max_epochs;
        problem.seed = mix(seed_ * 31 + mix(static_cast<std::uint64_t>(task.node) * 4096 + tile));
        problem.should_stop = [](void* watch) { return static_cast<Watch*>(watch)->should_stop(); };
        problem.watch = watch;
        kernel.solve_tile(problem, solver);
        return stride;
    }

private:
    /// Children by falling frequency: neighbours then shrink together. Children that never occur have no column: their
    /// probability is 0.
    void set_columns(NodeProblem& p, const NodeTask& task) const {
        const int n_children = this->n_children(task.node);
        std::vector<std::int64_t> count(n_children, 0);
        for (std::int64_t e : std::span(p.entry).first(p.n_train))
            for (std::int64_t q = rows_.positive_begin[e]; q < rows_.positive_begin[e + 1]; ++q)
                ++count[rows_.positive[q]];
        p.child.resize(n_children);
        std::iota(p.child.begin(), p.child.end(), 0);
        std::ranges::stable_sort(p.child, std::greater{}, [&](int c) { return count[c]; });
        p.column_of_child.assign(n_children, NodeProblem::not_taken);
        const std::int64_t n_wanted = task.max_columns > 0 ? columns_to_try(count, task.max_columns) : n_children;
        if (n_wanted < n_children) {
            const auto step = static_cast<std::uint64_t>((n_children + n_wanted - 1) / n_wanted);
            std::size_t n_taken = 0;
            for (auto k = mix(seed_ * 53 + static_cast<std::uint64_t>(task.node)) % step; k < p.child.size(); k += step)
                p.child[n_taken++] = p.child[k];
            p.child.resize(n_taken);
        }
        for (const std::int32_t c : p.child) p.column_of_child[c] = NodeProblem::never_positive;
        while (!p.child.empty() && count[p.child.back()] == 0) p.child.pop_back();
        for (std::size_t k = 0; k < p.child.size(); ++k) p.column_of_child[p.child[k]] = static_cast<std::int32_t>(k);
    }

    /// max_columns, or as many as have enough positives together to tell settings apart: with few rows, all.
    static std::int64_t columns_to_try(std::span<const std::int64_t> count, int max_columns) {
        constexpr std::int64_t enough_positives = 2000;
        const std::int64_t positives = std::max<std::int64_t>(std::reduce(count.begin(), count.end()), 1);
        const auto n_children = static_cast<std::int64_t>(count.size());
        return std::max<std::int64_t>(max_columns, (n_children * enough_positives + positives - 1) / positives);
    }

    void set_rates(NodeProblem& p) const {
        std::vector<double> positive(p.child.size(), 0.0);
        double total = 0;
        for (std::size_t r = 0; r < p.n_train; ++r) {
            const double weight = p.weight.empty() ? 1.0 : p.weight[r];
            total += weight;
            for (std::int64_t q = rows_.positive_begin[p.entry[r]]; q < rows_.positive_begin[p.entry[r] + 1]; ++q)
                if (const int column = p.column_of_child[rows_.positive[q]]; column >= 0) positive[column] += weight;
        }
        p.rate.resize(p.child.size());
        for (std::size_t k = 0; k < p.child.size(); ++k) p.rate[k] = log_rate(positive[k], total);
    }

    void number_locally(NodeProblem& p, std::size_t non_zeros) const {
        constexpr std::uint32_t merged = std::numeric_limits<std::uint32_t>::max();
        p.number.resize(n_features_, 0);
        const std::size_t most = std::min(non_zeros, p.number.size());
        if (p.found.size() <= most) p.found.resize(most + 1);
        std::int32_t* const number = p.number.data();
        std::uint32_t* const found = p.found.data();
        std::size_t n_found = 0;
        for (std::size_t r = 0; r < p.n_train; ++r) {  // features of held-out rows alone have no weights
            prefetch_row(p, r + rows_ahead);
            for (const Entry& e : row_of(p, r)) {  // counts, without a branch, which would be unpredictable
                found[n_found] = e.feature;
                n_found += number[e.feature]++ == 0;
            }
        }
        if (n_found * 16 < p.number.size()) {
            std::sort(found, found + n_found);
        } else {  // looking at all of them is cheaper than sorting
            n_found = 0;
            for (std::size_t f = 0; f < p.number.size(); ++f) {
                found[n_found] = static_cast<std::uint32_t>(f);
                n_found += number[f] != 0;
            }
        }
        p.feature.assign(found, found + n_found);
        p.n_features = n_found;
        p.place.resize(std::max<std::size_t>(n_found, 1));
        for (std::size_t k = 0; k < n_found; ++k) {
            std::int32_t& count = number[p.feature[k]];
            const bool is_merged = count == 1;
            p.place[k] = {is_merged ? merged : static_cast<std::uint32_t>(p.number_of_line.size()), 1.0f};
            if (!is_merged) p.number_of_line.push_back(static_cast<std::uint32_t>(k));
            // From here on, one more than the line of a single feature, or minus one more than the number of another.
            count = is_merged ? -static_cast<std::int32_t>(k) - 1 : static_cast<std::int32_t>(p.number_of_line.size());
        }
        if (p.local.size() < non_zeros) p.local.resize(non_zeros);
        p.merged.resize(n_found - p.number_of_line.size() + 1);
        Entry* const local = p.local.data();
        NodeProblem::Merged* const merged_features = p.merged.data();
        std::size_t n_local = 0, n_merged = 0;
        for (std::size_t r = 0; r < p.row.size(); ++r) {
            prefetch_row(p, r + rows_ahead);
            const std::span<const Entry> from = row_of(p, r);
            const std::size_t first = n_local, first_merged = n_merged;
            if (r < p.n_train) {
                for (const Entry& e : from) {  // no branch here either: what is not counted is overwritten
                    const std::int32_t code = number[e.feature];
                    local[n_local] = {static_cast<std::uint32_t>(code - 1), e.value};
                    merged_features[n_merged] = {static_cast<std::uint32_t>(-code - 1), e.value};
                    n_local += code > 0;
                    n_merged += code < 0;
                }
                if (n_merged > first_merged) local[n_local++] = merge_features(p, first_merged, n_merged);
            } else {
                for (const Entry& e : from)
                    if (const std::int32_t code = number[e.feature]; code != 0)
                        local[n_local++] = {
                            code > 0 ? p.number_of_line[code - 1] : static_cast<std::uint32_t>(-code - 1), e.value};
            }
            p.row[r] = local + first;
            p.length[r] = static_cast<int>(n_local - first);
        }
        p.merged.resize(n_merged);
        p.merged_begin.push_back(n_merged);
        p.n_lines = p.number_of_line.size() + p.largest_ratio.size();
        for (std::uint32_t f : p.feature) number[f] = 0;
    }

    static std::span<const Entry> row_of(const NodeProblem& p, std::size_t row) {
        return {p.row[row], static_cast<std::size_t>(p.length[row])};
    }

    /// Rows of a node are scattered in memory: they are asked for before they are needed.
    static constexpr std::size_t rows_ahead = 4;
    static void prefetch_row(const NodeProblem& p, std::size_t row) {
        if (row >= p.row.size()) return;
        const auto* begin = reinterpret_cast<const char*>(p.row[row]);
        for (std::size_t at = 0; at < static_cast<std::size_t>(p.length[row]) * sizeof(Entry); at += 64)
            __builtin_prefetch(begin + at);
    }

    /// Some features of p.merged, all those of one row, become one: the next line, and the row's entry of it.
    static Entry merge_features(NodeProblem& p, std::size_t first, std::size_t end) {
        const auto line = static_cast<std::uint32_t>(p.number_of_line.size() + p.largest_ratio.size());
        const std::span<NodeProblem::Merged> features = std::span(p.merged).subspan(first, end - first);
        double squares = 0;
        for (const auto& f : features) squares += static_cast<double>(f.ratio) * f.ratio;
        const auto length = static_cast<float>(std::min<double>(std::sqrt(squares), std::numeric_limits<float>::max()));
        float largest = 0;
        for (auto& f : features) {
            f.ratio = length > 0 ? f.ratio / length : 0.0f;
            largest = std::max(largest, std::abs(f.ratio));
            p.place[f.number] = {line, f.ratio};
        }
        p.merged_begin.push_back(first);
        p.largest_ratio.push_back(largest);
        return {line, length};
    }

    /// Bit c of the answer: column first + c is positive in this entry.
    std::uint32_t positive_bits(const NodeProblem& p, std::int64_t entry, int first, int n) const {
        std::uint32_t bits = 0;
        for (std::int64_t q = rows_.positive_begin[entry]; q < rows_.positive_begin[entry + 1]; ++q) {
            const int column = p.column_of_child[rows_.positive[q]] - first;
            if (column >= 0 && column < n) bits |= 1u << column;
        }
        return bits;
    }

    const PreparedRows& X_;
    const TreeView& tree_;
    const NodeRows& rows_;
    std::span<const float> row_weight_;
    std::int64_t n_features_;
    std::uint64_t seed_;
    std::span<const std::int64_t> row_number_;
};

}  // namespace ramify
