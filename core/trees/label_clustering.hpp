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

#include "base/hashing.hpp"
#include "base/parallel.hpp"
#include "trees/label_vectors.hpp"
#include "trees/part_vectors.hpp"

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

/// Splits one part after another; keeps its memory from part to part.
class PartSplitter {
public:
    PartSplitter(const CsrView& vectors, std::size_t n_features, const SplitSettings& settings)
        : part_(vectors, n_features), settings_(settings) {}

    /// Reorders `labels` so that the first `n_left` are the one half, each half sorted.
    /// With several threads only the scoring is shared out; every label's score is the same as with one.
    void split(std::span<std::int32_t> labels, std::size_t n_left, std::uint64_t seed, int n_threads) {
        // Labels without a vector are distributed in proportion.
        const auto rest = std::stable_partition(labels.begin(), labels.end(),
                                                [&](std::int32_t l) { return part_.all_labels().length(l) > 0; });
        const auto n = static_cast<std::size_t>(rest - labels.begin()), empty = labels.size() - n;
        std::size_t left = (n * n_left + labels.size() / 2) / labels.size();
        left = std::clamp(left, n_left > empty ? n_left - empty : 0, std::min(n, n_left));
        if (left > 0 && left < n) cluster(labels.first(n), left, seed, n_threads);
        std::rotate(labels.begin() + left, labels.begin() + n, labels.begin() + n + (n_left - left));
        std::sort(labels.begin(), labels.begin() + n_left);
        std::sort(labels.begin() + n_left, labels.end());
    }

private:
    static constexpr std::size_t sample_size = 100;
    static constexpr int n_starts = 3, sample_iterations = 5;
    static constexpr double sample_eps = 1e-3;
    enum Side : char { nowhere, on_left, on_right };

    void cluster(std::span<std::int32_t> labels, std::size_t n_left, std::uint64_t seed, int n_threads) {
        gather(labels);
        const std::size_t n = labels.size();
        start_from_a_sample(n, n_left, seed);
        members_.resize(n);
        std::iota(members_.begin(), members_.end(), 0);
        iterate(n_left, settings_.max_iterations, settings_.eps, n_threads);
        sorted_.resize(n);
        for (std::size_t k = 0; k < n; ++k) sorted_[k] = labels[ranked_[k].second];
        std::ranges::copy(sorted_, labels.begin());
    }

    /// Clusters a few labels from several random pairs and keeps the best direction: most of the way for little work.
    void start_from_a_sample(std::size_t n, std::size_t n_left, std::uint64_t seed) {
        std::mt19937_64 random(seed);
        const std::size_t size = std::min(n, sample_size);
        const std::size_t left = std::clamp<std::size_t>((size * n_left + n / 2) / n, 1, size - 1);
        members_.resize(n);
        std::iota(members_.begin(), members_.end(), 0);
        for (std::size_t k = 0; k < size; ++k) std::swap(members_[k], members_[k + random() % (n - k)]);
        members_.resize(size);
        best_direction_.resize(part_.n_columns());
        double best = -1;
        for (int start = 0; start < n_starts; ++start) {
            const std::size_t one = random() % size, step = random() % (size - 1);
            std::ranges::fill(direction_, 0.0f);
            part_.add(direction_, members_[one], 1.0f);
            part_.add(direction_, members_[step >= one ? step + 1 : step], -1.0f);
            const double objective = iterate(left, sample_iterations, sample_eps, 1);
            if (start > 0 && objective <= best) continue;
            best = objective;
            std::swap(direction_, best_direction_);
        }
        std::swap(direction_, best_direction_);
    }

    /// Ranks the members by the direction, moves them, takes the new direction, and again; the mean cosine reached.
    double iterate(std::size_t n_left, int max_iterations, double eps, int n_threads) {
        side_.assign(part_.size(), nowhere);
        ranked_.resize(members_.size());
        previous_.resize(members_.size());
        own_pull_ = 0;
        double reached = -1;
        for (int iteration = 0; iteration < max_iterations; ++iteration) {
            std::swap(ranked_, previous_);
            score(n_threads);
            std::nth_element(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(n_left), ranked_.end());
            if (iteration == 0) sum_all(n_threads, n_left);
            const double objective = move_members(n_left);
            if (objective < reached) {  // scores leave a label's own share out, so a step may also fail
                std::swap(ranked_, previous_);
                break;
            }
            const bool is_enough = objective - reached < eps;
            reached = objective;
            if (is_enough) break;
        }
        return reached;
    }

