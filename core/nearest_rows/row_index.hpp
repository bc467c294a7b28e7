/// Exact nearest rows by cosine: training rows of unit length, an inverted index over them, and a pruned search.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/flat_arrays.hpp"
#include "base/sparse_rows.hpp"

namespace ramify {

/// What a model file holds. Features rise within a row, labels too.
template <template <class> class Array>
struct NearestRowsArrays {
    Array<std::int64_t> row_begin;  ///< n_rows + 1
    Array<std::int32_t> feature;
    Array<float> value;               ///< rows have unit length, or no entries
    Array<float> weight;              ///< per row
    Array<std::int64_t> label_begin;  ///< n_rows + 1
    Array<std::int32_t> label;
    Array<float> frequency;  ///< per label: its share of the rows, the answer to rows that resemble none
};
using NearestRowsStorage = NearestRowsArrays<OwnedArray>;

template <template <class> class Array, class Work>
void for_each_array(NearestRowsArrays<Array>& a, Work&& work) {
    work("row_begin", a.row_begin);
    work("feature", a.feature);
    work("value", a.value);
    work("weight", a.weight);
    work("label_begin", a.label_begin);
    work("label", a.label);
    work("frequency", a.frequency);
}

struct Neighbour {
    std::uint32_t row;
    float similarity;
    float weight;  ///< the part of the row's weight that counts: the last neighbour may exceed the wanted total
};

/// More similar first; of equals the earlier row.
inline bool is_nearer(const Neighbour& a, const Neighbour& b) {
    return a.similarity != b.similarity ? a.similarity > b.similarity : a.row < b.row;
}

/// Space for one search: arrays as long as there are rows and features, zero between two searches.
struct NearestScratch {
    std::vector<float> reached;  ///< by row: the sum over the features so far; not zero once a feature is shared
    std::vector<float> query;    ///< by feature
    std::vector<Entry> entries;
    std::vector<std::uint32_t> touched, candidates, likely;
    std::vector<double> rest;  ///< per feature of the query, in order of search: the squared length of those after it
    std::vector<Neighbour> nearest;
    std::int64_t n_products = 0;  ///< postings read and rows compared, of all searches
};

/// The nearest rows until their weights sum up to k, as a heap with the farthest on top.
class NearestHeap {
public:
    NearestHeap(std::vector<Neighbour>& heap, double k) : heap_(heap), k_(k) { heap_.clear(); }

    /// Nothing below it can be among the nearest.
    float least() const { return total_ >= k_ ? heap_.front().similarity : 0.0f; }

    void add(const Neighbour& found) {
        if (!(found.similarity > 0) || (total_ >= k_ && !is_nearer(found, heap_.front()))) return;
        heap_.push_back(found);
        std::ranges::push_heap(heap_, is_nearer);
        total_ += found.weight;
        while (total_ - heap_.front().weight >= k_) {
            total_ -= heap_.front().weight;
            std::ranges::pop_heap(heap_, is_nearer);
            heap_.pop_back();
        }
    }

    /// Nearest first; of the last only as much weight as is missing.
    void finish() {
        std::ranges::sort(heap_, is_nearer);
        double left = k_;
        for (Neighbour& n : heap_) {
            n.weight = static_cast<float>(std::min<double>(n.weight, left));
            left -= n.weight;
        }
    }

private:
    std::vector<Neighbour>& heap_;
    double k_, total_ = 0;
};

/// Read-only view of the arrays, checked once, with the index that is built from them.
///
/// A search reads the postings of the query's features, those first that shorten the unread rest of the query most per
/// posting. Both sides have unit length at most, so the rest adds at most its own length to any similarity (Cauchy and
/// Schwarz): rows that are behind the k-th by more are dropped unread. Similarities of the rows that remain are summed
/// up once more, in the order of their features and in double precision: these alone decide, so pruning changes no bit.
struct NearestRows : NearestRowsArrays<ArrayView> {
    FeatureSettings features;
    std::int64_t n_labels = 0;

    std::size_t n_rows() const { return weight.size(); }

