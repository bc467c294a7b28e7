/// Python's view of online label trees.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "arrays.hpp"
#include "block_arrays.hpp"
#include "online_search.hpp"
#include "online_state.hpp"
#include "parallel.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

using Ints = Input<std::int32_t>;
using Longs = Input<std::int64_t>;
using Floats = Input<float>;

template <class Value>
Value choose(const std::map<std::string, Value>& names, const std::string& name, const char* what) {
    const auto at = names.find(name);
    if (at == names.end()) throw nb::value_error((std::string(what) + " '" + name + "' is unknown").c_str());
    return at->second;
}

struct LearnerOptions {
    OnlineSettings settings;
    GrowthSettings growth;
    PolicySettings policy;
};

LearnerOptions options(const std::string& rule, float learning_rate, float eps, float l2, bool normalize, float bias, bool one_of, std::size_t buffer_entries,
                       std::size_t memory_budget, const std::string& policy, double alpha, double fair_share, int arity, int pre_leaf_arity, std::uint64_t seed) {
    const bool is_finite = std::isfinite(learning_rate) && std::isfinite(eps) && std::isfinite(l2) && std::isfinite(bias) && std::isfinite(alpha);
    if (!is_finite || !(learning_rate > 0) || eps < 0 || l2 < 0) throw nb::value_error("learning_rate must be above 0, eps and l2 not negative, all finite");
    if (!(fair_share >= 1)) throw nb::value_error("fair_share must be at least 1");
    if (arity < 2 || pre_leaf_arity < arity) throw nb::value_error("b must be at least 2, and b_max at least b");
    LearnerOptions o;
    o.settings.rule = choose<UpdateRule>({{"adagrad", UpdateRule::adagrad}, {"fobos", UpdateRule::fobos}}, rule, "learner");
    o.settings.learning_rate = learning_rate;
    o.settings.eps = eps;
    o.settings.l2 = l2;
    o.settings.normalize = normalize;
    o.settings.bias = bias;
    o.settings.one_of = one_of;
    o.settings.buffer_entries = std::max<std::size_t>(1, buffer_entries);
    o.settings.memory_budget = memory_budget;
    o.policy.policy = choose<Policy>({{"none", Policy::none}, {"best", Policy::best}, {"random", Policy::random}, {"fair", Policy::fair}, {"cpt", Policy::cpt},
                                      {"callable", Policy::callable}}, policy, "policy");
    o.policy.alpha = alpha;
    o.policy.fair_share = fair_share;
    o.policy.seed = seed;
    o.growth.arity = arity;
    o.growth.pre_leaf_arity = pre_leaf_arity;
    using Theta = GrowthSettings::Theta;
    o.growth.theta = o.policy.policy == Policy::none ? Theta::nowhere : o.policy.policy == Policy::cpt ? Theta::leaves
                   : o.policy.policy == Policy::callable ? Theta::everywhere : Theta::pre_leaves;
    return o;
}

/// Every call takes the lock after it has let go of the GIL: threads of Python take turns, and a user's policy may call back.
class BoundLearner {
public:
    explicit BoundLearner(const LearnerOptions& o) : learner_(o.settings, o.growth, o.policy), policy_(o.policy.policy) {}

    void adopt(const Ints& parent, const Ints& first_child, const Ints& n_children, const Ints& label, std::int64_t n_labels) {
        const TreeView tree{view(parent), view(first_child), view(n_children), view(label)};
        tree.validate(n_labels);
        const Locked locked(*this);
        refuse_while_asking();
        if (learner_.n_examples() > 0) throw nb::value_error("a learner that has seen examples cannot take another tree");
        learner_.tree().adopt(tree);
    }

    /// Learns the rows in order. `own` is called as own(label, labels, probabilities) -> (node, insert).
    void learn(const Longs& x_indptr, const Ints& x_indices, const Floats& x_data, const Longs& y_indptr, const Ints& y_indices,
               const std::optional<Floats>& sample_weight, const std::optional<Longs>& order, int n_threads, const nb::object& own, Progress* progress) {
        learn_rows(x_indptr, x_indices, x_data, y_indptr, y_indices, sample_weight, order, n_threads, own, progress, [](auto, auto) {});
    }

