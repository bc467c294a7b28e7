/// Training of a tree softmax: stochastic gradient descent on embeddings of features and of tree decisions.
///
/// A step looks at a few examples side by side, all with the parameters as they were before it, and then adds up their
/// updates in order. Examples are divided among threads in the first phase, rows of the tables in the second: no sum
/// depends on how many threads there are. With one example a step this is fastText's own descent. `hogwild` lets
/// threads write without locks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hashing.hpp"
#include "base/parallel.hpp"
#include "base/team.hpp"
#include "softmax/embedding_bag.hpp"
#include "softmax/sibling_decisions.hpp"

namespace ramify {

struct SoftmaxSettings {
    std::int64_t dim = 100;
    std::int64_t epochs = 5;
    double learning_rate = 0.1;  ///< of the first step; decreases linearly to zero
    std::int64_t batch = 1;      ///< examples a step
    bool shuffle = true;
    bool hogwild = false;
};

/// Floats that begin at a cache line.
class AlignedFloats {
public:
    AlignedFloats() = default;
    explicit AlignedFloats(std::size_t size)
        : data_(static_cast<float*>(::operator new(std::max<std::size_t>(size, 1) * sizeof(float), alignment))),
          size_(size) {
        std::fill_n(data_.get(), size, 0.0f);
    }
    float* data() { return data_.get(); }
    std::size_t size() const { return size_; }
    std::span<float> span() { return {data_.get(), size_}; }

private:
    static constexpr std::align_val_t alignment{64};
    struct Free {
        void operator()(float* p) const { ::operator delete(p, alignment); }
    };
    std::unique_ptr<float[], Free> data_;
    std::size_t size_ = 0;
};

/// The bags of all training rows, one after the other.
struct TrainingBags {
    std::vector<std::int64_t> begin;
    std::vector<std::uint32_t> row;
    std::vector<float> weight;
    std::vector<float> squared_norm;  ///< of each bag's weights

    TrainingBags(const CsrView& X, const FeatureSettings& features, const EmbeddingColumns& columns) : begin{0} {
        begin.reserve(static_cast<std::size_t>(X.n_rows()) + 1);
        row.reserve(X.indices.size() + static_cast<std::size_t>(X.n_rows()));
        weight.reserve(row.capacity());
        Bag bag;
        for (std::int64_t i = 0; i < X.n_rows(); ++i) {
            const auto [indices, values] = X.row(i);
            bag.fill(features, columns, indices, values);
            row.insert(row.end(), bag.row.begin(), bag.row.end());
            weight.insert(weight.end(), bag.weight.begin(), bag.weight.end());
            begin.push_back(static_cast<std::int64_t>(row.size()));
            squared_norm.push_back(std::inner_product(bag.weight.begin(), bag.weight.end(), bag.weight.begin(), 0.0f));
        }
    }
};

/// The leaves of the labels of every training row.
struct TrainingLeaves {
    std::span<const std::int64_t> begin;
    std::vector<std::int32_t> leaf;

    std::span<const std::int32_t> of(std::int64_t i) const {
        return std::span(leaf).subspan(static_cast<std::size_t>(begin[i]),
                                       static_cast<std::size_t>(begin[i + 1] - begin[i]));
    }
};

class SoftmaxTrainer {
public:
    AlignedFloats embedding, output;

    SoftmaxTrainer(const TrainingBags& bags, const TrainingLeaves& leaves, std::span<const float> sample_weight,
                   const SiblingDecisions& decisions, const SoftmaxSettings& settings, std::uint64_t seed,
                   std::span<const std::int32_t> columns, bool has_bias)
        : bags_(bags),
          leaves_(leaves),
          sample_weight_(sample_weight),
          decisions_(decisions),
          settings_(settings),
          seed_(seed),
          stride_(embedding_stride(settings.dim)),
          n_rows_(static_cast<std::int64_t>(bags.begin.size()) - 1) {
        embedding = AlignedFloats((columns.size() + has_bias) * stride_);
        output = AlignedFloats(decisions.n_rows() * stride_);
        // A column's start depends on its number alone, not on what other columns there are.
        for (std::size_t r = 0; r < columns.size() + has_bias; ++r)
            draw(embedding.data() + r * stride_, r < columns.size() ? static_cast<std::uint64_t>(columns[r]) + 1 : 0);
    }