    void gather(std::span<const std::int32_t> labels) {
        part_.gather(labels);
        direction_.assign(part_.n_columns(), 0.0f);
        left_.assign(part_.n_columns(), 0.0f);
        all_.assign(part_.n_columns(), 0.0f);
    }

    /// A label pulls its own centre towards itself, which in a small part alone would hold it where it is; so that pull
    /// is taken off.
    std::pair<float, std::int32_t> scored(std::int32_t k) const {
        const float own = side_[k] == on_left ? own_pull_ : side_[k] == on_right ? -own_pull_ : 0.0f;
        return {own - part_.dot(direction_, k), k};
    }

    void score(int n_threads) {
        constexpr std::size_t chunk = 64;
        run_tasks((members_.size() + chunk - 1) / chunk, n_threads, [&](std::size_t task, int) {
            for (std::size_t k = task * chunk; k < std::min(members_.size(), (task + 1) * chunk); ++k)
                ranked_[k] = scored(members_[k]);
        });
    }

    /// The first sums: of the members on the left, and of all.
    void sum_all(int n_threads, std::size_t n_left) {
        run_tasks(2, n_threads, [&](std::size_t task, int) {
            auto& sum = task == 0 ? left_ : all_;
            std::ranges::fill(sum, 0.0f);
            for (std::size_t place = task == 0 ? 0 : n_left; place < (task == 0 ? n_left : ranked_.size()); ++place)
                part_.add(sum, ranked_[place].second, 1.0f);
        });
        for (std::size_t f = 0; f < part_.n_columns(); ++f) all_[f] += left_[f];
        for (std::size_t place = 0; place < ranked_.size(); ++place)
            side_[ranked_[place].second] = place < n_left ? on_left : on_right;
    }

    /// Moves members to the sides that the ranking says and takes the new direction; the mean cosine to the own centre.
    double move_members(std::size_t n_left) {
        for (std::size_t place = 0; place < ranked_.size(); ++place) {
            const std::int32_t k = ranked_[place].second;
            const Side side = place < n_left ? on_left : on_right;
            if (side != side_[k]) part_.add(left_, k, side == on_left ? 1.0f : -1.0f);
            side_[k] = side;
        }
        const auto [left, right] = centre_lengths(left_, all_);
        const double objective = (left + right) / static_cast<double>(ranked_.size());
        const auto a = static_cast<float>(1 / std::max(left, 1e-9)), b = static_cast<float>(1 / std::max(right, 1e-9));
        for (std::size_t f = 0; f < part_.n_columns(); ++f) direction_[f] = left_[f] * a - (all_[f] - left_[f]) * b;
        // |c - v| = |c| - cos + (1 - cos^2) / 2|c| + ..., and likewise |c + v|: the last term, with the mean for the
        // cosine.
        own_pull_ = static_cast<float>((1 - objective * objective) / 2) * (a + b);
        return objective;
    }

    using Ranking = std::vector<std::pair<float, std::int32_t>>;  // minus the score, then place: a total order

    PartVectors part_;
    SplitSettings settings_;
    std::vector<std::int32_t> sorted_;
    std::vector<std::int32_t> members_;  // the labels that take part: all of the part, or a sample
    std::vector<float> direction_, best_direction_, left_, all_;
    float own_pull_ = 0;
    std::vector<Side> side_;
    Ranking ranked_, previous_;
};

/// Splits every part; parts run in parallel, and where there are too few of them, their labels.
inline void split_parts(const CsrView& vectors, std::size_t n_features, std::span<std::int32_t> labels,
                        std::span<const SplitPart> parts, const SplitSettings& settings, int n_threads) {
    const bool by_part = parts.size() >= static_cast<std::size_t>(2 * n_threads) || n_threads == 1;
    std::vector<PartSplitter> splitters(by_part ? std::max(n_threads, 1) : 1,
                                        PartSplitter(vectors, n_features, settings));
    parallel_for(parts.size(), by_part ? n_threads : 1, [&](std::size_t task, int worker) {
        const auto [start, cut, stop] = parts[task];
        const std::uint64_t seed = splitmix64(splitmix64(settings.seed + static_cast<std::uint64_t>(start)) +
                                              static_cast<std::uint64_t>(stop));
        splitters[worker].split(labels.subspan(start, stop - start), cut - start, seed, by_part ? 1 : n_threads);
    });
}

}  // namespace ramify
