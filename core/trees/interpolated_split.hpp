/// The combined objective of similarity and frequency, for many parts of a tree's level at once.
///
/// Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
/// section 4.2 (equation 4), solved by alternating between centres and assignment.
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

struct ObjectiveSettings {
    double similarity = 1;  ///< (2 - lambda) / 2, before a label's cosine to the left centre less that to the right one
    double frequency = 0;   ///< (lambda - 1)+, before a label's share of the mass
    double eps = 1e-4;      ///< stop when the objective rises by no more
    int max_iterations = 20;
    std::uint64_t seed = 0;
    bool rounds =
        true;  ///< assignments are made whole after each iteration; if not, one label stays divided (Theorem 1)
    bool rounds_up = false;  ///< the divided label goes left, as in Fano's code; else to the side that has more of it
    bool has_own_pull = false;  ///< Lemma 1 as printed: a label's pull on its own centre stays in its ratio
};

/// Splits one part after another; keeps its memory from part to part.
class ObjectiveSplitter {
public:
    ObjectiveSplitter(const CsrView& vectors, std::size_t n_features, const ObjectiveSettings& settings)
        : part_(vectors, n_features), settings_(settings) {}

    /// Reorders `labels`, whose masses are `weight`: the answer is how many come left. Each side is sorted, none is
    /// empty. With several threads only the scoring is shared out; every label's score is the same as with one.
    std::size_t split(std::span<std::int32_t> labels, std::span<const double> weight, std::uint64_t seed,
                      int n_threads) {
        assign(labels, weight, seed, n_threads);
        sorted_.resize(labels.size());
        for (std::size_t k = 0; k < labels.size(); ++k) sorted_[k] = labels[ranked_[k].second];
        std::ranges::copy(sorted_, labels.begin());
        std::sort(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(n_left_));
        std::sort(labels.begin() + static_cast<std::ptrdiff_t>(n_left_), labels.end());
        return n_left_;
    }

    /// The same without reordering: what is left is in `share_left`, the objective after each iteration in
    /// `objectives`.
    void assign(std::span<const std::int32_t> labels, std::span<const double> weight, std::uint64_t seed,
                int n_threads) {
        const std::size_t n = labels.size();
        mass_.assign(weight.begin(), weight.end());
        objectives.clear();
        if (settings_.similarity > 0) {
            part_.gather(labels);
            for (auto* sum : {&direction_, &best_direction_, &left_, &all_}) sum->assign(part_.n_columns(), 0.0f);
            if (n > 2) start_from_a_sample(n, weight, seed);
            if (n == 2) part_.add(direction_, 0, 1.0f), part_.add(direction_, 1, -1.0f);
        }
        members_.resize(n);
        std::iota(members_.begin(), members_.end(), 0);
        iterate(settings_, n_threads);
    }

    std::vector<float> share_left;  ///< per member of the part: 1 left, 0 right
    std::vector<double> objectives;

private:
    static constexpr std::size_t sample_size = 100;
    static constexpr int n_starts = 3;
    static constexpr double tie = 1e-9;  ///< what sums of masses may be off by

    /// Clusters a few labels from several random pairs and keeps the best direction: most of the way for little work.
    void start_from_a_sample(std::size_t n, std::span<const double> weight, std::uint64_t seed) {
        std::mt19937_64 random(seed);
        draw_sample(n, weight, random);
        ObjectiveSettings of_sample = settings_;
        of_sample.frequency = 0;
        of_sample.eps = 1e-3;
        of_sample.max_iterations = 5;
        of_sample.rounds_up = false;
        double best = -1;
        const std::size_t size = members_.size();
        for (int start = 0; start < n_starts && size > 1; ++start) {
            const std::size_t one = random() % size, step = random() % (size - 1);
            std::ranges::fill(direction_, 0.0f);
            part_.add(direction_, members_[one], 1.0f);
            part_.add(direction_, members_[step >= one ? step + 1 : step], -1.0f);
            const double objective = iterate(of_sample, 1);
            if (start > 0 && objective <= best) continue;
            best = objective;
            std::swap(direction_, best_direction_);
        }
        std::swap(direction_, best_direction_);
        mass_.assign(weight.begin(), weight.end());
        objectives.clear();
    }