    void train(int n_threads, Progress* progress) {
        std::vector<std::int32_t> order(static_cast<std::size_t>(n_rows_));
        std::iota(order.begin(), order.end(), 0);
        if (progress) progress->total = static_cast<std::size_t>(n_rows_ * settings_.epochs);
        for (std::int64_t i = 0; i < n_rows_; ++i) total_weight_ += weight(i);
        Watch watch;
        // With few examples a step threads would mostly wait for each other.
        Team team(settings_.hogwild
                      ? n_threads
                      : static_cast<int>(std::clamp<std::int64_t>(settings_.batch / examples_a_thread, 1, n_threads)));
        slots_.resize(static_cast<std::size_t>(settings_.hogwild ? team.size() : settings_.batch));
        for (Slot& slot : slots_) slot.hidden = AlignedFloats(stride_), slot.gradient = AlignedFloats(stride_);
        bool stops = false;  // written by the first member only, between the barriers after which all read it
        std::atomic<std::int64_t> next{0};
        team.run([&](int worker) {
            ExampleDecisions example(decisions_);
            Owned owned;
            double done = 0;
            for (std::int64_t epoch = 0; epoch < settings_.epochs; ++epoch) {
                team.wait();
                if (worker == 0) {
                    if (settings_.shuffle) reorder(order, epoch);
                    next = 0;
                }
                team.wait();
                if (settings_.hogwild) {
                    for (std::int64_t at; (at = next.fetch_add(chunk)) < n_rows_ && !team.has_failed();) {
                        run_chunk(team, order, at, epoch, example, slots_[static_cast<std::size_t>(worker)]);
                        if (worker == 0) look_up(team, watch);
                        if (progress) progress->done += static_cast<std::size_t>(std::min(chunk, n_rows_ - at));
                    }
                    team.wait();
                    if (worker == 0) stops = team.has_failed();
                    team.wait();
                    if (stops) return;
                    continue;
                }
                for (std::int64_t at = 0; at < n_rows_; at += settings_.batch) {
                    const std::int64_t size = std::min(settings_.batch, n_rows_ - at);
                    const auto rate =
                        static_cast<float>(settings_.learning_rate *
                                           (1.0 - done / (total_weight_ * static_cast<double>(settings_.epochs))));
                    for (std::int64_t k = worker; k < size; k += team.size())
                        try_look(team, order[static_cast<std::size_t>(at + k)], epoch, rate, example,
                                 slots_[static_cast<std::size_t>(k)]);
                    for (std::int64_t k = 0; k < size; ++k) done += weight(order[static_cast<std::size_t>(at + k)]);
                    team.wait();
                    if (worker == 0 && (at / settings_.batch) % polled_steps == 0) {
                        look_up(team, watch);
                        stops = team.has_failed();
                        if (progress) progress->done = static_cast<std::size_t>(epoch * n_rows_ + at);
                    }
                    for (std::int64_t k = 0; k < size; ++k)
                        add(slots_[static_cast<std::size_t>(k)], worker, team.size(), owned);
                    team.wait();
                    if (stops) return;
                }
            }
        });
        if (progress) progress->done = progress->total.load();
    }

    /// Descent with too long steps diverges; its numbers are huge long before they become NaN.
    bool has_diverged() {
        auto is_sane = [](std::span<float> values) {
            return std::ranges::all_of(values, [](float v) { return std::abs(v) < 1e4f; });
        };
        return !is_sane(embedding.span()) || !is_sane(output.span());
    }

private:
    /// What one example does to the tables.
    struct Slot {
        std::int64_t example = 0;
        std::vector<std::uint32_t> row;  ///< of the output table
        std::vector<float> step;
        AlignedFloats hidden, gradient;
    };
    /// The part of a slot's rows that one thread writes to.
    struct Owned {
        std::vector<std::uint32_t> row;
        std::vector<float> value;
    };

    static constexpr std::int64_t chunk = 64;  ///< examples that a thread takes at once, without locks
    static constexpr std::int64_t examples_a_thread =
        16;  ///< of a step, at least: two threads took 1.4 times as long as one with two each, half as long with 32
    static constexpr std::int64_t polled_steps = 64;  ///< between looks for an interrupt

    void draw(float* row, std::uint64_t number) const {
        const std::uint64_t start = mix(seed_ ^ mix(number));
        const double width = 2.0 / static_cast<double>(settings_.dim) / 9007199254740992.0;  // 2^53
        for (std::int64_t c = 0; c < settings_.dim; ++c)
            row[c] = static_cast<float>(static_cast<double>(mix(start + static_cast<std::uint64_t>(c)) >> 11) * width -
                                        1.0 / static_cast<double>(settings_.dim));
    }

    void reorder(std::vector<std::int32_t>& order, std::int64_t epoch) const {
        const std::uint64_t start = mix(seed_ + 0x5deece66dull * static_cast<std::uint64_t>(epoch + 1));
        for (std::size_t k = order.size(); k > 1; --k) {
            const auto j = static_cast<std::size_t>(((mix(start + k) >> 32) * k) >> 32);
            std::swap(order[k - 1], order[j]);
        }
    }

    double weight(std::int64_t i) const {
        return sample_weight_.empty() ? 1.0 : sample_weight_[static_cast<std::size_t>(i)];
    }

    static void look_up(Team& team, Watch& watch) {
        try {
            watch.should_stop();
        } catch (...) {
            team.fail();
        }
    }

