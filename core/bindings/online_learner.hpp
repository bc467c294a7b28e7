/// An online label tree for Python: arguments are checked, the GIL is released, one thread works at a time.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <limits>
#include <mutex>
#include <optional>

#include "base/model_mutex.hpp"
#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/block_arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "bindings/learning_rows.hpp"
#include "bindings/saved_arrays.hpp"
#include "online_plt/options.hpp"
#include "online_plt/search.hpp"
#include "online_plt/state.hpp"

namespace ramify {

/// Every call takes the lock after releasing the GIL: Python threads take turns, and a user's policy may call back.
class BoundLearner {
public:
    explicit BoundLearner(const LearnerOptions& o)
        : learner_(o.settings, o.growth, o.policy), policy_(o.policy.policy) {}

    void adopt(const TreeInput& tree_arrays) {
        const TreeView tree = tree_arrays.checked();
        const Locked locked(*this);
        const ModelMutex::Change change(mutex_);
        refuse_while_asking();
        if (learner_.n_examples() > 0)
            throw nb::value_error("a learner that has seen examples cannot take another tree");
        learner_.tree().adopt(tree);
    }

    /// Learns the rows in order. `own` is called as own(label, labels, probabilities) -> (node, insert).
    void learn(const CsrInput& x, const LabelInput& y, const std::optional<Floats>& sample_weight,
               const std::optional<Longs>& order, int n_threads, const nb::object& own, Progress* progress) {
        learn_rows(x, y, sample_weight, order, n_threads, own, progress, [](auto, auto) {});
    }

    /// Progressive validation: answers each row (labels, best first) by what was learned before it, then learns it.
    RankedRows test_then_learn(const CsrInput& x, const LabelInput& y, std::int64_t top_k, int n_threads,
                               const nb::object& own) {
        SearchSettings settings;
        settings.top_k = std::max<std::int64_t>(top_k, 0);
        RankedAnswers answers;
        learn_rows(x, y, {}, {}, n_threads, own, nullptr, [&](auto indices, auto values) {
            OnlineSearchScratch& s = row_scratch_;
            s.x.clear();
            learner_.prepare(indices, values, s.x);
            up_to_date(n_threads).search(s.x, settings, s);
            answers.add(s.best.found);
        });
        return std::move(answers).to_tuple();
    }

    void apply_all(int n_threads) {
        const Locked locked(*this);
        refuse_while_asking();
        learn_waiting_rows(n_threads);
    }

    CountedAnswers search(const CsrInput& x, std::optional<std::int64_t> top_k, float threshold,
                          const std::optional<Floats>& label_threshold, int n_threads) {
        const CsrView X = x.checked(OnlineLearner::bias_feature / 2, "X");
        SearchSettings settings;
        if (top_k) settings.top_k = *top_k;
        if (settings.top_k < 0) throw nb::value_error("top_k must not be negative");
        settings.threshold = threshold;
        CsrAnswers<Found> answers(X.n_rows(), chunk);
        std::int64_t n_products = 0;
        {
            const Locked locked(*this);
            std::vector<float> node_threshold;
            if (label_threshold) {
                node_threshold =
                    up_to_date(n_threads).node_thresholds(view(*label_threshold));  // waiting rows may add nodes
                settings.node_threshold = node_threshold;
            }
            n_products =
                for_rows(X, n_threads, [&](const OnlineSearch& search, std::int64_t i, OnlineSearchScratch& s) {
                    search.search(s.x, settings, s);
                    answers.add(i, s.best.found);
                });
            answers.join();
        }
        return std::move(answers).to_tuple(n_products);
    }

    /// One row, answered best first; only the blocks that the search reaches are brought up to date.
    RowAnswer search_row(const Ints& indices, const Floats& values, std::int64_t top_k, float threshold) {
        check_row(indices, values);
        LabelArrays answer;
        {
            const Locked locked(*this);
            OnlineSearchScratch& s = row_scratch_;
            s.x.clear();
            learner_.prepare(view(indices), view(values), s.x);
            SearchSettings settings;
            settings.top_k = std::max<std::int64_t>(top_k, 0);
            settings.threshold = threshold;
            up_to_date(1).search(s.x, settings, s);
            answer.add(s.best.found);
        }
        return std::move(answer).to_tuple();
    }

