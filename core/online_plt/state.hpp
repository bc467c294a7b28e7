/// An online model as flat arrays: to be saved and resumed exactly, or frozen into a serving model.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/flat_arrays.hpp"
#include "online_plt/learner.hpp"
#include "plt/frozen_blocks.hpp"

namespace ramify {

/// All blocks one after the other; a block's weights are rows x columns, without padding.
template <template <class> class Array>
struct OnlineArrays {
    Array<std::int32_t> parent, label;
    Array<std::int32_t> block_node;  ///< -1: the root's own classifier
    Array<std::int64_t> block_columns, block_rows, block_updates;
    Array<float> block_scale;
    Array<std::int32_t> column_child;  ///< a node, or theta_column
    Array<std::uint32_t> feature;
    Array<float> weight, sum;  ///< sum is empty where the learner keeps none
    // Rows that are kept as their steps, by feature; gradients in the order in which steps name them first.
    Array<std::int64_t> block_replayed, block_gradients;  ///< how many a block has; both empty: none anywhere
    Array<std::uint32_t> replayed_feature;
    Array<std::uint8_t> replayed_steps;  ///< per row
    Array<std::uint32_t> step_gradient;  ///< within the block
    Array<float> step_value;
    Array<float> gradient;  ///< gradients x columns
};
using OnlineArrayStorage = OnlineArrays<OwnedArray>;

/// The arrays that states of format version 3 lack.
template <template <class> class Array, class Work>
void for_each_replayed_array(OnlineArrays<Array>& a, Work&& work) {
    work("block_replayed", a.block_replayed);
    work("block_gradients", a.block_gradients);
    work("replayed_feature", a.replayed_feature);
    work("replayed_steps", a.replayed_steps);
    work("step_gradient", a.step_gradient);
    work("step_value", a.step_value);
    work("gradient", a.gradient);
}

template <template <class> class Array, class Work>
void for_each_stored_array(OnlineArrays<Array>& a, Work&& work) {
    work("parent", a.parent);
    work("label", a.label);
    work("block_node", a.block_node);
    work("block_columns", a.block_columns);
    work("block_rows", a.block_rows);
    work("block_updates", a.block_updates);
    work("block_scale", a.block_scale);
    work("column_child", a.column_child);
    work("feature", a.feature);
    work("weight", a.weight);
    work("sum", a.sum);
}

template <template <class> class Array, class Work>
void for_each_array(OnlineArrays<Array>& a, Work&& work) {
    for_each_stored_array(a, work);
    for_each_replayed_array(a, work);
}

/// The tree with nodes numbered breadth first, as LabelTree numbers them.
struct CanonicalTree {
    std::vector<std::int32_t> node;  ///< the online tree's node of each number
    std::vector<std::int32_t> parent, label;

