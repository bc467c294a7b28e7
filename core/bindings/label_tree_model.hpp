/// A trained label tree as Python sees it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "bindings/saved_arrays.hpp"
#include "plt/label_paths.hpp"
#include "plt/tree_search.hpp"

namespace ramify {

/// A trained label tree. Keeps the numpy arrays alive that it reads, memory-mapped ones too.
class BoundModel {
public:
    using LinkTable = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using ClaimTables = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

    BoundModel(const ArrayDict& arrays, const TreeInput& tree_arrays, const FeatureSettings& features,
               const LinkTable& link, const LinkTable& link_slopes, float link_low, float link_step, bool is_multiclass,
               const std::optional<ClaimTables>& claims, float top_from)
        : tree_arrays_(tree_arrays) {
        model_.tree = tree_arrays.checked();
        const SavedArrays saved(arrays, keep_);
        FrozenBlocks& b = model_.blocks;
        b.panels = saved.take<std::int64_t, 2>("panels");
        b.column_child = saved.take<std::int32_t>("column_child");
        b.column_scale = saved.take<float>("column_scale");
        b.column_rate = saved.take<float>("column_rate");
        b.index = saved.take<std::uint32_t>("index");
        b.rows = saved.take<std::uint8_t>("rows");
        b.table = saved.take<float>("table");
        model_.features = features;
        if (link.shape(0) > 0) {
            if (link.shape(1) < 2 || !(link_step > 0) || !std::isfinite(link_step) || !std::isfinite(link_low))
                throw nb::value_error("a link map needs at least two knots and a grid of finite numbers");
            // Far from its knots a map is a line that goes on for ever: every probability would be 0 or 1.
            if (link_low > 0 || link_low + link_step * static_cast<float>(link.shape(1) - 1) < 0)
                throw nb::value_error("the grid of a link map must contain the score 0");
            if (link_slopes.shape(0) != link.shape(0) || link_slopes.shape(1) != link.shape(1))
                throw nb::value_error("a link map needs as many slopes as logits");
            model_.link = {link.data(), link.size()};
            model_.link_slopes = {link_slopes.data(), link_slopes.size()};
            for (std::span<const float> table : {model_.link, model_.link_slopes})
                for (float value : table)
                    if (!std::isfinite(value)) throw nb::value_error("a link map must be finite");
            model_.n_levels = static_cast<std::int64_t>(link.shape(0));
            model_.n_knots = static_cast<int>(link.shape(1));
            model_.link_low = link_low;
            model_.link_step = link_step;
            keep_.append(link);
            keep_.append(link_slopes);
        }
        model_.is_multiclass = is_multiclass;
        if (claims) {
            if (!is_multiclass || claims->shape(0) != 2 || claims->shape(1) != link.shape(0) ||
                claims->shape(2) != link.shape(1) || claims->size() == 0)
                throw nb::value_error("claims need logits and slopes of the link's shape, and classes");
            if (!(top_from > 0 && top_from <= 1)) throw nb::value_error("top_from must be above 0 and at most 1");
            model_.claims = {claims->data(), claims->size()};
            model_.top_from = top_from;
            for (float value : model_.claims)
                if (!std::isfinite(value)) throw nb::value_error("claims must be finite");
            keep_.append(*claims);
        }
        const nb::gil_scoped_release release;  // the checks read the whole model, and others may be asked meanwhile
        model_.attach();
        if (b.rows.size() >= beyond_caches) eager = 0.6f;
    }

    /// SearchSettings::eager. Blocks that do not fit the caches are fetched for several rows of a round at once, which
    /// saves more than the blocks cost that are opened in vain. One row is searched in the same rounds: with slack the
    /// order decides what is left out.
    float eager = 1.0f;

    CountedAnswers search(const CsrInput& x, std::optional<std::int64_t> top_k, float threshold,
                          const std::optional<Floats>& node_threshold, std::int64_t beam, int n_threads, float bound,
                          const std::optional<Doubles>& top_sums) const {
        Answer found = run(x, top_k, threshold, node_threshold, beam, n_threads, bound, false, top_sums);
        return std::move(found.answers).to_tuple(found.n_products);
    }

