/// The lock of a model that learns: recursive for its owner, shared by readers, and still usable after fork().
///
/// A child process has only the thread that forked. Locks that other threads held would stay locked in it for ever, and
/// a model that one of them was changing stays half changed. So every lock is renewed in the child, and one whose model
/// was being changed throws from then on.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <list>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

namespace ramify {

class ModelMutex {
public:
    ModelMutex() {
        const std::scoped_lock lock(all().mutex);
        at_ = all().mutexes.insert(all().mutexes.end(), this);
    }
    ~ModelMutex() {
        const std::scoped_lock lock(all().mutex);
        all().mutexes.erase(at_);
    }
    ModelMutex(const ModelMutex&) = delete;
    ModelMutex& operator=(const ModelMutex&) = delete;

    void lock() {
        std::unique_lock inner(inner_);
        refuse_if_cut_off();
        if (!is_own()) {
            released_.wait(inner, [&] { return depth_ == 0 && n_readers_ == 0; });
            owner_ = std::this_thread::get_id();
        }
        ++depth_;
    }
    void unlock() {
        const std::scoped_lock inner(inner_);
        if (--depth_ == 0) released_.notify_all();
    }
    void lock_shared() {
        std::unique_lock inner(inner_);
        refuse_if_cut_off();
        released_.wait(inner, [&] { return depth_ == 0; });
        ++n_readers_;
    }
    void unlock_shared() {
        const std::scoped_lock inner(inner_);
        if (--n_readers_ == 0) released_.notify_all();
    }

    /// While the owner holds one, the model is being changed.
    class Change {
    public:
        explicit Change(ModelMutex& mutex) : mutex_(mutex) { ++mutex_.n_changes_; }
        ~Change() { --mutex_.n_changes_; }
        Change(const Change&) = delete;
        Change& operator=(const Change&) = delete;

    private:
        ModelMutex& mutex_;
    };

private:
    struct All {
        std::mutex mutex;
        std::list<ModelMutex*> mutexes;
        All() { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }
    };
    /// Never destroyed: models may be, after it.
    static All& all() {
        static All& all = *new All;
        return all;
    }

    /// No thread is in the middle of taking or releasing a lock while the process forks.
    static void before_fork() {
        all().mutex.lock();
        for (ModelMutex* m : all().mutexes) m->inner_.lock();
    }
    static void after_fork_in_parent() {
        for (ModelMutex* m : all().mutexes) m->inner_.unlock();
        all().mutex.unlock();
    }
    static void after_fork_in_child() {
        for (ModelMutex* m : all().mutexes) {
            m->renew();
            m->inner_.unlock();
        }
        all().mutex.unlock();
    }

    void renew() {
        new (&released_) std::condition_variable;  // threads that waited are gone
        n_readers_ = 0;
        if (depth_ == 0 || is_own()) return;
        is_cut_off_ = is_cut_off_ || n_changes_ > 0;
        depth_ = n_changes_ = 0;
    }

    bool is_own() const { return depth_ > 0 && owner_ == std::this_thread::get_id(); }
    void refuse_if_cut_off() const {
        if (is_cut_off_)
            throw std::runtime_error(
                "this process was forked while another thread changed this model, so its copy here is half changed: "
                "load the model in the new process, or fork while no thread learns");
    }

    std::mutex inner_;
    std::condition_variable released_;
    std::thread::id owner_;
    int depth_ = 0;      ///< locks of the owner
    int n_changes_ = 0;  ///< written by the owner only
    int n_readers_ = 0;
    bool is_cut_off_ = false;
    std::list<ModelMutex*>::iterator at_;
};

}  // namespace ramify
