/// Python bindings of the tree softmax: training, and the trained model's answers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "bindings/saved_arrays.hpp"
#include "softmax/train_softmax.hpp"
#include "softmax/tree_softmax.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

nb::ndarray<nb::numpy, float> handed_over(AlignedFloats&& values) {
    auto* owned = new AlignedFloats(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<AlignedFloats*>(p); });
    const std::size_t shape[] = {owned->size()};
    return nb::ndarray<nb::numpy, float>(owned->data(), 1, shape, owner);
}

ArrayDict train(const CsrInput& x, const LabelInput& y, const TreeInput& tree_arrays, bool is_plt,
                const std::optional<Floats>& sample_weight, const FeatureSettings& features,
                const SoftmaxSettings& settings, std::uint64_t seed, int n_threads, Progress* progress) {
    const CsrView X = x.checked(features.n_features, "X");
    const TreeView tree = tree_arrays.checked();
    check_label_rows(x, y, tree_arrays.n_labels);
    const std::int64_t n_rows = X.n_rows();
    if (n_rows == 0 || n_rows > most) throw nb::value_error("training needs between 1 and 2^31 - 1 rows");
    const std::span<const float> weight =
        checked_positive(sample_weight, static_cast<std::size_t>(n_rows), "sample_weight");
    std::vector<std::int32_t> columns;
    AlignedFloats embedding, output;
    bool has_diverged = false;
    {
        nb::gil_scoped_release release;
        std::vector<std::uint8_t> is_seen(static_cast<std::size_t>(features.n_features));
        for (std::size_t k = 0; k < X.indices.size(); ++k) {
            const auto j = static_cast<std::size_t>(X.indices[k]);
            if (j >= is_seen.size()) refuse_changed_rows();
            is_seen[j] |= X.data[k] != 0.0f;
        }
        for (std::size_t f = 0; f < is_seen.size(); ++f)
            if (is_seen[f]) columns.push_back(static_cast<std::int32_t>(f));
        const std::vector<std::int32_t> leaf_of = tree.leaf_of();
        TrainingLeaves leaves{view(y.indptr), {}};
        for (std::int32_t l : view(y.indices)) {
            if (static_cast<std::size_t>(l) >= leaf_of.size() || leaf_of[static_cast<std::size_t>(l)] < 0)
                throw std::invalid_argument("label " + std::to_string(l) + " has no leaf in the tree");
            leaves.leaf.push_back(leaf_of[static_cast<std::size_t>(l)]);
        }
        const TrainingBags bags(X, features, EmbeddingColumns(columns, features.n_features));
        const SiblingDecisions decisions(tree, is_plt);
        SoftmaxTrainer trainer(bags, leaves, weight, decisions, settings, seed, columns, features.bias != 0.0f);
        trainer.train(n_threads, progress);
        has_diverged = trainer.has_diverged();
        embedding = std::move(trainer.embedding);
        output = std::move(trainer.output);
    }
    if (has_diverged)
        throw nb::value_error("training diverged: lower the learning rate or the batch size, or normalize the rows");
    nb::dict arrays;
    arrays["column"] = to_numpy(std::move(columns));
    arrays["embedding"] = handed_over(std::move(embedding));
    arrays["output"] = handed_over(std::move(output));
    return arrays;
}

/// A trained model. Keeps the numpy arrays alive that it reads, memory-mapped ones too.
class BoundSoftmax {
public:
    BoundSoftmax(const ArrayDict& arrays, const TreeInput& tree_arrays, bool is_plt, const FeatureSettings& features,
                 std::int64_t dim)
        : tree_arrays_(tree_arrays) {
        if (dim < 1 || dim > 65536) throw nb::value_error("dim must be between 1 and 65536");
        if (features.n_features < 0 || features.n_features > most) throw nb::value_error("n_features is out of range");
        model_.decisions = SiblingDecisions(tree_arrays.checked(), is_plt);
        model_.leaf_of = model_.tree().leaf_of();
        model_.features = features;
        const SavedArrays saved(arrays, keep_);
        model_.columns = EmbeddingColumns(saved.take<std::int32_t>("column"), features.n_features);
        model_.embedding = table(saved, "embedding", dim);
        model_.output = table(saved, "output", dim);
        model_.validate();
    }

    CountedAnswers search(const CsrInput& x, std::optional<std::int64_t> top_k, float threshold,
                          const std::optional<Floats>& node_threshold, int n_threads) const {
        const CsrView X = x.checked(model_.features.n_features, "X");
        SearchSettings settings;
        if (top_k) settings.top_k = *top_k;
        if (settings.top_k < 1) throw nb::value_error("top_k must be at least 1");
        settings.threshold = threshold;
        if (node_threshold) {
            settings.node_threshold = view(*node_threshold);
            if (static_cast<int>(settings.node_threshold.size()) != model_.tree().n_nodes())
                throw nb::value_error("node_threshold needs a value for each node");
        }
        CsrAnswers<Found> answers(X.n_rows(), chunk);
        std::int64_t n_opened = 0;
        {
            nb::gil_scoped_release release;
            n_opened = for_every_row(X, n_threads, [&](std::int64_t i, SoftmaxScratch& s) {
                model_.search(settings, s);
                answers.add(i, s.best.found);
            });
            answers.join();
        }
        return std::move(answers).to_tuple(n_opened);
    }