    /// For each row the sum of what the top of the tree hands down, before it is divided by that sum. Where a tree is
    /// in parts, the sum over all of them takes its place in `search`.
    Array<double> top_sums(const CsrInput& x, int n_threads) const {
        const CsrView X = x.checked(model_.features.n_features, "X");
        if (!model_.has_top()) throw nb::value_error("only a model with claims has a top");
        std::vector<double> sums(static_cast<std::size_t>(X.n_rows()));
        {
            const nb::gil_scoped_release release;
            constexpr std::int64_t chunk = 128;
            parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int) {
                SearchScratch s;
                for (std::int64_t i = first; i < last; ++i) {
                    prepare(X, i, s.x);
                    model_.open_top(s.x, s);
                    sums[i] = s.top.sum;
                }
            });
        }
        return to_numpy(std::move(sums));
    }

    /// The same answer, with its cost: blocks scored for each row, and the probability that a skipped label may have.
    Tuple<Array<std::int64_t>, Array<std::int32_t>, Array<float>, std::int64_t, Array<std::int32_t>, Array<float>>
    trace(const CsrInput& x, std::optional<std::int64_t> top_k, float threshold,
          const std::optional<Floats>& node_threshold, std::int64_t beam, int n_threads, float bound) const {
        Answer found = run(x, top_k, threshold, node_threshold, beam, n_threads, bound, true);
        return std::move(found.answers)
            .to_tuple(found.n_products, to_numpy(std::move(found.n_blocks)), to_numpy(std::move(found.given_up)));
    }

    /// One row, answered best first, with little overhead.
    RowAnswer search_row(const Ints& indices, const Floats& values, std::int64_t top_k, float threshold,
                         std::int64_t beam, float bound) const {
        check_row(indices, values, model_.features.n_features);
        thread_local SearchScratch s;
        s.x.clear();
        model_.features.append(view(indices), view(values), s.x);
        SearchSettings settings = checked_settings(top_k, threshold, beam, bound);
        settings.eager = eager;
        model_.search(s.x, settings, s);
        return row_answer(s.found);
    }

    /// Probabilities of named labels: those of row i are labels.indices[labels.indptr[i] .. labels.indptr[i + 1]].
    auto named(const CsrInput& x, const LabelInput& labels, int n_threads) const {
        const CsrView X = x.checked(model_.features.n_features, "X");
        check_named_labels(x, labels, tree_arrays_.n_labels);
        std::vector<float> probability(labels.indices.size());
        {
            nb::gil_scoped_release release;
            std::vector<std::int32_t> leaves(labels.indices.size());
            for (std::size_t k = 0; k < leaves.size(); ++k) leaves[k] = model_.leaf(labels.indices.data()[k]);
            constexpr std::int64_t chunk = 128;
            parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int) {
                thread_local SearchScratch s;  // kept from call to call: it is as large as the tree
                for (std::int64_t i = first; i < last; ++i) {
                    prepare(X, i, s.x);
                    const std::int64_t a = labels.indptr.data()[i], b = labels.indptr.data()[i + 1];
                    model_.named(s.x, std::span(leaves).subspan(a, b - a), s, probability.data() + a);
                }
            });
        }
        return to_numpy(std::move(probability));
    }

    /// For rows of labels that were held out: their leaves that are reached with at least `least`, with the log of the
    /// conditional probability at each level of the path (0 beyond it). Only below nodes that have blocks.
    Tuple<Array<std::int32_t>, Array<std::int32_t>, Array<float>> paths(const CsrInput& x, float least) const {
        const CsrView X = x.checked(model_.features.n_features, "X");
        if (model_.has_top()) throw nb::value_error("a model with claims has no paths of products");
        std::vector<std::int32_t> row, label;
        std::vector<float> logs;
        {
            const nb::gil_scoped_release release;
            SearchScratch s;
            for (std::int64_t i = 0; i < X.n_rows(); ++i) {
                prepare(X, i, s.x);
                label_paths(model_, s.x, least, s, [&](std::int32_t leaf, std::span<const float> path) {
                    row.push_back(static_cast<std::int32_t>(i));
                    label.push_back(model_.tree.label[leaf]);
                    logs.insert(logs.end(), path.begin(), path.end());
                });
            }
        }
        const std::size_t n = row.size();
        return nb::make_tuple(to_numpy(std::move(row)), to_numpy(std::move(label)),
                              to_numpy(std::move(logs), {n, static_cast<std::size_t>(model_.n_levels)}));
    }

    /// Explains a label: for each node on the path, its conditional probability and what each feature of x added to its
    /// score.
    PathSteps explain(const Ints& indices, const Floats& values, std::int32_t label) const {
        check_row(indices, values, model_.features.n_features);
        std::vector<Entry> x;
        model_.features.append(view(indices), view(values), x);
        const std::int32_t leaf = model_.leaf(label);
        if (leaf < 0) throw nb::value_error("this label has no leaf in the tree");
        std::vector<std::pair<int, int>> path;  // (block, child)
        for (std::int32_t v = leaf; v > 0; v = model_.tree.parent[v]) path.emplace_back(model_.tree.parent[v], v);
        path.emplace_back(model_.gate(), 0);
        nb::list answer;
        ScoreScratch scratch;
        SearchScratch search;
        std::unordered_map<std::int32_t, double> mass;  // of the top's nodes and their children
        if (model_.has_top()) {
            const float scale = model_.open_top(x, search);
            search.top.hand_down(scale, [&](float p, std::int32_t v) {
                for (; v >= 0; v = model_.tree.parent[v]) mass[v] += static_cast<double>(p);
            });
        }
        for (auto it = path.rbegin(); it != path.rend(); ++it) {
            const auto [block, child] = *it;
            if (block == model_.gate() && !model_.blocks.has(block)) continue;
            const std::int32_t position = block == model_.gate() ? 0 : child - model_.tree.first_child[block];
            float probability = 0;
            if (model_.blocks.has(block)) {
                model_.conditional(block, x, scratch);
                for (std::size_t c = 0; c < scratch.child.size(); ++c)
                    if (scratch.child[c] == position) probability = scratch.score[c];
                const auto of_child = mass.find(child), of_parent = mass.find(block);
                if (of_child != mass.end() && of_parent != mass.end())
                    probability = of_parent->second > 0
                                      ? static_cast<float>(std::min(1.0, of_child->second / of_parent->second))
                                      : 0.0f;
            }
            std::vector<std::int32_t> feature;
            std::vector<float> contribution;
            for (int i = model_.blocks.panel_begin[block]; i < model_.blocks.panel_begin[block + 1]; ++i) {
                const PanelRecord& p = model_.blocks.panel(i);
                for (int c = 0; c < p.n_columns; ++c) {
                    if (model_.blocks.column_child[p.first_column + c] != position) continue;
                    for (const Entry& e : x) {
                        const float w = model_.blocks.weight(p, e.feature, c);
                        if (w == 0.0f) continue;
                        feature.push_back(static_cast<std::int32_t>(e.feature));
                        contribution.push_back(w * e.value);
                    }
                }
            }
            answer.append(
                nb::make_tuple(child, probability, to_numpy(std::move(feature)), to_numpy(std::move(contribution))));
        }
        return answer;
    }

    const LabelTreeModel& model() const { return model_; }
    std::int64_t n_labels() const { return tree_arrays_.n_labels; }

    /// Nodes are opened only where 1 - bound of their probability is not beaten.
    static SearchSettings checked_settings(std::int64_t top_k, float threshold, std::int64_t beam, float bound) {
        if (!(bound >= 0 && bound < 1)) throw nb::value_error("bound must be at least 0 and below 1");
        SearchSettings settings;
        settings.top_k = top_k;
        settings.threshold = threshold;
        settings.beam = beam;
        settings.at_stake = 1 - bound;
        return settings;
    }

    void check_node_threshold(std::span<const float> node_threshold) const {
        if (node_threshold.size() != model_.tree.parent.size())
            throw nb::value_error("node_threshold needs a value for each node");
    }

    /// A model that fits the cache is searched a few rows at a time, so that they stay there too. A larger one needs
    /// enough rows that many open the same nodes, but so few that every thread has work and long answers fit into
    /// memory.
    std::int64_t rows_side_by_side(const SearchSettings& settings, std::int64_t n_rows, int n_threads) const {
        const std::int64_t most = model_.blocks.rows.size() < beyond_caches ? 64 : settings.top_k > 1000 ? 256 : 16384;
        return std::clamp<std::int64_t>((n_rows + n_threads - 1) / n_threads, 1, most);
    }

