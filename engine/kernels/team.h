// Threads: one team; whoever of it is running takes shares of what is to be done.

#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "vectors.h"

namespace {

constexpr int SPINS = 20000;     // of a helper before it sleeps
constexpr int PATIENCE = 4096;   // spins of the caller before it sleeps, waiting for a helper
constexpr int EAGER = 200;       // of them without a pause: most waits are over before one would be

// Units of work first … last - 1 for one thread, and the first of those that it is likely to take next, -1 if none are
// left. The caller goes forward from the first, helpers back from the last: what each reads lies side by side, and it is
// known where the next product's will.
struct Share { int first, last, after; bool back; };

// The caller never waits for a helper to begin, only for shares that a helper has begun: where something else has its
// core, the caller does all the work itself.
class Team {
public:
    explicit Team(int size) : size(size) {
        try {
            for (int i = 1; i < size; i++) threads.emplace_back([this] { help(); });
        } catch (const std::system_error &) {
        }  // no more are to be had: nobody waits for them
    }
    ~Team() {
        { std::lock_guard<std::mutex> hold(lock); leaving = true; }
        wake.notify_all();
        for (auto &t : threads) t.join();
    }
    // Wakes who sleeps: calls of `each` follow, or their shares take so long that one fell asleep meanwhile.
    void begin() {
        if (asleep.load(std::memory_order_relaxed)) wake.notify_all();  // one that is just falling asleep wakes the next time
    }
    // work(first, last), or work(share), for all of [0, n), in shares of `share`; returns when all of it is done. Where some
    // take longer than others they are not `even`, and taken one by one.
    template <class Work> void each(int n, int share, Work &&work, bool even = true) {
        const auto hand = [&](const Share &s) {
            if constexpr (std::is_invocable_v<Work, int, int>) work(s.first, s.last); else work(s);
        };
        const int shares = (n + share - 1) / share;
        if (size == 1 || shares < 2) { if (n > 0) hand({0, n, -1, false}); return; }
        auto one = [&](const Taken &t) {
            hand({t.first * share, std::min(n, t.last * share), t.after < 0 ? -1 : t.after * share, t.back});
        };
        call.store([](void *w, const Taken &t) { (*static_cast<decltype(one) *>(w))(t); }, std::memory_order_relaxed);
        argument.store(&one, std::memory_order_relaxed);
        helped.store(0, std::memory_order_relaxed);
        most.store(even ? shares : 1, std::memory_order_relaxed);
        int own = even ? at_first(shares) : 1;
        open.store(uint64_t(NONE + shares) << 32 | (NONE + own), std::memory_order_release);
        begin();
        one({0, own, own, false});
        for (Taken t; (t = take(false, 1)).last > 0; own++) one(t);
        for (int i = 0; helped.load(std::memory_order_acquire) != shares - own; i++) {
            // A helper that lost its core gets one that sleeps.
            if (i < EAGER) continue;
            if (i < PATIENCE) pause(); else std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
    // Shares that the caller begins with, and those that a helper takes of what is left: the fewer turns they take, the less
    // often the word that both change goes from core to core.
    int at_first(int shares) const { return std::max(1, shares * 3 / (4 * size)); }
    int of_left(int left) const { return std::max(1, left / size); }
    const int size;

private:
    struct Taken { int first, last, after; bool back; };  // shares; of the next ones, the first
    static constexpr uint32_t NONE = 1 << 20;  // taken of either end, at first: those who find nothing left count on

    // `count` shares that are nobody's yet, or fewer; a `last` of 0 if none are. The first that is left and the one behind the
    // last are one word: what is taken belongs to the work that is open then, and `each` does not return before it is done.
    Taken take(bool back, int count) {
        const uint64_t n = count, found = back ? open.fetch_sub(n << 32, std::memory_order_acq_rel) : open.fetch_add(n, std::memory_order_acq_rel);
        const int first = int(uint32_t(found) - NONE), end = int(uint32_t(found >> 32) - NONE), rest = end - first - count;
        if (first >= end) return {0, 0, -1, back};
        if (back) return {std::max(first, end - count), end, rest > 0 ? end - count - of_left(rest) : -1, true};
        return {first, std::min(first + count, end), rest > 0 ? first + count : -1, false};
    }
    int left() const {
        const uint64_t found = open.load(std::memory_order_relaxed);
        return int(uint32_t(found >> 32) - uint32_t(found));
    }
    void help() {
        for (;;) {
            for (int i = 0; left() <= 0 && i < SPINS; i++) {
                if (i < EAGER) continue;
                pause();
                if (i % 256 == 255) std::this_thread::yield();
            }
            if (left() <= 0) {
                leave_tiles();
                std::unique_lock<std::mutex> hold(lock);
                if (leaving) return;
                asleep++;
                wake.wait(hold);
                asleep--;
                if (leaving) return;
            }
            for (int some; (some = left()) > 0;) {
                const Taken t = take(true, std::min(of_left(some), most.load(std::memory_order_relaxed)));
                if (!t.last) break;
                call.load(std::memory_order_relaxed)(argument.load(std::memory_order_relaxed), t);
                helped.fetch_add(t.last - t.first, std::memory_order_release);
            }
        }
    }
    std::vector<std::thread> threads;
    std::mutex lock;
    std::condition_variable wake;
    std::atomic<int> asleep{0};
    bool leaving = false;
    alignas(64) std::atomic<uint64_t> open{0};  // of the work in hand: the end of the shares that are left, and the first
    alignas(64) std::atomic<int> helped{0};     // shares that others than the caller have done
    std::atomic<void (*)(void *, const Taken &)> call{nullptr};
    std::atomic<void *> argument{nullptr};
    std::atomic<int> most{1};                   // shares that a helper takes at a time
};

}  // namespace
