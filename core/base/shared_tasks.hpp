/// Tasks of several steps: threads take a task each, and those that find none left help the others with their steps.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "base/parallel.hpp"

namespace ramify {

/// For every task below n_tasks, in this order: n = open(task, owner), step(task, k, owner, worker) for every k below
/// n, by any workers at the same time, and close(task, owner) when all are done. The owner is the worker that opened
/// the task; it opens no other one before that is closed, so what it prepared may lie in space of its own. Workers are
/// numbered below usable_threads(n_threads, most_steps), most_steps being all the tasks' steps, or more.
template <class Open, class Step, class Close>
void share_tasks(std::size_t n_tasks, std::size_t most_steps, int n_threads, Open&& open, Step&& step, Close&& close,
                 Watch& watch) {
    struct Opened {
        std::size_t task = 0;
        int next = 0, end = 0;  ///< steps not yet taken
        int undone = 0;         ///< steps that are not done, taken or not
    };
    const int n_workers = usable_threads(n_threads, most_steps);
    std::vector<Opened> opened(n_workers);
    std::size_t next_task = 0;
    int n_opening = 0;
    std::mutex mutex;
    std::condition_variable changed;

    auto take_steps = [&](int owner, int worker) {
        Opened& from = opened[owner];
        for (std::unique_lock lock(mutex); from.next < from.end && !watch.should_stop();) {
            const int k = from.next++;
            lock.unlock();
            step(from.task, k, owner, worker);
            lock.lock();
            if (--from.undone > 0) continue;
            lock.unlock();
            close(from.task, owner);
            return;
        }
    };
    auto open_next = [&](int worker) {
        std::size_t task;
        {
            std::scoped_lock lock(mutex);
            if (next_task == n_tasks) return false;
            task = next_task++;
            ++n_opening;
        }
        const int n_steps = open(task, worker);
        {
            std::scoped_lock lock(mutex);
            opened[worker] = {task, 0, n_steps, n_steps};
            --n_opening;
        }
        changed.notify_all();
        if (n_steps == 0)
            close(task, worker);
        else
            take_steps(worker, worker);
        return true;
    };
    // Helping begins when no task is left to open: no task is opened into space that a helper still reads.
    auto help = [&](int worker) {
        std::unique_lock lock(mutex);
        const auto with_most = std::ranges::max_element(opened, {}, [](const Opened& o) { return o.end - o.next; });
        if (with_most->next < with_most->end) {
            lock.unlock();
            take_steps(static_cast<int>(with_most - opened.begin()), worker);
            return true;
        }
        // Wake up regularly: a worker that fails while opening notifies only the watch.
        if (n_opening > 0) changed.wait_for(lock, std::chrono::milliseconds(1));
        return n_opening > 0;
    };
    parallel_for(
        n_workers, n_workers,
        [&](std::size_t, int worker) {
            while (!watch.should_stop() && open_next(worker)) {}
            while (!watch.should_stop() && help(worker)) {}
        },
        &watch);
}

}  // namespace ramify