private:
    static constexpr std::size_t beyond_caches = std::size_t{64} << 20;

    struct Answer {
        CsrAnswers<Found> answers;
        std::vector<std::int32_t> n_blocks;  ///< per row, if asked for
        std::vector<float> given_up;
        std::int64_t n_products = 0;
    };

    Answer run(const CsrInput& x, std::optional<std::int64_t> top_k, float threshold,
               const std::optional<Floats>& node_threshold, std::int64_t beam, int n_threads, float bound,
               bool is_traced, const std::optional<Doubles>& top_sums = {}) const {
        const CsrView X = x.checked(model_.features.n_features, "X");
        SearchSettings settings =
            checked_settings(top_k.value_or(std::numeric_limits<std::int64_t>::max()), threshold, beam, bound);
        settings.eager = eager;
        if (node_threshold) {
            settings.node_threshold = view(*node_threshold);
            check_node_threshold(settings.node_threshold);
        }
        const std::int64_t n = X.n_rows();
        std::span<const double> given_sums;
        if (top_sums) {
            given_sums = view(*top_sums);
            if (!model_.has_top() || beam > 0) throw nb::value_error("top_sums are for exact searches with claims");
            if (std::ssize(given_sums) != n) throw nb::value_error("top_sums needs a value for each row");
        }
        const int threads = usable_threads(n_threads, static_cast<std::size_t>(n));
        const std::int64_t chunk = settings.beam > 0 ? 128 : rows_side_by_side(settings, n, threads);
        nb::gil_scoped_release release;
        const auto n_traced = static_cast<std::size_t>(is_traced ? n : 0);
        Answer out{CsrAnswers<Found>(n, chunk), std::vector<std::int32_t>(n_traced), std::vector<float>(n_traced)};
        std::vector<SearchScratch> scratch(threads);
        std::vector<BatchScratch> batches(threads);
        Watch watch;
        auto work = [&](std::int64_t from, std::int64_t to, int worker) {
            SearchScratch& s = scratch[worker];
            BatchScratch& batch = batches[worker];
            auto answer = [&](std::int64_t i, std::vector<Found>& found, std::int32_t n_blocks, float given_up) {
                if (is_traced) {
                    out.n_blocks[i] = n_blocks;
                    out.given_up[i] = given_up;
                }
                out.answers.add(i, found);
            };
            if (settings.beam > 0) {
                for (std::int64_t i = from; i < to; ++i) {
                    prepare(X, i, s.x);
                    model_.search(s.x, settings, s);
                    answer(i, s.found, s.best.n_opened, s.given_up);
                }
                return;
            }
            batch.clear();
            for (std::int64_t i = from; i < to; ++i) {
                append(X, i, batch.entries);
                batch.begin.push_back(batch.entries.size());
            }
            if (!given_sums.empty()) batch.top_sum = given_sums.subspan(from, to - from);
            model_.search_batch(settings, batch, s, watch);
            for (std::int64_t i = from; i < to; ++i) {
                BestFirst& search = batch.search[i - from];
                answer(i, search.found, search.n_opened, search.given_up(settings));
            }
        };
        parallel_chunks(n, chunk, threads, work, &watch);
        out.answers.join();
        for (const SearchScratch& s : scratch) out.n_products += s.n_inner_products;
        return out;
    }

    void append(const CsrView& X, std::int64_t i, std::vector<Entry>& rows) const {
        const auto [indices, values] = X.row(i);
        model_.features.append(indices, values, rows);
    }
    void prepare(const CsrView& X, std::int64_t i, std::vector<Entry>& row) const {
        row.clear();
        append(X, i, row);
    }

    LabelTreeModel model_;
    TreeInput tree_arrays_;
    nb::list keep_;
};

}  // namespace ramify