    /// One row, answered best first, with little overhead.
    RowAnswer search_row(const Ints& indices, const Floats& values, std::int64_t top_k, float threshold) const {
        thread_local SoftmaxScratch s;
        check_row(indices, values, model_.features.n_features);
        SearchSettings settings;
        settings.top_k = std::max<std::int64_t>(top_k, 1);
        settings.threshold = threshold;
        model_.hide(view(indices), view(values), s);
        model_.search(settings, s);
        return row_answer(s.best.found);
    }

    /// Probabilities of these labels for each row: n x len(labels).
    auto named(const CsrInput& x, const Ints& labels, int n_threads) const {
        const CsrView X = x.checked(model_.features.n_features, "X");
        check_named_labels(labels, tree_arrays_.n_labels);
        const auto n = static_cast<std::size_t>(X.n_rows()), n_named = labels.size();
        std::vector<float> probability(n * n_named);
        {
            nb::gil_scoped_release release;
            for_every_row(X, n_threads, [&](std::int64_t i, SoftmaxScratch& s) {
                for (std::size_t k = 0; k < n_named; ++k)
                    probability[static_cast<std::size_t>(i) * n_named + k] = model_.named(labels.data()[k], s);
                model_.forget(s);
            });
        }
        return to_numpy(std::move(probability), {n, n_named});
    }

    /// The hidden vectors of these rows: n x stride.
    auto hidden(const CsrInput& x, int n_threads) const {
        const CsrView X = x.checked(model_.features.n_features, "X");
        const auto n = static_cast<std::size_t>(X.n_rows()), stride = model_.embedding.stride;
        std::vector<float> values(n * stride);
        {
            nb::gil_scoped_release release;
            for_every_row(X, n_threads, [&](std::int64_t i, SoftmaxScratch& s) {
                std::ranges::copy(s.hidden,
                                  values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * stride));
            });
        }
        return to_numpy(std::move(values), {n, stride});
    }

    /// For each decision on the way to a label: node, its probability, features and what each added to the score.
    /// Scores of several siblings are relative to their mean, as in a softmax.
    PathSteps explain(const Ints& indices, const Floats& values, std::int32_t label) const {
        check_row(indices, values, model_.features.n_features);
        const std::int32_t leaf = model_.leaf(label);
        if (leaf < 0) throw nb::value_error("this label has no leaf in the tree");
        SoftmaxScratch s;
        model_.hide(view(indices), view(values), s);
        std::vector<std::int32_t> path;
        for (std::int32_t v = leaf; v >= 0; v = model_.tree().parent[v]) path.push_back(v);
        nb::list answer;
        std::vector<float> direction(model_.output.stride), products(s.bag.row.size());
        for (auto v = path.rbegin(); v != path.rend(); ++v) {
            if (*v == 0 && !model_.decisions.is_plt) continue;
            const float probability = *v == 0 ? model_.root(s) : conditional(*v, s);
            std::vector<std::uint32_t> row;
            std::vector<float> factor;
            decided_by(*v, row, factor);
            model_.output.sum(row.data(), factor.data(), static_cast<int>(row.size()), direction.data());
            model_.embedding.dots(s.bag.row.data(), s.bag.size(), direction.data(), products.data());
            std::vector<std::int32_t> feature(row.empty() ? std::vector<std::int32_t>{} : s.bag.feature);
            std::vector<float> contribution(feature.size());
            for (std::size_t k = 0; k < feature.size(); ++k) contribution[k] = s.bag.weight[k] * products[k];
            answer.append(
                nb::make_tuple(*v, probability, to_numpy(std::move(feature)), to_numpy(std::move(contribution))));
        }
        return answer;
    }