    /// No exception may leave a member of a team.
    void try_look(Team& team, std::int64_t i, std::int64_t epoch, float rate, ExampleDecisions& example, Slot& slot) {
        try {
            look(i, epoch, rate, example, slot);
        } catch (...) {
            slot.row.clear();
            team.fail();
        }
    }

    /// First phase: the example's hidden vector, its steps and its gradient, from the tables as they are.
    void look(std::int64_t i, std::int64_t epoch, float rate, ExampleDecisions& example, Slot& slot) {
        slot.example = i;
        const std::span<const std::int32_t> labels = leaves_.of(i);
        if (decisions_.is_plt) {
            example.collect_labels(labels);
        } else if (labels.empty()) {
            example.collect_path(0);
        } else {
            // Of several labels one is drawn at each visit, as fastText does.
            const std::uint64_t drawn =
                labels.size() == 1
                    ? 0
                    : mix(mix(seed_ + static_cast<std::uint64_t>(epoch)) + static_cast<std::uint64_t>(i)) >> 32;
            example.collect_path(labels[drawn * labels.size() >> 32]);
        }
        slot.row.swap(example.row);
        const int n = static_cast<int>(slot.row.size());
        slot.step.resize(slot.row.size());
        const EmbeddingKernels& k = kernels().embedding;
        const auto [rows, weights, size] = bag(i);
        k.sum(embedding.data(), stride_, rows, weights, size, slot.hidden.data());
        k.dots(output.data(), stride_, slot.row.data(), n, slot.hidden.data(), slot.step.data());
        example.to_gradient(slot.step, rate * static_cast<float>(weight(i)));
        k.sum(output.data(), stride_, slot.row.data(), slot.step.data(), n, slot.gradient.data());
        limit(slot.gradient, bags_.squared_norm[static_cast<std::size_t>(i)]);
    }

    /// A step moves the hidden vector of its own row by the gradient times the squared norm of the bag's weights. It
    /// shall not be moved by more than a unit: rows of one or two features would swing ever further. Texts of some
    /// words never come near.
    void limit(AlignedFloats& gradient, float squared_norm) const {
        const std::uint32_t first = 0;
        float squared;
        kernels().embedding.dots(gradient.data(), stride_, &first, 1, gradient.data(), &squared);
        const float moved = std::sqrt(squared) * squared_norm;
        if (!(moved > 1.0f)) return;
        for (float& g : gradient.span()) g /= moved;
    }

    /// Second phase: the updates of one example to the rows of one thread.
    void add(Slot& slot, int worker, int n_workers, Owned& owned) {
        const auto [rows, weights, size] = bag(slot.example);
        add_rows(output.data(), slot.row.data(), slot.step.data(), static_cast<int>(slot.row.size()),
                 slot.hidden.data(), worker, n_workers, owned);
        add_rows(embedding.data(), rows, weights, size, slot.gradient.data(), worker, n_workers, owned);
    }

    void add_rows(float* table, const std::uint32_t* row, const float* value, int n, const float* x, int worker,
                  int n_workers, Owned& owned) const {
        const EmbeddingKernels& k = kernels().embedding;
        if (n_workers == 1) return k.add(table, stride_, row, value, n, x);
        owned.row.clear();
        owned.value.clear();
        for (int i = 0; i < n; ++i)
            if (static_cast<int>((row[i] * 2654435769u * static_cast<std::uint64_t>(n_workers)) >> 32) == worker) {
                owned.row.push_back(row[i]);
                owned.value.push_back(value[i]);
            }
        k.add(table, stride_, owned.row.data(), owned.value.data(), static_cast<int>(owned.row.size()), x);
    }

    void run_chunk(Team& team, const std::vector<std::int32_t>& order, std::int64_t at, std::int64_t epoch,
                   ExampleDecisions& example, Slot& slot) {
        const double done = static_cast<double>(epoch * n_rows_ + at) / static_cast<double>(settings_.epochs * n_rows_);
        const auto rate = static_cast<float>(settings_.learning_rate * (1.0 - done));
        Owned none;
        for (std::int64_t k = at; k < std::min(n_rows_, at + chunk); ++k) {
            try_look(team, order[static_cast<std::size_t>(k)], epoch, rate, example, slot);
            add(slot, 0, 1, none);
        }
    }

    std::tuple<const std::uint32_t*, const float*, int> bag(std::int64_t i) const {
        const std::int64_t from = bags_.begin[static_cast<std::size_t>(i)];
        return {bags_.row.data() + from, bags_.weight.data() + from,
                static_cast<int>(bags_.begin[static_cast<std::size_t>(i) + 1] - from)};
    }

    const TrainingBags& bags_;
    const TrainingLeaves& leaves_;
    std::span<const float> sample_weight_;
    const SiblingDecisions& decisions_;
    const SoftmaxSettings settings_;
    const std::uint64_t seed_;
    const std::size_t stride_;
    const std::int64_t n_rows_;
    double total_weight_ = 0;
    std::vector<Slot> slots_;
};

}  // namespace ramify
