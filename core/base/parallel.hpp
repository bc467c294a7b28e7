/// Threads that live for one call: nothing survives it, so forking afterwards is safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ramify {

/// Called regularly by the thread that called into the core; throws to stop the work (Ctrl-C). May be null.
inline void (*poll_interrupt)() = nullptr;

/// Lets long work notice an interrupt: the calling thread polls for one, the others read a flag.
class Watch {
public:
    Watch() : caller_(std::this_thread::get_id()), last_poll_(clock::now()) {}

    void stop() { is_stopped_ = true; }

    /// Whether to stop. On the calling thread it throws what the poll throws.
    bool should_stop() {
        if (is_stopped_.load(std::memory_order_relaxed)) return true;
        if (poll_interrupt && std::this_thread::get_id() == caller_ && clock::now() - last_poll_ > interval) {
            last_poll_ = clock::now();
            poll_interrupt();
        }
        return false;
    }

    static constexpr std::chrono::milliseconds interval{50};

private:
    using clock = std::chrono::steady_clock;
    std::atomic<bool> is_stopped_{false};
    const std::thread::id caller_;
    clock::time_point last_poll_;
};

/// Counts finished work, so that another thread can draw a progress bar.
struct Progress {
    std::atomic<std::size_t> done{0};
    std::atomic<std::size_t> total{0};
};

/// An upper limit: each thread has its own scratch space.
inline constexpr int max_threads = 1024;

/// How many threads parallel_for starts when n_threads are asked for: at least one, never more than tasks.
inline int usable_threads(int n_threads, std::size_t n_tasks = max_threads) {
    return std::clamp(n_threads, 1, static_cast<int>(std::clamp<std::size_t>(n_tasks, 1, max_threads)));
}

/// Runs work(task, worker) for every task below n_tasks, worker being a number below usable_threads(n_threads,
/// n_tasks). Tasks are handed out in order, one at a time; the first exception stops the rest and is rethrown here.
/// Work with long tasks asks the watch, if there is one, whether to stop.
template <class Work>
void parallel_for(std::size_t n_tasks, int n_threads, Work&& work, Watch* watch = nullptr) {
    n_threads = usable_threads(n_threads, n_tasks);
    Watch own;
    if (!watch) watch = &own;
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex mutex;
    std::condition_variable finished;
    int n_running = 0;

    auto guarded = [&](auto&& body) {
        try {
            body();
        } catch (...) {
            next = n_tasks;
            watch->stop();
            std::scoped_lock lock(mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    auto run = [&](int worker) {
        guarded([&] {
            for (std::size_t task; (task = next.fetch_add(1)) < n_tasks && !watch->should_stop();) work(task, worker);
        });
    };
    auto run_other = [&](int worker) {
        run(worker);
        std::scoped_lock lock(mutex);
        --n_running;
        finished.notify_one();
    };
    std::vector<std::jthread> others;
    try {
        for (int worker = 1; worker < n_threads; ++worker) {
            others.emplace_back(run_other, worker);
            std::scoped_lock lock(mutex);
            ++n_running;
        }
    } catch (const std::system_error&) {
        // The system cannot start more threads: those that run do the work, with the same result.
    }
    run(0);
    for (std::unique_lock lock(mutex); n_running > 0;) {
        finished.wait_for(lock, Watch::interval);
        lock.unlock();
        guarded([&] { watch->should_stop(); });
        lock.lock();
    }
    others.clear();  // joins
    if (failure) std::rethrow_exception(failure);
}

inline std::size_t n_chunks(std::int64_t n, std::int64_t chunk) {
    return static_cast<std::size_t>((n + chunk - 1) / chunk);
}

/// Runs work(first, last, worker) over n items, each time a chunk of them, the last of which is not part of it.
template <class Work>
void parallel_chunks(std::int64_t n, std::int64_t chunk, int n_threads, Work&& work, Watch* watch = nullptr) {
    auto of_chunk = [&](std::size_t task, int worker) {
        const std::int64_t first = static_cast<std::int64_t>(task) * chunk;
        work(first, std::min(n, first + chunk), worker);
    };
    parallel_for(n_chunks(n, chunk), n_threads, of_chunk, watch);
}

}  // namespace ramify
