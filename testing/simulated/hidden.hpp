// How the threads of a simulated device hand work to each other without ordering memory in the eyes of ThreadSanitizer.
//
// A queue's thread is synchronised with the host, and with other queues' threads, by events and waits alone, as a GPU
// is: an access that no event orders is then a race that ThreadSanitizer reports. What the simulation itself needs to
// know (who is next, what has ended) passes through atomics of these orders, which are relaxed under ThreadSanitizer
// and sequentially consistent otherwise, and through the kernel's futex, which it does not see.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace tessera::simulated {

#if defined(__SANITIZE_THREAD__)
#define TSR_SIMULATED_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSR_SIMULATED_TSAN 1
#endif
#endif

#ifdef TSR_SIMULATED_TSAN
inline constexpr std::memory_order kHidden = std::memory_order_relaxed;
#else
inline constexpr std::memory_order kHidden = std::memory_order_seq_cst;
#endif

// Returns when `word` is no longer `value`, at the latest after some milliseconds: callers look again.
inline void sleep_while(const std::atomic<uint32_t>& word, uint32_t value) noexcept {
    const timespec limit{0, 20'000'000};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
}

inline void wake_all(const std::atomic<uint32_t>& word) noexcept {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Fills memory that belongs to the host, at a time at which nobody else can use it, as no access of the host's.
#ifdef TSR_SIMULATED_TSAN
__attribute__((no_sanitize("thread")))
#endif
inline void
poison(char* memory, uint64_t bytes) noexcept {
    volatile char* at = memory;
    while (bytes > 0 && reinterpret_cast<uintptr_t>(at) % sizeof(uint64_t) != 0) *at++ = -1, --bytes;
    for (; bytes >= sizeof(uint64_t); at += sizeof(uint64_t), bytes -= sizeof(uint64_t))
        *reinterpret_cast<volatile uint64_t*>(at) = UINT64_MAX;
    while (bytes > 0) *at++ = -1, --bytes;
}

// What all schedulers of the process sleep on. Rung when anything has changed that may make a queue ready.
class Bell {
  public:
    static uint32_t read() noexcept { return word_.load(kHidden); }
    static void ring() noexcept {
        word_.fetch_add(1, kHidden);
        wake_all(word_);
    }
    static void wait(uint32_t seen) noexcept { sleep_while(word_, seen); }

  private:
    static inline std::atomic<uint32_t> word_{0};
};

}  // namespace tessera::simulated
