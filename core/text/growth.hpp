/// A vocabulary that grows: how many texts had each term so far, and what each term weighs.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramify {

struct VocabularyGrowth {
    std::int64_t n_texts = 0;
    std::vector<std::int64_t> n_texts_with;
    bool uses_idf = false;
    double smoothing = 1;
    std::int64_t settles_at = 0;  ///< from this many texts on a term's idf is fixed

    /// The present text has this term.
    void count(std::size_t column, std::vector<double>& idf) {
        const std::int64_t n_with = ++n_texts_with[column];
        if (uses_idf && n_with <= settles_at)
            idf[column] =
                std::log((static_cast<double>(n_texts) + smoothing) / (static_cast<double>(n_with) + smoothing)) + 1;
    }
};

/// What undoing a growth needs: sizes before it, and the idf that each term of each text had before.
struct GrowthUndo {
    struct Change {
        std::size_t column;
        double idf;
    };
    std::size_t n_terms = 0;
    std::int64_t n_texts = 0;
    std::vector<Change> changes;
};

}  // namespace ramify