    explicit CanonicalTree(const OnlineTree& tree) {
        node.push_back(OnlineTree::root);
        parent.push_back(-1);
        for (std::size_t i = 0; i < node.size(); ++i) {
            label.push_back(tree.label(node[i]));
            if (tree.is_leaf(node[i])) continue;
            for (std::int32_t c : tree.block(node[i])->child)
                if (c >= 0) {
                    node.push_back(c);
                    parent.push_back(static_cast<std::int32_t>(i));
                }
        }
    }
};

/// Appends a block's replayed rows; numbers come from the rows alone, not from the memory they are in.
inline void append_replayed(const OnlineBlock& block, std::span<const int> columns, OnlineArrayStorage& out) {
    const ReplayedRows& replayed = block.replayed();
    std::vector<std::uint32_t> number(replayed.n_gradient_numbers(), OnlineBlock::none);
    std::uint32_t n_gradients = 0;
    const std::vector<OnlineBlock::FeaturePlace> rows = block.sorted_rows(true);
    for (const auto& [feature, place] : rows) {
        const auto steps = replayed.steps(OnlineBlock::n_steps(place), OnlineBlock::number(place));
        out.replayed_feature.push_back(feature);
        out.replayed_steps.push_back(static_cast<std::uint8_t>(steps.size()));
        for (const ReplayedStep& step : steps) {
            if (number[step.gradient] == OnlineBlock::none) {
                number[step.gradient] = n_gradients++;
                const float* g = replayed.gradient(step.gradient, block.stride());
                for (int c : columns) out.gradient.push_back(g[c]);
            }
            out.step_gradient.push_back(number[step.gradient]);
            out.step_value.push_back(step.value);
        }
    }
    out.block_replayed.push_back(std::ssize(rows));
    out.block_gradients.push_back(n_gradients);
}

/// Nodes are numbered breadth first: threads make them in any order. With `replay`, all rows come as weights.
inline OnlineArrayStorage to_arrays(const OnlineTree& tree, bool replay = false) {
    OnlineArrayStorage out;
    const CanonicalTree canonical(tree);
    std::vector<std::int32_t> number(tree.n_nodes());
    for (std::size_t i = 0; i < canonical.node.size(); ++i) number[canonical.node[i]] = static_cast<std::int32_t>(i);
    out.parent = canonical.parent;
    out.label = canonical.label;
    std::vector<float> scratch;
    auto add = [&](const OnlineBlock* block, std::int32_t node) {
        if (!block) return;
        std::vector<int> columns;
        for (int c = 0; c < block->n_columns(); ++c)
            if (block->child[c] != vacant_column) columns.push_back(c);
        out.block_node.push_back(node);
        out.block_columns.push_back(std::ssize(columns));
        out.block_updates.push_back(static_cast<std::int64_t>(block->n_updates));
        out.block_scale.push_back(block->scale);
        for (int c : columns)
            out.column_child.push_back(block->child[c] >= 0 ? number[block->child[c]] : block->child[c]);
        std::int64_t n_rows = 0;
        for (const auto& [feature, place] : block->rows_in_order()) {
            if (!replay && !OnlineBlock::is_stored(place)) break;
            const float* w = block->weights(place, scratch);
            out.feature.push_back(feature);
            for (int c : columns) out.weight.push_back(w[c]);
            if (block->has_sums())
                for (int c : columns) out.sum.push_back(w[block->stride() + c]);
            ++n_rows;
        }
        out.block_rows.push_back(n_rows);
        if (!replay) append_replayed(*block, columns, out);
    };
    for (std::int32_t v : canonical.node) add(tree.block(v), number[v]);
    add(tree.gate(), -1);
    return out;
}

/// Takes back the replayed rows of one block after another.
class ReplayedReader {
public:
    ReplayedReader(const OnlineArrays<ArrayView>& in, std::size_t n_blocks) : in_(in) {
        is_absent_ = in.block_replayed.empty() && in.block_gradients.empty();
        check(is_absent_ || (in.block_replayed.size() == n_blocks && in.block_gradients.size() == n_blocks),
              "block_replayed");
        check(in.replayed_steps.size() == in.replayed_feature.size() && in.step_value.size() == in.step_gradient.size(),
              "replayed_steps");
        for (float v : in.step_value) check(std::isfinite(v), "step_value");
        for (float g : in.gradient) check(std::isfinite(g), "gradient");
    }

    void read(std::size_t b, OnlineBlock& block) {
        if (is_absent_) return;
        const std::int64_t n_rows = in_.block_replayed[b], n_gradients = in_.block_gradients[b];
        const auto n_columns = static_cast<std::size_t>(block.n_columns());
        check(n_rows >= 0 && n_rows <= std::ssize(in_.replayed_feature) - static_cast<std::int64_t>(row_),
              "block_replayed");
        check(n_gradients >= 0 && n_gradients <= std::ssize(in_.step_gradient) &&
                  n_gradients * n_columns <= in_.gradient.size() - gradient_,
              "block_gradients");
        block.reserve_features(static_cast<std::size_t>(n_rows));
        std::int64_t n_named = 0;  // gradients, each by the first step that has it
        for (std::int64_t r = 0; r < n_rows; ++r, ++row_) {
            const std::uint32_t feature = in_.replayed_feature[row_];
            const int n_steps = in_.replayed_steps[row_];
            check(n_steps > 0 && n_steps <= ReplayedRows::most_steps &&
                      n_steps <= std::ssize(in_.step_gradient) - static_cast<std::int64_t>(step_),
                  "replayed_steps");
            check(block.find(feature) == OnlineBlock::none, "a feature is listed twice");
            for (int k = 0; k < n_steps; ++k, ++step_) {
                const std::uint32_t g = in_.step_gradient[step_];
                check(g < n_gradients && g <= n_named, "step_gradient");
                if (g == n_named) {
                    block.add_gradient(in_.gradient.subspan(gradient_ + g * n_columns, n_columns));
                    ++n_named;
                }
                block.add_step(feature, {g, in_.step_value[step_]});
            }
        }
        check(n_named == n_gradients, "block_gradients");
        gradient_ += static_cast<std::size_t>(n_gradients) * n_columns;
    }

    void finish() const {
        check(row_ == in_.replayed_feature.size() && step_ == in_.step_gradient.size() &&
                  gradient_ == in_.gradient.size(),
              "something is left over");
    }

private:
    static void check(bool holds, const char* what) {
        if (!holds) throw std::invalid_argument(std::string("online model arrays are inconsistent: ") + what);
    }

