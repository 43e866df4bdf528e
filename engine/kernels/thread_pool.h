// A pool of threads that share out loops of a few microseconds.
//
// Idle workers spin before they sleep, because the next loop usually begins within microseconds. The caller works too
// and never waits for a worker to begin, only for shares that a worker has claimed: on a busy machine, where workers
// may not be scheduled at all, the caller does the whole loop.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "vectors.h"

namespace {

constexpr int WORKER_SPINS = 20000;  // of an idle worker before it sleeps
constexpr int CALLER_SPINS = 4096;   // of the caller, waiting for a worker's last shares, before it sleeps
constexpr int BUSY_SPINS = 200;      // before the first pause instruction: most waits are shorter than one pause

// Iterations first … last - 1 of a loop for one thread. `next`: the iteration that this thread will probably run after
// them, -1 if none is left; callers prefetch for it. The caller of `parallel_for` goes forward from the start, workers
// go backward from the end, so each thread reads neighbouring memory.
struct Range {
    int first, last, next;
    bool backward;
};

class ThreadPool {
public:
    explicit ThreadPool(int size) : size(size) {
        try {
            for (int i = 1; i < size; i++) threads.emplace_back([this] { work_loop(); });
        } catch (const std::system_error &) {}  // no more threads available: the caller does their work
    }
    ~ThreadPool() {
        {
            std::lock_guard<std::mutex> hold(lock);
            stopping = true;
        }
        wake_up.notify_all();
        for (auto &t : threads) t.join();
    }
    // Wakes sleeping workers. Call before a series of `parallel_for`.
    void wake() {
        if (asleep.load(std::memory_order_relaxed))
            wake_up.notify_all();  // a worker that is about to sleep misses this and wakes the next time
    }
    // Calls work(first, last), or work(Range), until [0, n) is done, in shares of `share_size` iterations. Iterations
    // that take unequal time are not `even`: threads then claim one share at a time.
    template <class Work>
    void parallel_for(int n, int share_size, Work &&work, bool even = true) {
        const auto run_range = [&](const Range &s) {
            if constexpr (std::is_invocable_v<Work, int, int>) work(s.first, s.last);
            else work(s);
        };
        const int shares = (n + share_size - 1) / share_size;
        if (size == 1 || shares < 2) {
            if (n > 0) run_range({0, n, -1, false});
            return;
        }
        auto run_claim = [&](const Claim &t) {
            run_range({t.first * share_size, std::min(n, t.last * share_size), t.next < 0 ? -1 : t.next * share_size,
                       t.backward});
        };
        task.store([](void *w, const Claim &t) { (*static_cast<decltype(run_claim) *>(w))(t); },
                   std::memory_order_relaxed);
        task_data.store(&run_claim, std::memory_order_relaxed);
        done_by_workers.store(0, std::memory_order_relaxed);
        max_claim.store(even ? shares : 1, std::memory_order_relaxed);
        int claimed = even ? caller_shares(shares) : 1;
        unclaimed.store(uint64_t(ORIGIN + shares) << 32 | (ORIGIN + claimed), std::memory_order_release);
        wake();
        run_claim({0, claimed, claimed, false});
        for (Claim t; (t = claim(false, 1)).last > 0; claimed++) run_claim(t);
        for (int i = 0; done_by_workers.load(std::memory_order_acquire) != shares - claimed; i++) {
            if (i < BUSY_SPINS) continue;
            if (i < CALLER_SPINS) pause();
            else  // the worker may have lost its core, perhaps to this thread
                std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
    // Shares that the caller claims at once, and that a worker claims of those left. Few large claims keep the cache
    // line of `unclaimed` from moving between cores.
    int caller_shares(int shares) const { return std::max(1, shares * 3 / (4 * size)); }
    int worker_shares(int left) const { return std::max(1, left / size); }
    const int size;

private:
    struct Claim {
        int first, last, next;
        bool backward;
    };
    // Share 0 in the halves of `unclaimed`: failed claims go on counting and must not underflow.
    static constexpr uint32_t ORIGIN = 1 << 20;

    // Claims `count` shares, or fewer, from either end; `last` is 0 if none were left. Both ends are halves of one
    // atomic word: a claim always belongs to the current loop, and `parallel_for` returns only when all claims are
    // done.
    Claim claim(bool backward, int count) {
        const uint64_t n = count, ends = backward ? unclaimed.fetch_sub(n << 32, std::memory_order_acq_rel)
                                                  : unclaimed.fetch_add(n, std::memory_order_acq_rel);
        const int first = int(uint32_t(ends) - ORIGIN), end = int(uint32_t(ends >> 32) - ORIGIN),
                  rest = end - first - count;
        if (first >= end) return {0, 0, -1, backward};
        if (backward)
            return {std::max(first, end - count), end, rest > 0 ? end - count - worker_shares(rest) : -1, true};
        return {first, std::min(first + count, end), rest > 0 ? first + count : -1, false};
    }
    int unclaimed_shares() const {
        const uint64_t ends = unclaimed.load(std::memory_order_relaxed);
        return int(uint32_t(ends >> 32) - uint32_t(ends));
    }
    void work_loop() {
        for (;;) {
            for (int i = 0; unclaimed_shares() <= 0 && i < WORKER_SPINS; i++) {
                if (i < BUSY_SPINS) continue;
                pause();
                if (i % 256 == 255) std::this_thread::yield();
            }
            if (unclaimed_shares() <= 0) {
                release_amx();
                std::unique_lock<std::mutex> hold(lock);
                if (stopping) return;
                asleep++;
                wake_up.wait(hold);
                asleep--;
                if (stopping) return;
            }
            for (int some; (some = unclaimed_shares()) > 0;) {
                const Claim t = claim(true, std::min(worker_shares(some), max_claim.load(std::memory_order_relaxed)));
                if (!t.last) break;
                task.load(std::memory_order_relaxed)(task_data.load(std::memory_order_relaxed), t);
                done_by_workers.fetch_add(t.last - t.first, std::memory_order_release);
            }
        }
    }
    std::vector<std::thread> threads;
    std::mutex lock;
    std::condition_variable wake_up;
    std::atomic<int> asleep{0};
    bool stopping = false;
    // Shares of the current loop that nobody has claimed: the end in the upper half, the first in the lower half.
    alignas(64) std::atomic<uint64_t> unclaimed{0};
    alignas(64) std::atomic<int> done_by_workers{0};  // shares that workers have finished
    std::atomic<void (*)(void *, const Claim &)> task{nullptr};
    std::atomic<void *> task_data{nullptr};
    std::atomic<int> max_claim{1};  // shares that a worker may claim at a time
};

}  // namespace