    /// Progressive validation: answers each row (labels, best first) by what was learned before it, then learns it.
    nb::tuple test_then_learn(const Longs& x_indptr, const Ints& x_indices, const Floats& x_data, const Longs& y_indptr, const Ints& y_indices,
                              std::int64_t top_k, int n_threads, const nb::object& own) {
        SearchSettings settings;
        settings.top_k = std::max<std::int64_t>(top_k, 0);
        std::vector<std::int64_t> out_indptr{0};
        std::vector<std::int32_t> out_label;
        learn_rows(x_indptr, x_indices, x_data, y_indptr, y_indices, {}, {}, n_threads, own, nullptr, [&](auto indices, auto values) {
            OnlineSearchScratch& s = row_scratch_;
            s.x.clear();
            learner_.prepare(indices, values, s.x);
            up_to_date(n_threads).search(s.x, settings, s);
            for (const Found& f : s.best.found) out_label.push_back(f.label);
            out_indptr.push_back(std::ssize(out_label));
        });
        return nb::make_tuple(to_numpy(std::move(out_indptr)), to_numpy(std::move(out_label)));
    }

    void apply_all(int n_threads) {
        const Locked locked(*this);
        refuse_while_asking();
        learner_.apply_all(n_threads);
    }

    nb::tuple search(const Longs& indptr, const Ints& indices, const Floats& data, std::optional<std::int64_t> top_k, float threshold,
                     const std::optional<Floats>& label_threshold, int n_threads) {
        const CsrView X = checked_csr(indptr, indices, data, OnlineLearner::bias_feature / 2, "X");
        SearchSettings settings;
        if (top_k) settings.top_k = *top_k;
        if (settings.top_k < 0) throw nb::value_error("top_k must not be negative");
        settings.threshold = threshold;
        const std::int64_t n = X.n_rows();
        std::vector<std::int64_t> out_indptr(n + 1, 0);
        std::vector<std::int32_t> out_label;
        std::vector<float> out_probability;
        std::int64_t n_products = 0;
        {
            const Locked locked(*this);
            std::vector<float> node_threshold;
            if (label_threshold) {
                up_to_date(n_threads);  // rows that wait may still add nodes, and each needs its threshold
                node_threshold = subtree_minimum(view(*label_threshold));
                settings.node_threshold = node_threshold;
            }
            std::vector<std::vector<Found>> answers;
            for_rows(X, n_threads, answers, [&](const OnlineSearch& search, std::int64_t i, OnlineSearchScratch& s, std::vector<Found>& answer) {
                search.search(s.x, settings, s);
                std::ranges::sort(s.best.found, {}, &Found::label);
                answer.insert(answer.end(), s.best.found.begin(), s.best.found.end());
                out_indptr[i + 1] = static_cast<std::int64_t>(s.best.found.size());
            }, n_products);
            for (std::int64_t i = 0; i < n; ++i) out_indptr[i + 1] += out_indptr[i];
            for (const auto& answer : answers)
                for (const Found& f : answer) {
                    out_label.push_back(f.label);
                    out_probability.push_back(f.probability);
                }
        }
        return nb::make_tuple(to_numpy(std::move(out_indptr)), to_numpy(std::move(out_label)), to_numpy(std::move(out_probability)), n_products);
    }

    /// One row, answered best first; only the blocks that the search reaches are brought up to date.
    nb::tuple search_row(const Ints& indices, const Floats& values, std::int64_t top_k, float threshold) {
        check_row(indices, values);
        std::vector<std::int32_t> labels;
        std::vector<float> probabilities;
        {
            const Locked locked(*this);
            OnlineSearchScratch& s = row_scratch_;
            s.x.clear();
            learner_.prepare(view(indices), view(values), s.x);
            SearchSettings settings;
            settings.top_k = std::max<std::int64_t>(top_k, 0);
            settings.threshold = threshold;
            up_to_date(1).search(s.x, settings, s);
            for (const Found& f : s.best.found) {
                labels.push_back(f.label);
                probabilities.push_back(f.probability);
            }
        }
        return nb::make_tuple(to_numpy(std::move(labels)), to_numpy(std::move(probabilities)));
    }

