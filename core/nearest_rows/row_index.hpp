/// Exact nearest rows by cosine: training rows of unit length, a coarse index of them, and comparisons of those that
/// may be nearest.
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
#include "nearest_rows/coarse_index.hpp"

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

/// Space for searches: arrays as long as there are features, zero between two searches.
struct NearestScratch {
    std::vector<float> query;                 ///< by feature
    std::vector<std::vector<Entry>> entries;  ///< per query
    std::vector<CoarseQuery> coarse;          ///< per query
    CoarseScratch block;
    std::vector<std::uint32_t> sharing;
    std::vector<Neighbour> nearest;
    std::int64_t n_products = 0;  ///< rows compared, of all searches
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
/// The coarse index knows all similarities up to an error: rows that are behind the k-th by more than twice that error
/// are never compared. Similarities of the others are sums in the order of their features and in double precision:
/// these alone decide, so that the index changes no bit.
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
        least_weight_ = weight.empty() ? 1.0 : static_cast<double>(*std::ranges::min_element(weight));
        index_.build(row_begin, feature, value);
    }

    void resize(NearestScratch& s) const { s.query.resize(index_.n_features(), 0.0f); }

    /// For each query in turn: the rows of positive similarity, nearest first, until their weights sum up to k, are in
    /// s.nearest when answer(number of the query) is called.
    template <class Answer>
    void find(std::span<const RowView> queries, double k, NearestScratch& s, Answer&& answer) const {
        if (s.entries.size() < queries.size()) s.entries.resize(queries.size()), s.coarse.resize(queries.size());
        std::vector<std::size_t> searched;
        for (std::size_t i = 0; i < queries.size(); ++i) {
            s.entries[i].clear();
            features.append(queries[i].indices, queries[i].values, s.entries[i]);
            // Features that no row has only count for the length of the query.
            std::erase_if(s.entries[i], [&](const Entry& e) { return e.feature >= index_.n_features(); });
            if (index_.begin(s.entries[i], s.coarse[i])) searched.push_back(i);
        }
        // As many rows as are enough even if all are of the least weight.
        const auto n_wanted = static_cast<std::size_t>(std::min(std::ceil(k / least_weight_), 1e15));
        for (std::int64_t block = 0; block < index_.n_blocks(); ++block)
            for (std::size_t i : searched) index_.search(block, n_wanted, s.coarse[i], s.block);
        for (std::size_t i = 0; i < queries.size(); ++i) {
            for (const Entry& e : s.entries[i]) s.query[e.feature] = e.value;
            compare(i, n_wanted, k, s);
            for (const Entry& e : s.entries[i]) s.query[e.feature] = 0.0f;
            answer(i);
        }
    }

    /// The similarity that counts: a sum in the order of the row's features.
    float similarity(std::uint32_t row, const NearestScratch& s) const {
        double sum = 0;
        for (std::int64_t e = row_begin[row]; e < row_begin[row + 1]; ++e)
            sum += static_cast<double>(value[e]) * s.query[feature[e]];
        return static_cast<float>(sum);
    }

private:
    static void check_rising(std::span<const std::int32_t> values, std::int64_t from, std::int64_t to, std::int64_t n,
                             const char* name) {
        std::int64_t last = -1;
        for (std::int64_t k = from; k < to; ++k) {
            check_arrays(values[k] > last && values[k] < n, name);
            last = values[k];
        }
    }

    /// The nearest of the rows that may be, into s.nearest.
    void compare(std::size_t i, std::size_t n_wanted, double k, NearestScratch& s) const {
        CoarseQuery& coarse = s.coarse[i];
        NearestHeap heap(s.nearest, k);
        auto add = [&](std::uint32_t row) {
            heap.add({row, similarity(row, s), weight[row]});
            ++s.n_products;
        };
        coarse.narrow(n_wanted);
        if (coarse.least > 1) {
            std::ranges::sort(coarse.candidates, std::greater{}, &CoarseQuery::Candidate::sum);
            for (const CoarseQuery::Candidate& c : coarse.candidates) {
                if (c.sum + coarse.error < coarse.scale * heap.least()) break;
                add(c.row);
            }
        } else {  // rows of sum zero may be among the nearest: they are few, or share little
            index_.sharing(s.entries[i], s.sharing);
            for (std::uint32_t row : s.sharing) add(row);
        }
        heap.finish();
    }

    CoarseIndex index_;
    double least_weight_ = 1;
};

}  // namespace ramify
