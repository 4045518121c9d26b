#include "core/hardware/measure.hpp"

#include "core/base/seconds.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 6;

// Additions of which each waits for the one before take a cycle each on every x86 processor. Of registers: those of
// constants cost newer ones (Golden Cove on) nothing.
double measure_clock() {
    constexpr int kSteps = 1 << 18, kUnroll = 8;
    double best = 0;
    for (int round = 0; round < 2 * kRounds; ++round) {
        uint64_t value = 0;
        const uint64_t one = 1;
        const auto begin = Clock::now();
        for (int i = 0; i < kSteps; i += kUnroll) {
            __asm__ volatile(
                "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\t"
                "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0"
                : "+r"(value)
                : "r"(one));
        }
        best = std::max(best, kSteps / seconds_since(begin));
    }
    return best;
}

// Memory of one thread, in large pages where the system has them.
class Buffer {
  public:
    explicit Buffer(size_t bytes) : bytes_(bytes) {
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return;
        data_ = static_cast<uint64_t*>(at);
        madvise(at, bytes, MADV_HUGEPAGE);
    }
    ~Buffer() {
        if (data_) munmap(data_, bytes_);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    bool there() const { return data_ != nullptr; }
    void touch() {
        for (size_t i = 0; i < bytes_ / sizeof *data_; i += 512) data_[i] = i;
    }
    // One stream, as packed weights are read: several that lie a power of two apart meet in the same banks of memory.
    uint64_t read() const {
        uint64_t sums[8] = {};
        for (size_t i = 0; i + 8 <= bytes_ / sizeof *data_; i += 8) {
#pragma GCC unroll 8  // else GCC 12 keeps the sums in memory, and waits for them longer than for the data
            for (size_t k = 0; k < 8; ++k) sums[k] += data_[i + k];
        }
        uint64_t sum = 0;
        for (const uint64_t s : sums) sum += s;
        return sum;
    }

  private:
    size_t bytes_;
    uint64_t* data_ = nullptr;
};

}  // namespace

// Threads that meet before each round. One that the system refuses is done without.
std::vector<double> measure_reads(uint32_t threads, size_t bytes_each, uint32_t rounds) {
    std::atomic<uint32_t> ready{0}, round{0};
    std::atomic<uint64_t> sink{0};
    std::atomic<bool> lost{false};
    std::vector<double> speeds;
    std::vector<std::thread> team;
    const auto wait = [&](uint32_t of, uint32_t count) {
        if (ready.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
            ready.store(0, std::memory_order_relaxed);
            round.store(of + 1, std::memory_order_release);
        }
        while (round.load(std::memory_order_acquire) == of) std::this_thread::yield();
    };
    std::atomic<uint32_t> count{0};
    const auto work = [&](bool first) {
        Buffer buffer(bytes_each);
        if (!buffer.there()) lost = true;
        while (count.load(std::memory_order_acquire) == 0) std::this_thread::yield();
        const uint32_t all = count.load(std::memory_order_relaxed);
        if (buffer.there()) buffer.touch();
        for (uint32_t r = 0; r < rounds; ++r) {
            wait(2 * r, all);
            const auto begin = Clock::now();
            if (buffer.there()) sink.fetch_add(buffer.read(), std::memory_order_relaxed);
            wait(2 * r + 1, all);
            if (first) speeds.push_back(static_cast<double>(bytes_each) * all / seconds_since(begin));
        }
    };
    uint32_t made = 1;
    for (; made < threads; ++made) {
        try {
            team.emplace_back(work, false);
        } catch (const std::system_error&) {
            break;
        }
    }
    count.store(made, std::memory_order_release);
    work(true);
    for (std::thread& thread : team) thread.join();
    if (lost) speeds.clear();
    return speeds;
}

namespace {

double measure_bandwidth(uint32_t threads, size_t bytes_each) {
    const std::vector<double> speeds = measure_reads(threads, bytes_each, kRounds);
    return speeds.empty() ? 0 : *std::max_element(speeds.begin(), speeds.end());
}

MachineSpeed measure_once(const DeviceDescription& cpu) {
    const uint32_t threads = std::max(cpu.threads, 1u);
    // Twice what the caches hold, shared by the threads.
    constexpr uint64_t kSmallest = 8 << 20, kLargest = 64 << 20;
    const auto each = static_cast<size_t>(std::clamp(2 * cpu.l3_bytes / threads, kSmallest, kLargest));
    MachineSpeed speed;
    speed.clock_hz = measure_clock();
    speed.thread_bandwidth =
        measure_bandwidth(1, static_cast<size_t>(std::clamp(2 * cpu.l3_bytes, kSmallest, kLargest)));
    if (threads == 1) {
        speed.memory_bandwidth = speed.thread_bandwidth;
        return speed;
    }
    // Its threads never sleep, so on a quiet machine each of them has a processor all the time.
    const auto begin = Clock::now();
    const double used = process_seconds();
    speed.memory_bandwidth = measure_bandwidth(threads, each);
    constexpr double kQuiet = 0.9;
    speed.is_disturbed = process_seconds() - used < kQuiet * threads * seconds_since(begin);
    return speed;
}

MachineSpeed faster_of(const MachineSpeed& a, const MachineSpeed& b) {
    return {std::max(a.clock_hz, b.clock_hz), std::max(a.thread_bandwidth, b.thread_bandwidth),
            std::max(a.memory_bandwidth, b.memory_bandwidth), a.is_disturbed && b.is_disturbed};
}

}  // namespace

MachineSpeed measure_speed(const DeviceDescription& cpu) {
    constexpr double kSeconds = 0.4;
    const auto begin = Clock::now();
    MachineSpeed speed = measure_once(cpu);
    while (speed.is_disturbed && seconds_since(begin) < kSeconds) {
        speed = faster_of(speed, measure_once(cpu));
    }
    return speed;
}

}  // namespace tessera