    auto named(const Longs& indptr, const Ints& indices, const Floats& data, const Longs& label_indptr, const Ints& labels, int n_threads) {
        const CsrView X = checked_csr(indptr, indices, data, OnlineLearner::bias_feature / 2, "X");
        check_csr(view(label_indptr), view(labels), std::numeric_limits<std::int32_t>::max(), "labels");
        if (label_indptr.size() != indptr.size()) throw nb::value_error("X and the named labels differ in their number of rows");
        std::vector<float> probability(labels.size());
        {
            const Locked locked(*this);
            std::vector<std::vector<Found>> unused;
            std::int64_t n_products = 0;
            for_rows(X, n_threads, unused, [&](const OnlineSearch& search, std::int64_t i, OnlineSearchScratch& s, std::vector<Found>&) {
                const auto a = static_cast<std::size_t>(label_indptr.data()[i]), b = static_cast<std::size_t>(label_indptr.data()[i + 1]);
                search.named(s.x, view(labels).subspan(a, b - a), s, probability.data() + a);
            }, n_products);
        }
        return to_numpy(std::move(probability));
    }

    /// For each node on the label's path: its number in tree(), its conditional probability, features and what each added to the score.
    nb::list explain(const Ints& indices, const Floats& values, std::int32_t label) {
        check_row(indices, values);
        nb::list answer;
        const LockedWithGil locked(*this);
        OnlineSearchScratch& s = row_scratch_;
        s.x.clear();
        learner_.prepare(view(indices), view(values), s.x);
        const OnlineTree& tree = learner_.tree();
        std::int32_t leaf = tree.leaf(label);
        if (leaf < 0) throw nb::value_error("this label has no leaf in the tree");
        const CanonicalTree canonical(tree);
        std::vector<std::int32_t> number(tree.n_nodes());
        for (std::size_t i = 0; i < canonical.node.size(); ++i) number[canonical.node[i]] = static_cast<std::int32_t>(i);
        std::vector<std::int32_t> path;
        for (std::int32_t v = leaf; v >= 0; v = tree.parent(v)) path.insert(path.begin(), v);
        const OnlineSearch search = up_to_date(1);
        for (std::int32_t v : path) {
            OnlineBlock* block = v == OnlineTree::root ? tree.gate() : tree.block(tree.parent(v));
            if (!block) continue;  // every example had a label: the root is certain
            const int column = v == OnlineTree::root ? 0 : tree.column(v);
            const float probability = v == OnlineTree::root ? search.root_probability(s.x, s) : search.conditionals(tree.parent(v), s.x, s)[column];
            std::vector<std::int32_t> feature;
            std::vector<float> contribution;
            for (const Entry& e : s.x) {
                const std::uint32_t r = block->find(e.feature);
                if (r == OnlineBlock::none || block->row(r)[column] == 0.0f) continue;
                feature.push_back(e.feature == OnlineLearner::bias_feature ? -1 : static_cast<std::int32_t>(e.feature));
                contribution.push_back(block->row(r)[column] * block->scale * e.value);
            }
            answer.append(nb::make_tuple(number[v], probability, to_numpy(std::move(feature)), to_numpy(std::move(contribution))));
        }
        return answer;
    }

    nb::tuple tree() {
        const LockedWithGil locked(*this);
        if (!learner_.tree().has_labels()) throw nb::value_error("no label has been seen yet: there is no tree");
        CanonicalTree canonical(learner_.tree());
        return nb::make_tuple(to_numpy(std::move(canonical.parent)), to_numpy(std::move(canonical.label)));
    }