private:
    static constexpr std::int64_t chunk = 256;  ///< rows that a thread takes at once

    /// Calls work(row, scratch) for every row, its hidden vector in the scratch. The number of nodes that were opened.
    template <class Work>
    std::int64_t for_every_row(const CsrView& X, int n_threads, Work&& work) const {
        std::vector<SoftmaxScratch> scratch(
            static_cast<std::size_t>(usable_threads(n_threads, n_chunks(X.n_rows(), chunk))));
        parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int worker) {
            SoftmaxScratch& s = scratch[static_cast<std::size_t>(worker)];
            for (std::int64_t i = first; i < last; ++i) {
                const auto [indices, values] = X.row(i);
                model_.hide(indices, values, s);
                work(i, s);
            }
        });
        std::int64_t n_opened = 0;
        for (const SoftmaxScratch& s : scratch) n_opened += s.n_opened;
        return n_opened;
    }

    float conditional(std::int32_t node, SoftmaxScratch& s) const {
        const std::int32_t p = model_.tree().parent[node];
        model_.open(p, s);
        return s.probability[static_cast<std::size_t>(node - model_.tree().first_child[p])];
    }

    /// The rows of the output table that make up a node's score, each with its factor.
    void decided_by(std::int32_t node, std::vector<std::uint32_t>& row, std::vector<float>& factor) const {
        if (node == 0) {
            row.push_back(0);
            factor.push_back(1.0f);
            return;
        }
        const std::int32_t p = model_.tree().parent[node];
        const std::uint32_t n = model_.decisions.n_decided(p), first = model_.decisions.first_row(p);
        const auto place = static_cast<std::uint32_t>(node - model_.tree().first_child[p]);
        if (n == 1) {
            row.push_back(first);
            factor.push_back(place == 1 ? 1.0f : -1.0f);
        } else if (model_.decisions.is_softmax(p)) {
            for (std::uint32_t k = 0; k < n; ++k) {
                row.push_back(first + k);
                factor.push_back((k == place ? 1.0f : 0.0f) - 1.0f / static_cast<float>(n));
            }
        } else if (n > 0) {
            row.push_back(first + place);
            factor.push_back(1.0f);
        }
    }

    static EmbeddingTable table(const SavedArrays& saved, const std::string& name, std::int64_t dim) {
        EmbeddingTable result;
        result.stride = embedding_stride(dim);
        if (saved.has(name + "_scale")) {
            result.bytes = saved.take<std::int8_t>(name);
            result.scale = saved.take<float>(name + "_scale");
        } else {
            result.floats = saved.take<float>(name);
        }
        return result;
    }

    TreeSoftmax model_;
    TreeInput tree_arrays_;
    nb::list keep_;
};

}  // namespace

void bind_softmax(nb::module_& m) {
    nb::class_<SoftmaxSettings>(m, "SoftmaxSettings", "How a tree softmax is trained.")
        .def(
            "__init__",
            [](SoftmaxSettings* self, std::int64_t dim, std::int64_t epochs, double learning_rate, std::int64_t batch,
               bool shuffle, bool hogwild) {
                if (dim < 1 || dim > 65536) throw nb::value_error("dim must be between 1 and 65536");
                if (epochs < 1 || epochs > most) throw nb::value_error("epochs must be between 1 and 2^31 - 1");
                if (!(learning_rate > 0) || !std::isfinite(learning_rate))
                    throw nb::value_error("learning_rate must be finite and above 0");
                if (batch < 1 || batch > 65536) throw nb::value_error("batch must be between 1 and 65536");
                new (self) SoftmaxSettings{dim, epochs, learning_rate, batch, shuffle, hogwild};
            },
            nb::kw_only(), "dim"_a, "epochs"_a, "learning_rate"_a, "batch"_a, "shuffle"_a, "hogwild"_a);
    m.def("train_softmax", &train, "X"_a, "Y"_a, "tree"_a, "is_plt"_a, "sample_weight"_a.none(), "features"_a,
          "settings"_a, "seed"_a, "n_threads"_a, "progress"_a.none() = nb::none(),
          "Train embeddings of features and of a tree's decisions; the arrays of the model.");
    nb::class_<BoundSoftmax>(m, "TreeSoftmax", "A trained tree softmax over (memory-mapped) arrays, and its answers.")
        .def(nb::init<const ArrayDict&, const TreeInput&, bool, const FeatureSettings&, std::int64_t>(), "arrays"_a,
             "tree"_a, "is_plt"_a, "features"_a, "dim"_a)
        .def("search", &BoundSoftmax::search, "X"_a, "top_k"_a.none(), "threshold"_a, "node_threshold"_a.none(),
             "n_threads"_a, "CSR parts of the answer, rows sorted by label, and the number of nodes that were opened.")
        .def("search_row", &BoundSoftmax::search_row, "indices"_a, "values"_a, "top_k"_a, "threshold"_a,
             "One row: labels and their probabilities, best first.")
        .def("named", &BoundSoftmax::named, "X"_a, "labels"_a, "n_threads"_a,
             "Probabilities of these labels for each row.")
        .def("hidden", &BoundSoftmax::hidden, "X"_a, "n_threads"_a, "The hidden vector of each row, padded.")
        .def("explain", &BoundSoftmax::explain, "indices"_a, "values"_a, "label"_a,
             "For each node on the label's path: node, conditional probability, features and what each added to the "
             "score.");
}
