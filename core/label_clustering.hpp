/// Balanced spherical 2-means on sparse label vectors, for many parts of a tree's level at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "label_vectors.hpp"
#include "parallel.hpp"

namespace ramify {

struct SplitSettings {
    double eps = 1e-4;  // stop when the mean cosine to the own centre rises by less
    int max_iterations = 20;
    std::uint64_t seed = 0;
};

/// `labels[start .. stop)` is to be split so that `cut - start` labels come first.
struct SplitPart {
    std::int64_t start, cut, stop;
};

/// Mixes a part's place into the seed: a part is split alike whoever splits it, and whenever.
inline std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// Splits one part after another; keeps its memory from part to part.
class PartSplitter {
public:
    PartSplitter(const SparseRows& vectors, std::size_t n_features, const SplitSettings& settings)
        : vectors_(vectors), n_features_(n_features), settings_(settings) {}

    /// Reorders `labels` so that the first `n_left` are the one half, each half sorted.
    /// With several threads only the scoring is shared out; every label's score is the same as with one.
    void split(std::span<std::int32_t> labels, std::size_t n_left, std::uint64_t seed, int n_threads) {
        // Labels without a vector say nothing about where they belong: they are dealt out in proportion.
        const auto rest = std::stable_partition(labels.begin(), labels.end(), [&](std::int32_t l) { return vectors_.length(l) > 0; });
        const auto n = static_cast<std::size_t>(rest - labels.begin()), empty = labels.size() - n;
        std::size_t left = (n * n_left + labels.size() / 2) / labels.size();
        left = std::clamp(left, n_left > empty ? n_left - empty : 0, std::min(n, n_left));
        if (left > 0 && left < n) cluster(labels.first(n), left, seed, n_threads);
        std::rotate(labels.begin() + left, labels.begin() + n, labels.begin() + n + (n_left - left));
        std::sort(labels.begin(), labels.begin() + n_left);
        std::sort(labels.begin() + n_left, labels.end());
    }

private:
    void cluster(std::span<std::int32_t> labels, std::size_t n_left, std::uint64_t seed, int n_threads) {
        gather(labels);
        const std::size_t n = labels.size();
        std::mt19937_64 random(seed);
        side_.assign(n, 0);
        ranked_.resize(n);
        start_from_two_labels(n, random);
        double before = -1;
        for (int iteration = 0; iteration < settings_.max_iterations; ++iteration) {
            score(n, n_threads);
            rank(n, n_left);
            const double objective = move_labels(n, n_left, iteration == 0);
            if (objective - before < settings_.eps) break;
            before = objective;
        }
        sorted_.resize(n);
        for (std::size_t k = 0; k < n; ++k) sorted_[k] = labels[ranked_[k].second];
        std::ranges::copy(sorted_, labels.begin());
    }

    /// Numbers the part's features anew, so that centres are as short as the part is small.
    void gather(std::span<const std::int32_t> labels) {
        const std::size_t n = labels.size();
        std::size_t entries = 0;
        for (std::int32_t label : labels) entries += vectors_.length(label);
        begin_.resize(n);
        length_.resize(n);
        if (entries > n_features_) {  // most features occur: a copy would only cost memory
            for (std::size_t k = 0; k < n; ++k) {
                begin_[k] = vectors_.start[labels[k]];
                length_[k] = vectors_.length(labels[k]);
            }
            column_ = vectors_.column.data();
            value_ = vectors_.value.data();
            n_local_ = n_features_;
        } else {
            if (number_.empty()) number_.assign(n_features_, -1);
            used_.clear();
            own_column_.resize(entries);
            own_value_.resize(entries);
            std::size_t at = 0;
            for (std::size_t k = 0; k < n; ++k) {
                begin_[k] = static_cast<std::int64_t>(at);
                length_[k] = vectors_.length(labels[k]);
                for (std::int64_t z = vectors_.start[labels[k]]; z < vectors_.start[labels[k] + 1]; ++z, ++at) {
                    std::int32_t& number = number_[vectors_.column[z]];
                    if (number < 0) {
                        number = static_cast<std::int32_t>(used_.size());
                        used_.push_back(vectors_.column[z]);
                    }
                    own_column_[at] = number;
                    own_value_[at] = vectors_.value[z];
                }
            }
            for (std::int32_t feature : used_) number_[feature] = -1;
            column_ = own_column_.data();
            value_ = own_value_.data();
            n_local_ = used_.size();
        }
        direction_.assign(n_local_, 0.0f);
        left_.assign(n_local_, 0.0f);
        all_.assign(n_local_, 0.0f);
    }