    nb::dict freeze(std::int64_t n_features, float prune, int n_threads) {
        BlockStorage storage;
        std::optional<CanonicalTree> canonical;
        {
            const Locked locked(*this);
            refuse_while_asking();
            learner_.apply_all(n_threads);
            const OnlineTree& tree = learner_.tree();
            if (!tree.has_labels()) throw nb::value_error("no label has been seen yet: there is nothing to freeze");
            canonical.emplace(tree);
            const std::int64_t n_all = n_features + (learner_.settings().bias != 0.0f);
            if (n_features < 0 || n_features >= OnlineLearner::bias_feature / 2 || !(prune >= 0)) throw nb::value_error("n_features or prune is out of range");
            for (int v = 0; v < tree.n_nodes(); ++v)
                if (const OnlineBlock* block = tree.block(v))
                    for (std::uint32_t f : block->features())
                        if (f != OnlineLearner::bias_feature && f >= n_features) throw nb::value_error("the learner has seen more than n_features features");
            for (std::size_t i = 0; i < canonical->node.size(); ++i)
                if (!tree.is_leaf(canonical->node[i]))
                    freeze_block(*tree.block(canonical->node[i]), static_cast<std::int64_t>(i), n_features, prune, storage, n_all);
            if (tree.gate()) freeze_block(*tree.gate(), std::ssize(canonical->node), n_features, prune, storage, n_all);
        }
        nb::dict out = to_dict(std::move(storage));
        out["parent"] = to_numpy(std::move(canonical->parent));
        out["label"] = to_numpy(std::move(canonical->label));
        return out;
    }

    nb::dict state(int n_threads) {
        OnlineArrayStorage arrays;
        std::vector<std::uint64_t> counts;
        {
            const Locked locked(*this);
            refuse_while_asking();
            learner_.apply_all(n_threads);
            arrays = to_arrays(learner_.tree());
            counts = {learner_.n_examples(), learner_.n_updates, learner_.n_evicted_rows, learner_.n_unchecked_entries};
        }
        nb::dict out;
        out["parent"] = to_numpy(std::move(arrays.parent));
        out["label"] = to_numpy(std::move(arrays.label));
        out["block_node"] = to_numpy(std::move(arrays.block_node));
        out["block_columns"] = to_numpy(std::move(arrays.block_columns));
        out["block_rows"] = to_numpy(std::move(arrays.block_rows));
        out["block_updates"] = to_numpy(std::move(arrays.block_updates));
        out["block_scale"] = to_numpy(std::move(arrays.block_scale));
        out["column_child"] = to_numpy(std::move(arrays.column_child));
        out["feature"] = to_numpy(std::move(arrays.feature));
        out["weight"] = to_numpy(std::move(arrays.weight));
        out["sum"] = to_numpy(std::move(arrays.sum));
        out["counts"] = to_numpy(std::move(counts));
        return out;
    }

    void restore(const nb::dict& arrays, std::int64_t n_labels) {
        OnlineArrays<ArrayView> in;
        nb::list keep;
        auto take = [&]<class T>(std::span<const T>& target, const char* name) {
            Input<T> array;
            if (!arrays.contains(name) || !nb::try_cast(arrays[name], array, false))
                throw nb::value_error((std::string("the model's array ") + name + " is missing or has a wrong type or shape").c_str());
            keep.append(arrays[name]);
            target = view(array);
        };
        take(in.parent, "parent");
        take(in.label, "label");
        take(in.block_node, "block_node");
        take(in.block_columns, "block_columns");
        take(in.block_rows, "block_rows");
        take(in.block_updates, "block_updates");
        take(in.block_scale, "block_scale");
        take(in.column_child, "column_child");
        take(in.feature, "feature");
        take(in.weight, "weight");
        take(in.sum, "sum");
        std::span<const std::uint64_t> counts;
        take(counts, "counts");
        if (counts.size() != 4) throw nb::value_error("the model's array counts has a wrong size");
        const Locked locked(*this);
        refuse_while_asking();
        if (learner_.n_examples() > 0 || learner_.tree().has_labels()) throw nb::value_error("only a learner that knows nothing yet can take back a model");
        OnlineTree tree = learner_.bare_tree();
        from_arrays(in, std::min<std::int64_t>(n_labels, std::numeric_limits<std::int32_t>::max()), tree);
        learner_.tree() = std::move(tree);
        learner_.set_n_examples(counts[0]);
        learner_.n_updates = counts[1];
        learner_.n_evicted_rows = counts[2];
        learner_.n_unchecked_entries = counts[3];
    }