    auto named(const CsrInput& x, const LabelInput& labels, int n_threads) {
        const CsrView X = x.checked(OnlineLearner::bias_feature / 2, "X");
        check_named_labels(x, labels, std::numeric_limits<std::int32_t>::max());
        std::vector<float> probability(labels.indices.size());
        {
            const Locked locked(*this);
            for_rows(X, n_threads, [&](const OnlineSearch& search, std::int64_t i, OnlineSearchScratch& s) {
                const auto a = static_cast<std::size_t>(labels.indptr.data()[i]),
                           b = static_cast<std::size_t>(labels.indptr.data()[i + 1]);
                search.named(s.x, view(labels.indices).subspan(a, b - a), s, probability.data() + a);
            });
        }
        return to_numpy(std::move(probability));
    }

    /// For each node on the label's path: its number in tree(), its conditional probability, features and what each
    /// added to the score.
    PathSteps explain(const Ints& indices, const Floats& values, std::int32_t label) {
        check_row(indices, values);
        nb::list answer;
        const LockedWithGil locked(*this);
        OnlineSearchScratch& s = row_scratch_;
        s.x.clear();
        learner_.prepare(view(indices), view(values), s.x);
        const OnlineTree& tree = learner_.tree();
        const std::int32_t leaf = tree.leaf(label);
        if (leaf < 0) throw nb::value_error("this label has no leaf in the tree");
        const CanonicalTree canonical(tree);
        std::vector<std::int32_t> number(tree.n_nodes());
        for (std::size_t i = 0; i < canonical.node.size(); ++i)
            number[canonical.node[i]] = static_cast<std::int32_t>(i);
        for (PathStep& step : up_to_date(1).explain(leaf, s.x, s))
            answer.append(nb::make_tuple(number[step.node], step.probability, to_numpy(std::move(step.feature)),
                                         to_numpy(std::move(step.contribution))));
        return answer;
    }

    Tuple<Array<std::int32_t>, Array<std::int32_t>> tree() {
        const LockedWithGil locked(*this);
        if (!learner_.tree().has_labels()) throw nb::value_error("no label has been seen yet: there is no tree");
        CanonicalTree canonical(learner_.tree());
        return nb::make_tuple(to_numpy(std::move(canonical.parent)), to_numpy(std::move(canonical.label)));
    }

    ArrayDict freeze(std::int64_t n_features, float prune, int n_threads) {
        BlockStorage storage;
        float bias_factor = 1.0f;
        std::optional<CanonicalTree> canonical;
        {
            const Locked locked(*this);
            refuse_while_asking();
            learn_waiting_rows(n_threads);
            if (!learner_.tree().has_labels())
                throw nb::value_error("no label has been seen yet: there is nothing to freeze");
            canonical.emplace(learner_.tree());
            bias_factor = frozen_bias_factor(learner_);
            storage = freeze_tree(learner_, *canonical, n_features, prune, bias_factor);
        }
        ArrayDict out = to_dict(std::move(storage));
        out["bias"] = to_numpy(std::vector<float>{learner_.settings().bias * bias_factor});
        out["parent"] = to_numpy(std::move(canonical->parent));
        out["label"] = to_numpy(std::move(canonical->label));
        return out;
    }

    /// With `replay`, rows that are kept as their steps come as weights, like the others.
    ArrayDict state(int n_threads, bool replay) {
        OnlineArrayStorage arrays;
        std::vector<std::uint64_t> counts;
        {
            const Locked locked(*this);
            refuse_while_asking();
            learn_waiting_rows(n_threads);
            arrays = to_arrays(learner_.tree(), replay);
            counts = {learner_.n_examples(), learner_.n_updates, learner_.n_evicted_rows, learner_.n_unchecked_entries};
        }
        ArrayDict out = to_dict(std::move(arrays));
        out["counts"] = to_numpy(std::move(counts));
        return out;
    }

