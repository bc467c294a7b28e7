/// Answers as numpy arrays: of many rows as the parts of a CSR array, of one row as its labels, best first.
///
/// `Found` is what a model finds: anything with a label and a probability.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"

namespace ramify {

/// Labels and probabilities, one after the other.
struct LabelArrays {
    std::vector<std::int32_t> label;
    std::vector<float> probability;

    template <class Found>
    void add(const std::vector<Found>& found) {
        for (const Found& f : found) {
            label.push_back(f.label);
            probability.push_back(f.probability);
        }
    }
    RowAnswer to_tuple() && { return nb::make_tuple(to_numpy(std::move(label)), to_numpy(std::move(probability))); }
};

/// The answer to one row.
template <class Found>
RowAnswer row_answer(const std::vector<Found>& found) {
    LabelArrays arrays;
    arrays.add(found);
    return std::move(arrays).to_tuple();
}

/// The answers to rows that come in order, each its labels, best first.
struct RankedAnswers {
    std::vector<std::int64_t> begin{0};
    std::vector<std::int32_t> label;

    template <class Found>
    void add(const std::vector<Found>& found) {
        for (const Found& f : found) label.push_back(f.label);
        begin.push_back(std::ssize(label));
    }
    RankedRows to_tuple() && { return nb::make_tuple(to_numpy(std::move(begin)), to_numpy(std::move(label))); }
};

/// The answers to many rows, collected by threads that each take a chunk of rows at once.
template <class Found>
class CsrAnswers {
public:
    CsrAnswers(std::int64_t n_rows, std::int64_t chunk)
        : chunk_(chunk), indptr_(static_cast<std::size_t>(n_rows) + 1, 0), of_chunk_(n_chunks(n_rows, chunk)) {}

    /// The answer to row i, which is put in order of labels; the rows of a chunk come in order.
    void add(std::int64_t i, std::vector<Found>& found) {
        std::ranges::sort(found, {}, &Found::label);
        auto& answer = of_chunk_[static_cast<std::size_t>(i / chunk_)];
        answer.insert(answer.end(), found.begin(), found.end());
        indptr_[static_cast<std::size_t>(i) + 1] = std::ssize(found);
    }

    /// Once all rows are answered.
    void join() {
        for (std::size_t i = 1; i < indptr_.size(); ++i) indptr_[i] += indptr_[i - 1];
        all_.label.reserve(static_cast<std::size_t>(indptr_.back()));
        all_.probability.reserve(static_cast<std::size_t>(indptr_.back()));
        for (auto& answer : of_chunk_) {
            all_.add(answer);
            std::vector<Found>().swap(answer);  // otherwise the peak is twice the answer
        }
    }

    /// indptr, labels, probabilities, and more values.
    template <class... More>
    nb::tuple to_tuple(More&&... more) && {
        return nb::make_tuple(to_numpy(std::move(indptr_)), to_numpy(std::move(all_.label)),
                              to_numpy(std::move(all_.probability)), std::forward<More>(more)...);
    }

private:
    std::int64_t chunk_;
    std::vector<std::int64_t> indptr_;
    std::vector<std::vector<Found>> of_chunk_;
    LabelArrays all_;
};

}  // namespace ramify