    void attach() {
        check_arrays(row_begin.size() >= 1 && n_rows() < std::numeric_limits<std::uint32_t>::max(), "row_begin");
        check_begin(row_begin, n_rows(), feature.size(), "row_begin");
        check_begin(label_begin, n_rows(), label.size(), "label_begin");
        check_arrays(value.size() == feature.size(), "value");
        check_arrays(static_cast<std::int64_t>(frequency.size()) == n_labels, "frequency");
        for (std::size_t i = 0; i < n_rows(); ++i) {
            check_rising(feature, row_begin[i], row_begin[i + 1], features.n_features, "feature");
            check_rising(label, label_begin[i], label_begin[i + 1], n_labels, "label");
            double squared = 0;
            for (std::int64_t e = row_begin[i]; e < row_begin[i + 1]; ++e)
                squared += static_cast<double>(value[e]) * value[e];
            check_arrays(squared <= 1.000001, "value: rows must have unit length");  // NaN is refused too
            check_arrays(weight[i] > 0 && std::isfinite(weight[i]), "weight");
        }
        for (float p : frequency) check_arrays(p >= 0 && p <= 1, "frequency");
        index_rows();
    }

    void resize(NearestScratch& s) const {
        s.reached.resize(n_rows(), 0.0f);
        s.query.resize(posting_begin_.size() - 1, 0.0f);
    }

    /// The rows of positive similarity to x, nearest first, until their weights sum up to k, into s.nearest.
    void find(const RowView& x, double k, NearestScratch& s) const {
        s.entries.clear();
        features.append(x.indices, x.values, s.entries);
        // Features that no row has only count for the length of x.
        std::erase_if(s.entries, [&](const Entry& e) { return e.feature + std::size_t{1} >= posting_begin_.size(); });
        for (const Entry& e : s.entries) s.query[e.feature] = e.value;
        order_features(s);
        const double slack = 1e-6 + 2e-7 * static_cast<double>(s.entries.size());  // rounding of the sums in `reached`
        auto rest_at = [&](std::size_t at) { return (at < s.entries.size() ? std::sqrt(s.rest[at]) : 0.0) + slack; };
        float least = 0;  // the k-th nearest row is at least as similar
        s.touched.clear();
        // Rows that share a feature, until no further row can be near enough.
        std::size_t at = 0, n_read = 0, next_estimate = std::max<std::size_t>(512, 16 * static_cast<std::size_t>(k));
        for (; at < s.entries.size() && !(least > 0 && rest_at(at) < least); ++at) {
            n_read += touch(s.entries[at], s);
            if (n_read >= next_estimate) {
                least = std::max(least, estimate(s.touched, k, s));
                next_estimate = 8 * n_read;
            }
        }
        s.candidates = s.touched;
        least = prune(least, rest_at(at), k, s);
        // Further features of those rows only, as long as that is cheaper than comparing the rows that remain.
        for (; at < s.entries.size() && s.candidates.size() * mean_length_ > postings(s.entries[at]).size(); ++at) {
            n_read += add(s.entries[at], s);
            drop(least, rest_at(at + 1), s);
        }
        least = prune(least, rest_at(at), k, s);
        NearestHeap heap(s.nearest, k);
        for (std::uint32_t row : s.candidates)
            if (s.reached[row] + rest_at(at) >= heap.least()) {
                heap.add({row, similarity(row, s), weight[row]});
                ++s.n_products;
            }
        heap.finish();
        s.n_products += static_cast<std::int64_t>(n_read);
        for (std::uint32_t row : s.touched) s.reached[row] = 0.0f;
        for (const Entry& e : s.entries) s.query[e.feature] = 0.0f;
    }

    /// The similarity that counts: a sum in the order of the row's features.
    float similarity(std::uint32_t row, const NearestScratch& s) const {
        double sum = 0;
        for (std::int64_t e = row_begin[row]; e < row_begin[row + 1]; ++e)
            sum += static_cast<double>(value[e]) * s.query[feature[e]];
        return static_cast<float>(sum);
    }

private:
    struct Posting {
        std::uint32_t row;
        float value;
    };
    /// Stands for a sum of zero of rows that share a feature.
    static constexpr float tiny = 1e-30f;

    std::span<const Posting> postings(const Entry& e) const {
        return {posting_.data() + posting_begin_[e.feature], posting_.data() + posting_begin_[e.feature + 1]};
    }

    static void check_rising(std::span<const std::int32_t> values, std::int64_t from, std::int64_t to, std::int64_t n,
                             const char* name) {
        std::int64_t last = -1;
        for (std::int64_t k = from; k < to; ++k) {
            check_arrays(values[k] > last && values[k] < n, name);
            last = values[k];
        }
    }

