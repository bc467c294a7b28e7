/// Python bindings of nearest rows: storing rows, and their answers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <limits>
#include <optional>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "bindings/saved_arrays.hpp"
#include "nearest_rows/votes.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

FeatureSettings unit_rows(std::int64_t n_features) {
    if (n_features < 0 || n_features > std::numeric_limits<std::int32_t>::max())
        throw nb::value_error("n_features is out of range");
    return {.n_features = n_features, .normalize = true, .bias = 0.0f};
}

ArrayDict store(const CsrInput& x, const LabelInput& y, std::int64_t n_features, std::int64_t n_labels,
                const std::optional<Floats>& sample_weight) {
    const FeatureSettings features = unit_rows(n_features);
    const CsrView X = x.checked(n_features, "X");
    check_rising_labels(x, y, n_labels);
    const auto n_rows = static_cast<std::size_t>(X.n_rows());
    const std::span<const float> weight = checked_positive(sample_weight, n_rows, "sample_weight");
    NearestRowsStorage rows;
    {
        nb::gil_scoped_release release;
        std::vector<Entry> entries;
        std::vector<double> counted(static_cast<std::size_t>(n_labels), 0.0);
        double total = 0;
        rows.row_begin.push_back(0);
        for (std::size_t i = 0; i < n_rows; ++i) {
            const auto [indices, values] = X.row(static_cast<std::int64_t>(i));
            entries.clear();
            features.append(indices, values, entries);
            for (const Entry& e : entries)
                if (e.value != 0.0f) {  // a value may be too small beside the others
                    rows.feature.push_back(static_cast<std::int32_t>(e.feature));
                    rows.value.push_back(e.value);
                }
            rows.row_begin.push_back(std::ssize(rows.feature));
            rows.weight.push_back(weight.empty() ? 1.0f : weight[i]);
            for (std::int64_t k = y.indptr.data()[i]; k < y.indptr.data()[i + 1]; ++k)
                counted[y.indices.data()[k]] += rows.weight.back();
            total += rows.weight.back();
        }
        rows.label_begin.assign(view(y.indptr).begin(), view(y.indptr).end());
        rows.label.assign(view(y.indices).begin(), view(y.indices).end());
        for (double c : counted) rows.frequency.push_back(total > 0 ? static_cast<float>(c / total) : 0.0f);
    }
    return to_dict(std::move(rows));
}

/// Stored rows. Keeps the numpy arrays alive that it reads, memory-mapped ones too.
class BoundRows {
public:
    BoundRows(const ArrayDict& arrays, std::int64_t n_labels, std::int64_t n_features) {
        check_label_count(n_labels);
        rows_.features = unit_rows(n_features);
        rows_.n_labels = n_labels;
        SavedArrays(arrays, keep_).take_all(rows_);
        rows_.attach();
    }

    CountedAnswers predict(const CsrInput& x, std::int64_t k, double power, std::optional<std::int64_t> top_k,
                           float threshold, const std::optional<Floats>& label_threshold, int n_threads) const {
        const CsrView X = x.checked(rows_.features.n_features, "X");
        const NearestVote vote = checked_vote(k, power);
        LabelQuery query = checked_query(rows_.n_labels, top_k, threshold, label_threshold);
        CsrAnswers<LabelProbability> answers(X.n_rows(), chunk);
        std::int64_t n_products = 0;
        {
            nb::gil_scoped_release release;
            query.prepare(rows_.n_labels);
            n_products = for_every_row(X, vote, n_threads, [&](std::int64_t i, VoteScratch& s) {
                vote.choose(query, s);
                answers.add(i, s.found);
            });
            answers.join();
        }
        return std::move(answers).to_tuple(n_products);
    }

    RowAnswer predict_row(const Ints& indices, const Floats& values, std::int64_t k, double power, std::int64_t top_k,
                          float threshold) const {
        check_row(indices, values, rows_.features.n_features);
        const NearestVote vote = checked_vote(k, power);
        thread_local VoteScratch s;
        vote.resize(s);
        LabelQuery query = checked_query(rows_.n_labels, top_k, threshold);
        query.prepare(rows_.n_labels);
        const RowView x{view(indices), view(values)};
        vote.cast({&x, 1}, s, [&](std::size_t) { vote.choose(query, s); });
        return row_answer(s.found);
    }

    /// Probabilities of the labels that are named for each row, in their order.
    Array<float> named(const CsrInput& x, const LabelInput& labels, std::int64_t k, double power, int n_threads) const {
        const CsrView X = x.checked(rows_.features.n_features, "X");
        check_named_labels(x, labels, rows_.n_labels);
        const NearestVote vote = checked_vote(k, power);
        std::vector<float> probability(labels.indices.size());
        {
            nb::gil_scoped_release release;
            for_every_row(X, vote, n_threads, [&](std::int64_t i, VoteScratch& s) {
                for (std::int64_t e = labels.indptr.data()[i]; e < labels.indptr.data()[i + 1]; ++e)
                    probability[e] = vote.probability(labels.indices.data()[e], s);
            });
        }
        return to_numpy(std::move(probability));
    }

