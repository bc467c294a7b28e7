/// Threads that work in step: a team with a barrier, for work that alternates between phases many thousand times a
/// second.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/parallel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ramify {

class Team {
public:
    explicit Team(int n_threads) : size_(usable_threads(n_threads)) {}

    int size() const { return size_; }

    /// Runs work(worker) on every member at once, worker 0 being the caller. If the system cannot start more threads,
    /// the team is smaller: `size` says so inside. `work` must not throw; it calls `fail` and continues to the
    /// barriers.
    template <class Work>
    void run(Work&& work) {
        std::atomic<bool> is_open{false};
        std::vector<std::jthread> others;
        try {
            for (int worker = 1; worker < size_; ++worker)
                others.emplace_back([&, worker] {
                    is_open.wait(false);
                    work(worker);
                });
        } catch (...) {  // release those that have started
        }
        size_ = static_cast<int>(others.size()) + 1;
        is_open = true;
        is_open.notify_all();
        work(0);
        others.clear();  // joins
        if (failure_) std::rethrow_exception(failure_);
    }

    /// A barrier. Other threads may need the processor, so waiting does not spin for long.
    void wait() {
        if (size_ == 1) return;
        const unsigned round = round_.load(std::memory_order_relaxed);
        if (n_waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
            n_waiting_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
            if (spins > 4000) {
                std::this_thread::yield();
                continue;
            }
#if defined(__x86_64__)
            _mm_pause();
#endif
        }
    }

    /// Remembers the exception being handled; the first one is rethrown to the caller at the end.
    void fail() {
        std::scoped_lock lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        has_failed_.store(true, std::memory_order_release);
    }
    bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

private:
    int size_;
    std::atomic<int> n_waiting_{0};
    std::atomic<unsigned> round_{0};
    std::atomic<bool> has_failed_{false};
    std::mutex mutex_;
    std::exception_ptr failure_;
};

}  // namespace ramify