    /// At even steps along the mass, so that a label is met in proportion to its own; how often it was met is its mass
    /// in the sample.
    void draw_sample(std::size_t n, std::span<const double> weight, std::mt19937_64& random) {
        members_.clear();
        if (n <= sample_size) {
            members_.resize(n);
            std::iota(members_.begin(), members_.end(), 0);
            return;
        }
        const double step = std::accumulate(weight.begin(), weight.end(), 0.0) / sample_size;
        double next = step * static_cast<double>(random() >> 11) * 0x1p-53, passed = 0;
        for (std::size_t k = 0; k < n; ++k) {
            passed += weight[k];
            double met = 0;
            for (; next < passed; next += step) ++met;
            if (met == 0) continue;
            members_.push_back(static_cast<std::int32_t>(k));
            mass_[k] = met;
        }
    }

    /// Ranks the members, moves them, takes the new centres, and again; the objective reached.
    double iterate(const ObjectiveSettings& settings, int n_threads) {
        share_left.assign(mass_.size(), 0.5f);
        ranked_.resize(members_.size());
        previous_.resize(members_.size());
        own_pull_ = 0;
        total_ = 0;
        for (std::int32_t k : members_) total_ += mass_[k];
        if (!(total_ > 0)) {  // if all masses are zero, use equal ones
            for (std::int32_t k : members_) mass_[k] = 1;
            total_ = static_cast<double>(members_.size());
        }
        double reached = -1e300;
        for (int iteration = 0; iteration < settings.max_iterations; ++iteration) {
            std::swap(ranked_, previous_);
            const std::size_t previous_left = n_left_;
            score(settings, n_threads);
            const float divided = divide(settings);
            move_members(settings, divided, iteration == 0, n_threads);
            const double objective = take_centres(settings);
            if (objective < reached && settings.rounds) {  // a rounded step may fail
                std::swap(ranked_, previous_);
                n_left_ = previous_left;
                break;
            }
            objectives.push_back(objective);
            const bool is_enough = objective - reached <= settings.eps || settings.similarity == 0;
            reached = objective;
            if (is_enough) break;
        }
        return reached;
    }

    /// Lemma 1's ratio of a label's gain to its mass. A label pulls its own centre towards itself, the more the heavier
    /// it is; where assignments are rounded that pull is taken off (unless `has_own_pull`), as it would hold a heavy
    /// label where it happens to be.
    double ratio(std::int32_t k, const ObjectiveSettings& settings) const {
        double value = settings.frequency * mass_[k] / total_;
        if (settings.similarity > 0)
            value += settings.similarity *
                     (part_.dot(direction_, k) - own_pull_ * mass_[k] * (2 * static_cast<double>(share_left[k]) - 1));
        return value;
    }

    void score(const ObjectiveSettings& settings, int n_threads) {
        constexpr std::size_t chunk = 64;
        run_tasks((members_.size() + chunk - 1) / chunk, n_threads, [&](std::size_t task, int) {
            for (std::size_t i = task * chunk; i < std::min(members_.size(), (task + 1) * chunk); ++i)
                ranked_[i] = {-ratio(members_[i], settings), members_[i]};
        });
    }

    /// Lemma 1: the best ratios go left until half the mass is reached. Brings the ranking into that order, as far as
    /// needed, with `n_left_` whole labels left, and answers what share of the next one goes left too.
    float divide(const ObjectiveSettings& settings) {
        const double half = total_ / 2;
        std::size_t from = 0, to = ranked_.size();
        double before = 0;
        while (to - from > 1) {
            const std::size_t middle = from + (to - from) / 2;
            const auto begin = ranked_.begin();
            std::nth_element(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(middle),
                             begin + static_cast<std::ptrdiff_t>(to));
            double mass = 0;
            for (std::size_t i = from; i < middle; ++i) mass += mass_[ranked_[i].second];
            if (before + mass > half) {
                to = middle;
            } else {
                before += mass;
                from = middle;
            }
        }
        const double of_next = mass_[ranked_[from].second];
        const double share = of_next > 0 ? std::clamp((half - before) / of_next, 0.0, 1.0) : 0.0;
        n_left_ = from;
        if (!settings.rounds) return static_cast<float>(share);
        if (share > (settings.rounds_up ? tie : 0.5 + tie)) ++n_left_;
        n_left_ = std::clamp<std::size_t>(n_left_, 1, ranked_.size() - 1);
        return 0.0f;
    }

