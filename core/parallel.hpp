/// Threads that live for one call: nothing survives it, so forking afterwards is safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ramify {

/// Called now and then by the thread that called into the core; throws to stop the work (Ctrl-C). May be null.
inline void (*poll_interrupt)() = nullptr;

/// Counts finished work, so that another thread can draw a progress bar.
struct Progress {
    std::atomic<std::size_t> done{0};
    std::atomic<std::size_t> total{0};
};

/// No machine has use for more; each thread has scratch space of its own.
inline constexpr int max_threads = 1024;

/// How many threads parallel_for starts when n_threads are asked for: at least one, never more than tasks.
inline int usable_threads(int n_threads, std::size_t n_tasks = max_threads) {
    return std::clamp(n_threads, 1, static_cast<int>(std::clamp<std::size_t>(n_tasks, 1, max_threads)));
}

/// Runs work(task, worker) for every task below n_tasks, worker being a number below usable_threads(n_threads, n_tasks).
/// Tasks are handed out in order, one at a time; the first exception stops the rest and is rethrown here.
template <class Work>
void parallel_for(std::size_t n_tasks, int n_threads, Work&& work) {
    n_threads = usable_threads(n_threads, n_tasks);
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;

    auto run = [&](int worker) {
        using clock = std::chrono::steady_clock;
        auto last_poll = clock::now();
        try {
            for (std::size_t task; (task = next.fetch_add(1)) < n_tasks;) {
                work(task, worker);
                if (worker == 0 && poll_interrupt && clock::now() - last_poll > std::chrono::milliseconds(50)) {
                    poll_interrupt();
                    last_poll = clock::now();
                }
            }
        } catch (...) {
            next = n_tasks;
            std::scoped_lock lock(failure_mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::jthread> others;
    try {
        for (int worker = 1; worker < n_threads; ++worker) others.emplace_back(run, worker);
    } catch (const std::system_error&) {
        // The system has no more threads to give: those that run do the work, and the answer is the same.
    }
    run(0);
    others.clear();  // joins
    if (failure) std::rethrow_exception(failure);
}

}  // namespace ramify