    /// CSR parts of the nearest rows and their similarities, nearest first within each row.
    CsrArrays nearest(const CsrInput& x, std::int64_t k, int n_threads) const {
        const CsrView X = x.checked(rows_.features.n_features, "X");
        const NearestVote vote = checked_vote(k, 1.0);
        const auto n = static_cast<std::size_t>(X.n_rows());
        std::vector<std::vector<Neighbour>> found(n);
        std::vector<std::int64_t> indptr{0};
        std::vector<std::int32_t> row;
        std::vector<float> similarity;
        {
            nb::gil_scoped_release release;
            for_every_row(X, vote, n_threads, [&](std::int64_t i, VoteScratch& s) { found[i] = s.nearest; });
            for (const auto& of_row : found) {
                for (const Neighbour& neighbour : of_row) {
                    row.push_back(static_cast<std::int32_t>(neighbour.row));
                    similarity.push_back(neighbour.similarity);
                }
                indptr.push_back(std::ssize(row));
            }
        }
        return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(row)), to_numpy(std::move(similarity)));
    }

    /// For each neighbour of a row: its number, its weight, its share of the vote, its labels, the features in common
    /// and what each adds to the similarity.
    List<Tuple<std::int64_t, double, double, Array<std::int32_t>, Array<std::int32_t>, Array<float>>> neighbours(
        const Ints& indices, const Floats& values, std::int64_t k, double power) const {
        check_row(indices, values, rows_.features.n_features);
        const NearestVote vote = checked_vote(k, power);
        VoteScratch s;
        rows_.resize(s);
        const RowView x{view(indices), view(values)};
        rows_.find({&x, 1}, vote.k, s, [](std::size_t) {});
        const double sum = vote.sum_of_votes(s.nearest);
        for (const Entry& e : s.entries[0]) s.query[e.feature] = e.value;
        nb::list out;
        for (const Neighbour& n : s.nearest) {
            std::vector<std::int32_t> shared;
            std::vector<float> added;
            for (std::int64_t e = rows_.row_begin[n.row]; e < rows_.row_begin[n.row + 1]; ++e)
                if (const float q = s.query[rows_.feature[e]]; q != 0.0f) {
                    shared.push_back(rows_.feature[e]);
                    added.push_back(rows_.value[e] * q);
                }
            const auto of_row =
                rows_.label.subspan(rows_.label_begin[n.row], rows_.label_begin[n.row + 1] - rows_.label_begin[n.row]);
            out.append(nb::make_tuple(static_cast<std::int64_t>(n.row), static_cast<double>(n.weight),
                                      sum > 0 ? vote.vote_of(n) / sum : 0.0,
                                      to_numpy(std::vector<std::int32_t>(of_row.begin(), of_row.end())),
                                      to_numpy(std::move(shared)), to_numpy(std::move(added))));
        }
        return out;
    }

private:
    static constexpr std::int64_t chunk = 64;  ///< rows that a thread takes at once

    NearestVote checked_vote(std::int64_t k, double power) const {
        if (k < 1 || k > std::numeric_limits<std::int32_t>::max()) throw nb::value_error("k is out of range");
        if (!(power >= 0) || !std::isfinite(power)) throw nb::value_error("power must be finite and not negative");
        return {rows_, static_cast<double>(k), power};
    }

    /// Calls work(row, scratch with its vote) for every row; the number of rows compared.
    template <class Work>
    std::int64_t for_every_row(const CsrView& X, const NearestVote& vote, int n_threads, Work&& work) const {
        std::vector<VoteScratch> scratch(usable_threads(n_threads, n_chunks(X.n_rows(), chunk)));
        parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int worker) {
            VoteScratch& s = scratch[worker];
            vote.resize(s);
            std::vector<RowView> queries;
            for (std::int64_t i = first; i < last; ++i) queries.push_back(X.row(i));
            vote.cast(queries, s, [&](std::size_t i) { work(first + static_cast<std::int64_t>(i), s); });
        });
        std::int64_t n_products = 0;
        for (const VoteScratch& s : scratch) n_products += s.n_products;
        return n_products;
    }

    nb::list keep_;
    NearestRows rows_;
};

}  // namespace

void bind_nearest_rows(nb::module_& m) {
    m.def("store_rows", &store, "X"_a, "Y"_a, "n_features"_a, "n_labels"_a, "sample_weight"_a.none(),
          "Rows scaled to unit length, with their labels: the arrays of a NearestRows.");
    nb::class_<BoundRows>(m, "NearestRows", "Stored rows over (memory-mapped) arrays, and the answers of the nearest.")
        .def(nb::init<const ArrayDict&, std::int64_t, std::int64_t>(), "arrays"_a, "n_labels"_a, "n_features"_a)
        .def("predict", &BoundRows::predict, "X"_a, "k"_a, "power"_a, "top_k"_a.none(), "threshold"_a,
             "label_threshold"_a.none(), "n_threads"_a,
             "CSR parts of the answer, rows sorted by label, and the number of rows compared.")
        .def("predict_row", &BoundRows::predict_row, "indices"_a, "values"_a, "k"_a, "power"_a, "top_k"_a,
             "threshold"_a, "One row: labels and their probabilities, best first.")
        .def("named", &BoundRows::named, "X"_a, "labels"_a, "k"_a, "power"_a, "n_threads"_a,
             "Probabilities of the labels that are named for each row.")
        .def("nearest", &BoundRows::nearest, "X"_a, "k"_a, "n_threads"_a,
             "CSR parts: the nearest rows and their similarities, nearest first within each row.")
        .def("neighbours", &BoundRows::neighbours, "indices"_a, "values"_a, "k"_a, "power"_a,
             "For each neighbour: row, weight, share of the vote, labels, features in common, what each adds.");
}