    void restore(const ArrayDict& arrays, std::int64_t n_labels) {
        nb::list keep;
        const SavedArrays saved(arrays, keep);
        OnlineArrays<ArrayView> in;
        bool has_replayed = false;  // files of format version 3 have none
        for_each_replayed_array(in, [&](const char* name, auto&) { has_replayed |= saved.has(name); });
        for_each_stored_array(in, [&](const char* name, auto& view) { saved.take_back_into(name, view); });
        if (has_replayed)
            for_each_replayed_array(in, [&](const char* name, auto& view) { saved.take_back_into(name, view); });
        const std::span<const std::uint64_t> counts = saved.take_back<std::uint64_t>("counts");
        if (counts.size() != 4) throw nb::value_error("the model's array counts has a wrong size");
        const Locked locked(*this);
        const ModelMutex::Change change(mutex_);
        refuse_while_asking();
        if (learner_.n_examples() > 0 || learner_.tree().has_labels())
            throw nb::value_error("only a new learner can restore a model");
        OnlineTree tree = learner_.bare_tree();
        from_arrays(in, std::min<std::int64_t>(n_labels, std::numeric_limits<std::int32_t>::max()), tree);
        learner_.tree() = std::move(tree);
        learner_.set_n_examples(counts[0]);
        learner_.n_updates = counts[1];
        learner_.n_evicted_rows = counts[2];
        learner_.n_unchecked_entries = counts[3];
    }

    // --- for a user's policy and for tests; nodes are numbered in order of their making
    // -----------------------------------

    std::vector<std::int32_t> children(int node) {
        const LockedWithGil locked(*this);
        std::vector<std::int32_t> out;
        if (const OnlineBlock* block = learner_.tree().block(checked(node)))
            for (std::int32_t c : block->child)
                if (c >= 0) out.push_back(c);
        return out;
    }
    bool is_leaf(int node) {
        const LockedWithGil locked(*this);
        return learner_.tree().is_leaf(checked(node));
    }
    int n_leaves(int node) {
        const LockedWithGil locked(*this);
        return learner_.tree().n_leaves(checked(node));
    }
    std::vector<float> probabilities(int node, const Ints& indices, const Floats& values) {
        check_row(indices, values);
        const LockedWithGil locked(*this);
        OnlineBlock* block = learner_.tree().block(checked(node));
        std::vector<float> out;
        if (!block || learner_.tree().is_leaf(node)) return out;
        OnlineSearchScratch& s = row_scratch_;
        s.x.clear();
        learner_.prepare(view(indices), view(values), s.x);
        const std::span<const float> p = learner_.probabilities(*block, s.x, s.score);
        for (std::size_t c = 0; c < p.size(); ++c)
            if (block->child[c] >= 0) out.push_back(p[c]);
        return out;
    }

    std::uint64_t n_examples() {
        const LockedWithGil locked(*this, false);
        return learner_.n_examples();
    }
    std::uint64_t n_evicted_rows() {
        const LockedWithGil locked(*this, false);
        return learner_.n_evicted_rows;
    }
    std::uint64_t n_updates() {
        const Locked locked(*this);
        refuse_while_asking();
        learn_waiting_rows(1);
        return learner_.n_updates;
    }
    std::size_t memory() {
        const LockedWithGil locked(*this, false);
        return learner_.shape_bytes() + learner_.weight_bytes();
    }
    std::size_t weight_memory() {
        const LockedWithGil locked(*this, false);
        return learner_.weight_bytes();
    }
    /// The first of these labels that has no leaf, or -1.
    std::int32_t first_without_leaf(const Ints& labels) {
        const LockedWithGil locked(*this, false);
        for (std::int32_t j : view(labels))
            if (learner_.tree().leaf(j) < 0) return j;
        return -1;
    }
    bool has_labels() {
        const LockedWithGil locked(*this);
        return learner_.tree().has_labels();
    }

private:
    struct Locked {
        nb::gil_scoped_release release;
        std::scoped_lock<ModelMutex> lock;
        explicit Locked(BoundLearner& self) : lock(self.mutex_) {}
    };

    /// For work with Python objects. Never wait for this lock while holding the GIL: its owner may need the GIL.
    struct LockedWithGil {
        std::unique_lock<ModelMutex> lock;
        explicit LockedWithGil(BoundLearner& self, bool looks_at_model = true) : lock(self.mutex_, std::defer_lock) {
            const nb::gil_scoped_release release;
            lock.lock();
            if (looks_at_model) self.learn_waiting_rows(1);
        }
    };