    void start_from_two_labels(std::size_t n, std::mt19937_64& random) {
        const std::size_t one = random() % n, step = random() % (n - 1);
        add(direction_, one, 1.0f);
        add(direction_, step >= one ? step + 1 : step, -1.0f);
    }

    void add(std::vector<float>& to, std::size_t k, float sign) const {
        const std::int32_t* column = column_ + begin_[k];
        const float* value = value_ + begin_[k];
        for (std::int64_t z = 0; z < length_[k]; ++z) to[column[z]] += sign * value[z];
    }

    float dot(std::size_t k) const {
        const std::int32_t* column = column_ + begin_[k];
        const float *value = value_ + begin_[k], *d = direction_.data();
        float sum[4] = {};
        std::int64_t z = 0;
        for (; z + 4 <= length_[k]; z += 4)
            for (int lane = 0; lane < 4; ++lane) sum[lane] += d[column[z + lane]] * value[z + lane];
        for (; z < length_[k]; ++z) sum[0] += d[column[z]] * value[z];
        const float total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        return total == total ? total : 0.0f;  // an order with NaN in it is no order
    }

    void score(std::size_t n, int n_threads) {
        constexpr std::size_t chunk = 64;
        if (n_threads == 1)
            for (std::size_t k = 0; k < n; ++k) ranked_[k] = {-dot(k), static_cast<std::int32_t>(k)};
        else
            parallel_for((n + chunk - 1) / chunk, n_threads, [&](std::size_t task, int) {
                for (std::size_t k = task * chunk; k < std::min(n, (task + 1) * chunk); ++k)
                    ranked_[k] = {-dot(k), static_cast<std::int32_t>(k)};
            });
    }

    void rank(std::size_t, std::size_t n_left) { std::nth_element(ranked_.begin(), ranked_.begin() + n_left, ranked_.end()); }

    /// Moves labels to the sides that the ranking says, updates centres and direction; the mean cosine to the own centre.
    double move_labels(std::size_t n, std::size_t n_left, bool is_first) {
        for (std::size_t place = 0; place < n; ++place) {
            const std::size_t k = ranked_[place].second;
            const bool goes_left = place < n_left;
            if (is_first) add(all_, k, 1.0f);
            if (goes_left != (side_[k] == 1)) add(left_, k, goes_left ? 1.0f : -1.0f);
            side_[k] = goes_left;
        }
        double left = 0, right = 0;
        for (std::size_t f = 0; f < n_local_; ++f) {
            const float other = all_[f] - left_[f];
            left += static_cast<double>(left_[f]) * left_[f];
            right += static_cast<double>(other) * other;
        }
        left = std::sqrt(left);
        right = std::sqrt(right);
        const auto a = static_cast<float>(1 / std::max(left, 1e-9)), b = static_cast<float>(1 / std::max(right, 1e-9));
        for (std::size_t f = 0; f < n_local_; ++f) direction_[f] = left_[f] * a - (all_[f] - left_[f]) * b;
        return (left + right) / static_cast<double>(n);
    }

    SparseRows vectors_;
    std::size_t n_features_, n_local_ = 0;
    SplitSettings settings_;
    const std::int32_t* column_ = nullptr;  // of the part: the given vectors, or the copy below
    const float* value_ = nullptr;
    std::vector<std::int64_t> begin_, length_;
    std::vector<std::int32_t> own_column_, number_, used_, sorted_;
    std::vector<float> own_value_, direction_, left_, all_;
    std::vector<char> side_;
    std::vector<std::pair<float, std::int32_t>> ranked_;  // minus the score, then place: a total order
};

/// Splits every part; parts run in parallel, and where there are too few of them, their labels.
inline void split_parts(const SparseRows& vectors, std::size_t n_features, std::span<std::int32_t> labels,
                        std::span<const SplitPart> parts, const SplitSettings& settings, int n_threads) {
    const bool by_part = parts.size() >= static_cast<std::size_t>(2 * n_threads) || n_threads == 1;
    std::vector<PartSplitter> splitters(by_part ? std::max(n_threads, 1) : 1, PartSplitter(vectors, n_features, settings));
    parallel_for(parts.size(), by_part ? n_threads : 1, [&](std::size_t task, int worker) {
        const auto [start, cut, stop] = parts[task];
        const std::uint64_t seed = mix(mix(settings.seed + static_cast<std::uint64_t>(start)) + static_cast<std::uint64_t>(stop));
        splitters[worker].split(labels.subspan(start, stop - start), cut - start, seed, by_part ? 1 : n_threads);
    });
}

}  // namespace ramify