    void index_rows() {
        // As long as the rows need it, not n_features: a file of a few bytes may give any number.
        const auto last = std::ranges::max_element(feature);
        posting_begin_.assign(last == feature.end() ? 1 : static_cast<std::size_t>(*last) + 2, 0);
        for (std::int32_t f : feature) ++posting_begin_[static_cast<std::size_t>(f) + 1];
        for (std::size_t f = 1; f < posting_begin_.size(); ++f) posting_begin_[f] += posting_begin_[f - 1];
        posting_.resize(feature.size());
        std::vector<std::int64_t> next(posting_begin_.begin(), posting_begin_.end() - 1);
        for (std::size_t i = 0; i < n_rows(); ++i)
            for (std::int64_t e = row_begin[i]; e < row_begin[i + 1]; ++e)
                posting_[static_cast<std::size_t>(next[feature[e]]++)] = {static_cast<std::uint32_t>(i), value[e]};
        mean_length_ = 1 + feature.size() / std::max<std::size_t>(1, n_rows());
    }

    void order_features(NearestScratch& s) const {
        auto gain = [&](const Entry& e) {
            return static_cast<double>(e.value) * e.value / (1.0 + static_cast<double>(postings(e).size()));
        };
        std::ranges::sort(s.entries, [&](const Entry& a, const Entry& b) {
            const double of_a = gain(a), of_b = gain(b);
            return of_a != of_b ? of_a > of_b : a.feature < b.feature;
        });
        s.rest.resize(s.entries.size());
        double squared = 0;
        for (std::size_t k = s.entries.size(); k-- > 0;)
            s.rest[k] = squared += static_cast<double>(s.entries[k].value) * s.entries[k].value;
    }

    /// Adds a feature to all rows that have it.
    std::size_t touch(const Entry& e, NearestScratch& s) const {
        const auto list = postings(e);
        std::size_t n = s.touched.size();
        s.touched.resize(n + list.size());
        float* reached = s.reached.data();
        std::uint32_t* touched = s.touched.data();
        for (const Posting& p : list) {
            const float before = reached[p.row], after = before + e.value * p.value;
            touched[n] = p.row;
            n += before == 0.0f;
            reached[p.row] = after == 0.0f ? tiny : after;
        }
        s.touched.resize(n);
        return list.size();
    }

    /// Adds a feature to the rows that share an earlier one.
    std::size_t add(const Entry& e, NearestScratch& s) const {
        const auto list = postings(e);
        float* reached = s.reached.data();
        for (const Posting& p : list) {
            const float before = reached[p.row], after = before + e.value * p.value;
            reached[p.row] = before == 0.0f ? 0.0f : after == 0.0f ? tiny : after;
        }
        return list.size();
    }

    /// A similarity that the k-th nearest row has at least: that of the k-th of those with the largest sums so far.
    float estimate(const std::vector<std::uint32_t>& among, double k, NearestScratch& s) const {
        const auto n = std::min(among.size(), static_cast<std::size_t>(k) + 1);
        auto has_more = [&](std::uint32_t a, std::uint32_t b) { return s.reached[a] > s.reached[b]; };
        s.likely.assign(among.begin(), among.begin() + static_cast<std::ptrdiff_t>(n));
        std::ranges::make_heap(s.likely, has_more);  // the least of them on top
        for (std::size_t i = n; i < among.size(); ++i)
            if (s.reached[among[i]] > s.reached[s.likely.front()]) {
                std::ranges::pop_heap(s.likely, has_more);
                s.likely.back() = among[i];
                std::ranges::push_heap(s.likely, has_more);
            }
        NearestHeap heap(s.nearest, k);
        for (std::uint32_t row : s.likely) heap.add({row, similarity(row, s), weight[row]});
        s.n_products += static_cast<std::int64_t>(n);
        return heap.least();
    }

    /// Leaves out candidates that cannot reach `least`.
    static void drop(float least, double rest, NearestScratch& s) {
        std::erase_if(s.candidates, [&](std::uint32_t row) { return s.reached[row] + rest < least; });
    }

    /// The same with a new estimate, which it returns, if there are many.
    float prune(float least, double rest, double k, NearestScratch& s) const {
        drop(least, rest, s);
        if (s.candidates.size() > 4 * (static_cast<std::size_t>(k) + 1)) {
            least = std::max(least, estimate(s.candidates, k, s));
            drop(least, rest, s);
        }
        return least;
    }

    std::vector<std::int64_t> posting_begin_;  // per feature
    std::vector<Posting> posting_;
    std::size_t mean_length_ = 1;
};

}  // namespace ramify