    // --- for a user's policy and for tests; nodes are numbered in order of their making -----------------------------------

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
        learner_.apply_all(1);
        return learner_.n_updates;
    }
    std::size_t memory() {
        const LockedWithGil locked(*this, false);
        return learner_.tree().bytes() + learner_.n_buffer_entries() * sizeof(Entry);
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
        std::lock_guard<std::recursive_mutex> lock;
        explicit Locked(BoundLearner& self) : lock(self.mutex_) {}
    };

    /// For work with Python objects. Nobody waits for the lock while he holds the GIL: its owner may need that to go on.
    struct LockedWithGil {
        std::unique_lock<std::recursive_mutex> lock;
        explicit LockedWithGil(BoundLearner& self, bool looks_at_model = true) : lock(self.mutex_, std::defer_lock) {
            const nb::gil_scoped_release release;
            lock.lock();
            if (looks_at_model) self.learner_.apply_all(1);
        }
    };

    /// Half-way through an example a user's policy may look at everything, and change nothing.
    void refuse_while_asking() const {
        if (is_asking_) throw nb::value_error("a policy was asked where a label goes: until it answers it may only look at the model, not learn, save or freeze it");
    }

    /// Searches in what all examples so far have taught.
    OnlineSearch up_to_date(int n_threads) {
        learner_.apply_all(n_threads);
        return OnlineSearch(learner_);
    }

    int checked(int node) const {
        if (node < 0 || node >= learner_.tree().n_nodes()) throw nb::index_error("the tree has no such node");
        return node;
    }

    static void check_row(const Ints& indices, const Floats& values) {
        if (indices.size() != values.size()) throw nb::value_error("indices and values differ in length");
        for (std::int32_t j : view(indices))
            if (j < 0) throw nb::value_error("a feature number is negative");
    }

    /// The loop of `learn`; before_each(indices, values) sees every row before it is learned.
    template <class BeforeEach>
    void learn_rows(const Longs& x_indptr, const Ints& x_indices, const Floats& x_data, const Longs& y_indptr, const Ints& y_indices,
                    const std::optional<Floats>& sample_weight, const std::optional<Longs>& order, int n_threads, const nb::object& own, Progress* progress,
                    BeforeEach&& before_each) {
        constexpr std::int64_t any_column = OnlineLearner::bias_feature / 2;
        const CsrView X = checked_csr(x_indptr, x_indices, x_data, any_column, "X");
        check_csr(view(y_indptr), view(y_indices), std::numeric_limits<std::int32_t>::max(), "Y");
        const std::int64_t n = X.n_rows();
        if (std::ssize(view(y_indptr)) - 1 != n || (sample_weight && static_cast<std::int64_t>(sample_weight->size()) != n))
            throw nb::value_error("X, Y and sample_weight differ in their number of rows");
        if (order)
            for (std::int64_t i : view(*order))
                if (i < 0 || i >= n) throw nb::value_error("order names a row that X does not have");
        if (sample_weight)
            for (float w : view(*sample_weight))
                if (!(w >= 0) || !std::isfinite(w)) throw nb::value_error("sample_weight must not be negative, NaN or infinite");
        const std::int64_t n_rows = order ? static_cast<std::int64_t>(order->size()) : n;
        if (progress) progress->total = static_cast<std::size_t>(n_rows);
        const Locked locked(*this);
        refuse_while_asking();
        if (policy_ == Policy::none)
            for (std::int32_t j : view(y_indices))
                if (learner_.tree().leaf(j) < 0) throw nb::value_error(("label " + std::to_string(j) + " has no leaf in the given tree").c_str());
        Watch watch;
        for (std::int64_t k = 0; k < n_rows; ++k) {
            const std::int64_t i = order ? order->data()[k] : k;
            const auto x0 = static_cast<std::size_t>(X.indptr[i]), x1 = static_cast<std::size_t>(X.indptr[i + 1]);
            const auto y0 = static_cast<std::size_t>(y_indptr.data()[i]), y1 = static_cast<std::size_t>(y_indptr.data()[i + 1]);
            const auto indices = X.indices.subspan(x0, x1 - x0);
            const auto labels = view(y_indices).subspan(y0, y1 - y0);
            const auto values = X.data.subspan(x0, x1 - x0);
            before_each(indices, values);
            OwnPolicy own_policy;
            if (policy_ == Policy::callable) own_policy = [&](std::int32_t label) { return ask(own, label, indices, values); };
            learner_.learn(indices, values, labels, sample_weight ? sample_weight->data()[i] : 1.0f, n_threads, own_policy);
            if (k % 16 == 0) watch.should_stop();
            if (progress) progress->done = static_cast<std::size_t>(k + 1);
        }
    }

    Extension ask(const nb::object& own, std::int32_t label, std::span<const std::int32_t> indices, std::span<const float> values) {
        const nb::gil_scoped_acquire gil;
        struct Asking {
            bool& flag;
            explicit Asking(bool& is_asking) : flag(is_asking) { flag = true; }
            ~Asking() { flag = false; }
        } const asking(is_asking_);
        const auto answer = nb::cast<std::pair<int, bool>>(own(label, to_numpy(std::vector<std::int32_t>(indices.begin(), indices.end())),
                                                                 to_numpy(std::vector<float>(values.begin(), values.end()))));
        const int node = answer.first;
        if (node < 0 || node >= learner_.tree().n_nodes())
            throw nb::value_error(("the policy chose node " + std::to_string(node) + ", which the tree does not have").c_str());
        if (learner_.tree().is_leaf(node) && !answer.second)
            throw nb::value_error(("the policy chose leaf " + std::to_string(node) + " without inserting a node: a leaf cannot have children").c_str());
        return {node, answer.second};
    }

    /// Runs work(search, row number, scratch with the prepared row, the chunk's answers) for every row.
    template <class Work>
    void for_rows(const CsrView& X, int n_threads, std::vector<std::vector<Found>>& answers, Work&& work, std::int64_t& n_products) {
        constexpr std::int64_t chunk = 64;
        const std::int64_t n = X.n_rows();
        const auto n_chunks = static_cast<std::size_t>((n + chunk - 1) / chunk);
        const OnlineSearch search = up_to_date(n_threads);
        answers.resize(n_chunks);
        std::vector<OnlineSearchScratch> scratch(usable_threads(n_threads, n_chunks));
        parallel_for(n_chunks, n_threads, [&](std::size_t task, int worker) {
            OnlineSearchScratch& s = scratch[worker];
            for (std::int64_t i = static_cast<std::int64_t>(task) * chunk; i < std::min(n, static_cast<std::int64_t>(task + 1) * chunk); ++i) {
                const auto from = static_cast<std::size_t>(X.indptr[i]), length = static_cast<std::size_t>(X.indptr[i + 1]) - from;
                s.x.clear();
                learner_.prepare(X.indices.subspan(from, length), X.data.subspan(from, length), s.x);
                work(search, i, s, answers[task]);
            }
        });
        for (const OnlineSearchScratch& s : scratch) n_products += s.n_inner_products;
    }

    /// Per node the least threshold of the labels below it; a label without a threshold has none.
    std::vector<float> subtree_minimum(std::span<const float> threshold) const {
        const OnlineTree& tree = learner_.tree();
        std::vector<float> least(tree.n_nodes(), std::numeric_limits<float>::infinity());
        for (int v = 0; v < tree.n_nodes(); ++v) {
            if (!tree.is_leaf(v)) continue;
            const float t = tree.label(v) < std::ssize(threshold) ? threshold[tree.label(v)] : 0.0f;
            for (int a = v; a >= 0 && t < least[a]; a = tree.parent(a)) least[a] = t;
        }
        return least;
    }

    OnlineLearner learner_;
    Policy policy_;
    OnlineSearchScratch row_scratch_;
    std::recursive_mutex mutex_;
    bool is_asking_ = false;  ///< a user's policy is being asked
};

}  // namespace