    const OnlineArrays<ArrayView>& in_;
    bool is_absent_;
    std::size_t row_ = 0, step_ = 0, gradient_ = 0;
};

/// Restores what to_arrays returned. Throws std::invalid_argument if the arrays are inconsistent; discard the tree
/// then.
inline void from_arrays(const OnlineArrays<ArrayView>& in, std::int64_t n_labels, OnlineTree& tree) {
    auto check = [](bool holds, const char* what) {
        if (!holds) throw std::invalid_argument(std::string("online model arrays are inconsistent: ") + what);
    };
    const std::size_t n_blocks = in.block_node.size();
    check(in.block_columns.size() == n_blocks && in.block_rows.size() == n_blocks &&
              in.block_updates.size() == n_blocks && in.block_scale.size() == n_blocks,
          "one entry a block is needed");
    for (std::int32_t label : in.label) check(label >= -1 && label < n_labels, "label");
    for (const ArrayView<std::uint32_t>& features : {in.feature, in.replayed_feature})
        for (std::uint32_t f : features)
            check(f < OnlineLearner::bias_feature / 2 || f == OnlineLearner::bias_feature, "feature");
    ReplayedReader replayed(in, n_blocks);
    const bool has_sums = tree.empty_block()->has_sums();
    check(has_sums ? in.sum.size() == in.weight.size() : in.sum.empty(), "sums");
    std::vector<std::unique_ptr<OnlineBlock>> blocks(in.parent.size());
    std::unique_ptr<OnlineBlock> gate;
    std::size_t column = 0, feature = 0, weight = 0;
    for (std::size_t b = 0; b < n_blocks; ++b) {
        const std::int64_t n_columns = in.block_columns[b], n_rows = in.block_rows[b];
        const std::int32_t node = in.block_node[b];
        check(node >= -1 && node < std::ssize(in.parent) && !(node < 0 ? gate : blocks[node]), "block_node");
        check(n_columns >= 0 && n_columns <= std::ssize(in.column_child) - static_cast<std::int64_t>(column),
              "block_columns");
        check(n_rows >= 0 && n_rows <= std::ssize(in.feature) - static_cast<std::int64_t>(feature), "block_rows");
        check(n_rows == 0 || n_columns <= (std::ssize(in.weight) - static_cast<std::int64_t>(weight)) / n_rows,
              "weight");
        check(in.block_updates[b] >= 0 && std::isfinite(in.block_scale[b]) && in.block_scale[b] > 0, "block_scale");
        auto block = tree.empty_block();
        block->scale = in.block_scale[b];
        block->n_updates = static_cast<std::uint64_t>(in.block_updates[b]);
        for (std::int64_t c = 0; c < n_columns; ++c) {
            const std::int32_t child = in.column_child[column + c];
            check(child >= theta_column && (child != theta_column || block->theta() < 0), "column_child");
            block->add_column(child);
        }
        check(node >= 0 || (n_columns == 1 && block->child[0] == OnlineTree::root), "the root's classifier");
        block->reserve_rows(static_cast<std::size_t>(n_rows));
        block->reserve_features(static_cast<std::size_t>(n_rows));
        for (std::int64_t r = 0; r < n_rows; ++r) {
            check(block->add_row(in.feature[feature + r]) != OnlineBlock::none, "a feature is listed twice");
            float* w = block->row(static_cast<std::uint32_t>(r));
            for (std::int64_t c = 0; c < n_columns; ++c) {
                const std::size_t at = weight + r * n_columns + c;
                check(std::isfinite(in.weight[at]) && (!has_sums || (std::isfinite(in.sum[at]) && in.sum[at] >= 0)),
                      "weights must be finite");
                w[c] = in.weight[at];
                if (has_sums) w[block->stride() + c] = in.sum[at];
            }
        }
        replayed.read(b, *block);
        column += n_columns;
        feature += n_rows;
        weight += n_rows * n_columns;
        (node < 0 ? gate : blocks[node]) = std::move(block);
    }
    check(column == in.column_child.size() && feature == in.feature.size() && weight == in.weight.size(),
          "something is left over");
    replayed.finish();
    tree.restore({in.parent.begin(), in.parent.end()}, {in.label.begin(), in.label.end()}, std::move(blocks),
                 std::move(gate));
}

/// How many times larger the bias feature must be for its weights to be no larger than those of features, a power of
/// two. The weights of a column share one scale when they are rounded to bytes: those of long rows are much smaller
/// than the bias' weight, and would all become zero.
inline float frozen_bias_factor(const OnlineLearner& learner) {
    if (learner.settings().normalize) return 1.0f;
    float of_bias = 0, of_features = 0;
    std::vector<float> scratch;
    auto look_at = [&](const OnlineBlock& block) {
        for (const auto& [feature, place] : block.sorted_rows()) {
            const float* w = block.weights(place, scratch);
            float& largest = feature == OnlineLearner::bias_feature ? of_bias : of_features;
            for (int c = 0; c < block.n_columns(); ++c)
                if (block.child[c] >= 0) largest = std::max(largest, std::abs(w[c] * block.scale));
        }
    };
    for (int v = 0; v < learner.tree().n_nodes(); ++v)
        if (const OnlineBlock* block = learner.tree().block(v)) look_at(*block);
    if (learner.tree().gate()) look_at(*learner.tree().gate());
    if (!(of_features > 0) || of_bias <= of_features) return 1.0f;
    return std::exp2(std::min(std::ceil(std::log2(of_bias / of_features)), 60.0f));
}

/// Panels of one block: its children in order, small weights dropped, the rest as bytes. `bias` becomes feature number
/// n_features, and its weights are divided by a factor.
inline void freeze_block(const OnlineBlock& block, std::int64_t number, std::int64_t n_features, float prune,
                         float bias_factor, BlockStorage& out, std::int64_t n_all_features) {
    std::vector<int> columns;
    for (int c = 0; c < block.n_columns(); ++c)
        if (block.child[c] >= 0) columns.push_back(c);
    std::vector<OnlineBlock::FeaturePlace> rows = block.sorted_rows();
    for (auto& r : rows)  // the last of all
        if (r.feature == OnlineLearner::bias_feature) r.feature = static_cast<std::uint32_t>(n_features);
    std::vector<float> scratch;
    auto weights = [&](const OnlineBlock::FeaturePlace& r) { return block.weights(r.place, scratch); };
    auto scaled = [&](const OnlineBlock::FeaturePlace& r, float stored) {
        const float w = stored * block.scale;
        return r.feature == static_cast<std::uint32_t>(n_features) ? w / bias_factor : w;
    };
    for (std::size_t first = 0; first < columns.size(); first += max_panel_columns) {
        const std::size_t n_columns = std::min<std::size_t>(max_panel_columns, columns.size() - first);
        Panel panel;
        panel.node = number;
        std::vector<float> inverse(n_columns), largest(n_columns, 0.0f);
        for (const auto& r : rows) {
            const float* stored = weights(r);
            for (std::size_t c = 0; c < n_columns; ++c)
                largest[c] = std::max(largest[c], std::abs(scaled(r, stored[columns[first + c]])));
        }
        for (std::size_t c = 0; c < n_columns; ++c) {
            panel.child.push_back(static_cast<std::int32_t>(first + c));
            panel.scale.push_back(largest[c] / 127.0f);
            inverse[c] = largest[c] > 0 ? 127.0f / largest[c] : 0.0f;
        }
        for (const auto& r : rows) {
            const float* stored = weights(r);
            std::uint32_t n_groups = 0;
            for (std::size_t g = 0; g * group_columns < n_columns; ++g) {
                std::array<std::int8_t, group_columns> group{};
                bool any = false;
                for (std::size_t c = g * group_columns; c < std::min(n_columns, (g + 1) * group_columns); ++c) {
                    const float w = scaled(r, stored[columns[first + c]]);
                    if (!(std::abs(w) > prune)) continue;
                    any = true;
                    group[c % group_columns] = static_cast<std::int8_t>(std::lrint(w * inverse[c]));
                }
                if (!any) continue;
                panel.group_id.push_back(static_cast<std::uint8_t>(g));
                panel.group_weight.insert(panel.group_weight.end(), group.begin(), group.end());
                ++n_groups;
            }
            if (n_groups == 0) continue;
            panel.feature.push_back(r.feature);
            panel.row_group.push_back(panel.row_group.back() + n_groups);
        }
        append_panel(out, FrozenPanel(std::move(panel), n_all_features));
    }
}

/// All blocks of the tree as those of a serving model, whose bias feature is larger by the factor.
inline BlockStorage freeze_tree(const OnlineLearner& learner, const CanonicalTree& canonical, std::int64_t n_features,
                                float prune, float bias_factor) {
    if (n_features < 0 || n_features >= OnlineLearner::bias_feature / 2 || !(prune >= 0))
        throw std::invalid_argument("n_features or prune is out of range");
    const OnlineTree& tree = learner.tree();
    for (int v = 0; v < tree.n_nodes(); ++v)
        if (const OnlineBlock* block = tree.block(v))
            for (const auto& [f, place] : block->sorted_rows())
                if (f != OnlineLearner::bias_feature && f >= n_features)
                    throw std::invalid_argument("the learner has seen more than n_features features");
    const std::int64_t n_all = n_features + (learner.settings().bias != 0.0f);
    BlockStorage storage;
    for (std::size_t i = 0; i < canonical.node.size(); ++i)
        if (!tree.is_leaf(canonical.node[i]))
            freeze_block(*tree.block(canonical.node[i]), static_cast<std::int64_t>(i), n_features, prune, bias_factor,
                         storage, n_all);
    if (tree.gate())
        freeze_block(*tree.gate(), std::ssize(canonical.node), n_features, prune, bias_factor, storage, n_all);
    return storage;
}

}  // namespace ramify