    void move_members(const ObjectiveSettings& settings, float divided, bool is_first, int n_threads) {
        auto share_at = [&](std::size_t place) { return place < n_left_ ? 1.0f : place == n_left_ ? divided : 0.0f; };
        const bool has_vectors = settings.similarity > 0;
        if (is_first && has_vectors)
            run_tasks(2, n_threads, [&](std::size_t task, int) {
                auto& sum = task == 0 ? left_ : all_;
                std::ranges::fill(sum, 0.0f);
                const std::size_t end = task == 0 ? std::min(n_left_ + 1, ranked_.size()) : ranked_.size();
                for (std::size_t place = 0; place < end; ++place) {
                    const std::int32_t k = ranked_[place].second;
                    const float scale = static_cast<float>(mass_[k]) * (task == 0 ? share_at(place) : 1.0f);
                    if (scale != 0) part_.add(sum, k, scale);
                }
            });
        for (std::size_t place = 0; place < ranked_.size(); ++place) {
            const std::int32_t k = ranked_[place].second;
            const float share = share_at(place);
            if (!is_first && has_vectors && share != share_left[k])
                part_.add(left_, k, static_cast<float>(mass_[k]) * (share - share_left[k]));
            share_left[k] = share;
        }
    }

    /// The best centres for the assignment; the objective with them.
    double take_centres(const ObjectiveSettings& settings) {
        double objective = 0;
        if (settings.similarity > 0) {
            const auto [left, right] = centre_lengths(left_, all_);
            const double cosine = (left + right) / total_;
            const double a = 1 / std::max(left, 1e-9 * total_), b = 1 / std::max(right, 1e-9 * total_);
            const auto to_left = static_cast<float>(a), to_right = static_cast<float>(b);
            for (std::size_t f = 0; f < left_.size(); ++f)
                direction_[f] = left_[f] * to_left - (all_[f] - left_[f]) * to_right;
            // |c - wv| = |c| - w cos + w^2 (1 - cos^2) / 2|c| + ..., and likewise |c + wv|: the last term, with the
            // mean for the cosine.
            own_pull_ =
                settings.rounds && !settings.has_own_pull ? std::max(0.0, 1 - cosine * cosine) / 2 * (a + b) : 0.0;
            objective = 2 * settings.similarity * cosine;
        }
        if (settings.frequency > 0)
            for (std::int32_t k : members_) {
                const double f = mass_[k] / total_;
                objective += settings.frequency * f * f * (2 * static_cast<double>(share_left[k]) - 1);
            }
        return objective;
    }

    using Ranking = std::vector<std::pair<double, std::int32_t>>;  // minus the ratio, then place: a total order

    PartVectors part_;
    ObjectiveSettings settings_;
    std::vector<double> mass_;  // of the members: as given, or in the sample
    std::vector<std::int32_t> sorted_;
    std::vector<std::int32_t> members_;  // the labels that take part: all of the part, or a sample
    std::vector<float> direction_, best_direction_, left_, all_;
    double own_pull_ = 0, total_ = 0;
    std::size_t n_left_ = 0;
    Ranking ranked_, previous_;
};

/// `labels[start .. stop)` is to be split.
struct WeighedPart {
    std::int64_t start, stop;
};

/// Splits every part, whose labels have the masses in `weight`; returns where each was cut. A part that is a large
/// share of all labels is scored by all threads, the others run in parallel.
inline std::vector<std::int64_t> split_by_objective(const CsrView& vectors, std::size_t n_features,
                                                    std::span<std::int32_t> labels, std::span<const double> weight,
                                                    std::span<const WeighedPart> parts,
                                                    const ObjectiveSettings& settings, int n_threads) {
    std::int64_t all = 0;
    for (const auto& part : parts) all += part.stop - part.start;
    std::vector<std::size_t> large, small;
    for (std::size_t i = 0; i < parts.size(); ++i)
        (n_threads > 1 && (parts[i].stop - parts[i].start) * 2 * n_threads > all ? large : small).push_back(i);
    std::vector<ObjectiveSplitter> splitters(std::max(n_threads, 1), ObjectiveSplitter(vectors, n_features, settings));
    std::vector<std::int64_t> cuts(parts.size());
    auto split = [&](std::size_t i, ObjectiveSplitter& splitter, int threads) {
        const auto [start, stop] = parts[i];
        const std::uint64_t seed = splitmix64(splitmix64(settings.seed + static_cast<std::uint64_t>(start)) +
                                              static_cast<std::uint64_t>(stop));
        const auto size = static_cast<std::size_t>(stop - start);
        cuts[i] = start + static_cast<std::int64_t>(
                              splitter.split(labels.subspan(start, size), weight.subspan(start, size), seed, threads));
    };
    for (std::size_t i : large) split(i, splitters[0], n_threads);
    parallel_for(small.size(), n_threads,
                 [&](std::size_t task, int worker) { split(small[task], splitters[worker], 1); });
    return cuts;
}

}  // namespace ramify