    /// While it is being asked, a user's policy may read everything, and change nothing.
    void refuse_while_asking() const {
        if (is_asking_)
            throw nb::value_error(
                "a policy may only read the model while it is being asked, not train, save or freeze it");
    }

    void learn_waiting_rows(int n_threads) {
        if (!learner_.has_waiting_rows()) return;
        const ModelMutex::Change change(mutex_);
        learner_.apply_all(n_threads);
    }

    /// A search over the tree with all examples applied.
    OnlineSearch up_to_date(int n_threads) {
        learn_waiting_rows(n_threads);
        return OnlineSearch(learner_);
    }

    int checked(int node) const {
        if (node < 0 || node >= learner_.tree().n_nodes()) throw nb::index_error("the tree has no such node");
        return node;
    }

    /// The loop of `learn`; before_each(indices, values) sees every row before it is learned.
    template <class BeforeEach>
    void learn_rows(const CsrInput& x, const LabelInput& y, const std::optional<Floats>& sample_weight,
                    const std::optional<Longs>& order, int n_threads, const nb::object& own, Progress* progress,
                    BeforeEach&& before_each) {
        const LearningRows rows(x, y, sample_weight, order, OnlineLearner::bias_feature / 2);
        const Locked locked(*this);
        refuse_while_asking();
        if (policy_ == Policy::none)
            for (std::int32_t j : rows.labels)
                if (learner_.tree().leaf(j) < 0)
                    throw nb::value_error(("label " + std::to_string(j) + " has no leaf in the given tree").c_str());
        const ModelMutex::Change change(mutex_);
        rows.for_each(progress, [&](const RowView& row, std::span<const std::int32_t> labels, float weight) {
            before_each(row.indices, row.values);
            OwnPolicy own_policy;
            if (policy_ == Policy::callable)
                own_policy = [&](std::int32_t label) { return ask(own, label, row.indices, row.values); };
            learner_.learn(row.indices, row.values, labels, weight, n_threads, own_policy);
        });
    }

    Extension ask(const nb::object& own, std::int32_t label, std::span<const std::int32_t> indices,
                  std::span<const float> values) {
        const nb::gil_scoped_acquire gil;
        struct Asking {
            bool& flag;
            explicit Asking(bool& is_asking) : flag(is_asking) { flag = true; }
            ~Asking() { flag = false; }
        } const asking(is_asking_);
        const auto answer = nb::cast<std::pair<int, bool>>(
            own(label, to_numpy(std::vector<std::int32_t>(indices.begin(), indices.end())),
                to_numpy(std::vector<float>(values.begin(), values.end()))));
        const int node = answer.first;
        if (node < 0 || node >= learner_.tree().n_nodes())
            throw nb::value_error(
                ("the policy chose node " + std::to_string(node) + ", which the tree does not have").c_str());
        if (learner_.tree().is_leaf(node) && !answer.second)
            throw nb::value_error(("the policy chose leaf " + std::to_string(node) +
                                   " without inserting a node: a leaf cannot have children")
                                      .c_str());
        return {node, answer.second};
    }

    static constexpr std::int64_t chunk = 64;  ///< rows that a thread takes at once

    /// Runs work(search, row number, scratch with the prepared row) for every row. The number of inner products.
    template <class Work>
    std::int64_t for_rows(const CsrView& X, int n_threads, Work&& work) {
        const OnlineSearch search = up_to_date(n_threads);
        std::vector<OnlineSearchScratch> scratch(usable_threads(n_threads, n_chunks(X.n_rows(), chunk)));
        parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int worker) {
            OnlineSearchScratch& s = scratch[worker];
            for (std::int64_t i = first; i < last; ++i) {
                const auto [indices, values] = X.row(i);
                s.x.clear();
                learner_.prepare(indices, values, s.x);
                work(search, i, s);
            }
        });
        std::int64_t n_products = 0;
        for (const OnlineSearchScratch& s : scratch) n_products += s.n_inner_products;
        return n_products;
    }

    OnlineLearner learner_;
    Policy policy_;
    OnlineSearchScratch row_scratch_;
    ModelMutex mutex_;
    bool is_asking_ = false;  ///< a user's policy is being asked
};

}  // namespace ramify