void bind_online(nb::module_& m) {
    nb::class_<BoundLearner>(m, "OnlineLearner", "A label tree that learns, and grows, example by example.")
        .def(
            "__init__",
            [](BoundLearner* self, const std::string& rule, float learning_rate, float eps, float l2, bool normalize, float bias, bool one_of,
               std::size_t buffer_entries, std::size_t memory_budget, const std::string& policy, double alpha, double fair_share, int arity, int pre_leaf_arity,
               std::uint64_t seed) {
                new (self) BoundLearner(options(rule, learning_rate, eps, l2, normalize, bias, one_of, buffer_entries, memory_budget, policy, alpha, fair_share,
                                                arity, pre_leaf_arity, seed));
            },
            nb::kw_only(), "rule"_a, "learning_rate"_a, "eps"_a, "l2"_a, "normalize"_a, "bias"_a, "one_of"_a, "buffer_entries"_a, "memory_budget"_a, "policy"_a,
            "alpha"_a, "fair_share"_a, "arity"_a, "pre_leaf_arity"_a, "seed"_a)
        .def("adopt", &BoundLearner::adopt, "parent"_a, "first_child"_a, "n_children"_a, "label"_a, "n_labels"_a, "Start with this tree.")
        .def("learn", &BoundLearner::learn, "x_indptr"_a, "x_indices"_a, "x_data"_a, "y_indptr"_a, "y_indices"_a, "sample_weight"_a.none(), "order"_a.none(),
             "n_threads"_a, "own_policy"_a.none(), "progress"_a.none(), "Learn the rows, in the order given or their own.")
        .def("test_then_learn", &BoundLearner::test_then_learn, "x_indptr"_a, "x_indices"_a, "x_data"_a, "y_indptr"_a, "y_indices"_a, "top_k"_a, "n_threads"_a,
             "own_policy"_a.none(), "Answer each row by what was learned before it, then learn it: where rows begin, and labels, best first.")
        .def("apply_all", &BoundLearner::apply_all, "n_threads"_a, "Bring every block up to date.")
        .def("search", &BoundLearner::search, "indptr"_a, "indices"_a, "data"_a, "top_k"_a.none(), "threshold"_a, "label_threshold"_a.none(), "n_threads"_a,
             "CSR parts of the answer, rows sorted by label, and the number of inner products taken.")
        .def("search_row", &BoundLearner::search_row, "indices"_a, "values"_a, "top_k"_a, "threshold"_a, "One row: labels and their probabilities, best first.")
        .def("named", &BoundLearner::named, "indptr"_a, "indices"_a, "data"_a, "label_indptr"_a, "labels"_a, "n_threads"_a,
             "Probabilities of the labels named for each row.")
        .def("explain", &BoundLearner::explain, "indices"_a, "values"_a, "label"_a,
             "For each node on the label's path: node, conditional probability, features (-1: bias) and what each added to the score.")
        .def("tree", &BoundLearner::tree, "Parents and labels of the tree's nodes, numbered breadth first.")
        .def("freeze", &BoundLearner::freeze, "n_features"_a, "prune"_a, "n_threads"_a, "Arrays of frozen blocks, with the tree's parent and label.")
        .def("state", &BoundLearner::state, "n_threads"_a, "Everything that is learned, as arrays.")
        .def("restore", &BoundLearner::restore, "arrays"_a, "n_labels"_a, "Take back what state gave; labels are below n_labels.")
        .def("first_without_leaf", &BoundLearner::first_without_leaf, "labels"_a, "The first of these labels that has no leaf in the tree, or -1.")
        .def("children", &BoundLearner::children, "node"_a, "Children of a node, by the numbers of their making; the root is 0.")
        .def("is_leaf", &BoundLearner::is_leaf, "node"_a)
        .def("n_leaves", &BoundLearner::n_leaves, "node"_a, "Labels below a node.")
        .def("probabilities", &BoundLearner::probabilities, "node"_a, "indices"_a, "values"_a, "Conditional probabilities of a node's children.")
        .def_prop_ro("n_examples", &BoundLearner::n_examples, "Examples learned.")
        .def_prop_ro("n_updates", &BoundLearner::n_updates, "Updates of single classifiers, auxiliary ones included.")
        .def_prop_ro("n_evicted_rows", &BoundLearner::n_evicted_rows, "Rows given up for the memory budget.")
        .def_prop_ro("memory", &BoundLearner::memory, "Bytes held.")
        .def_prop_ro("has_labels", &BoundLearner::has_labels, "Whether any label has been seen.");
}
