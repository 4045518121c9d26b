#include "core/hardware/measure.hpp"

#include "core/base/error.hpp"
#include "core/base/folders.hpp"
#include "core/base/seconds.hpp"
#include "core/base/toml.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;
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

int64_t mega(double value) {
    return static_cast<int64_t>(value / 1e6);
}

uint64_t hash_of(std::string_view text) {
    uint64_t hash = 14695981039346656037ull;  // FNV-1a
    for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
    return hash;
}

std::string toml_text(std::string_view text) {
    std::string safe = "\"";
    for (const char c : text) safe += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? '_' : c;
    return safe + '"';
}

}  // namespace

namespace {

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

// What was measured on a busy machine is measured again from time to time, until there is a quiet moment.
bool is_old(const fs::path& file) {
    std::error_code error;
    const auto written = fs::last_write_time(file, error);
    return error || fs::file_time_type::clock::now() - written > std::chrono::minutes(10);
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

std::optional<fs::path> default_speed_file(const DeviceDescription& cpu) {
    const std::optional<fs::path> folder = user_cache_folder();
    if (!folder) return std::nullopt;
    return *folder / fmt::format("speed-{:016x}-{}.toml", hash_of(cpu.name), cpu.threads);
}

std::optional<MachineSpeed> read_speed(const fs::path& file, const DeviceDescription& cpu) {
    std::error_code error;
    if (!fs::exists(file, error)) return std::nullopt;
    try {
        const TomlFile toml = TomlFile::read(file);
        TomlFile::Table root = toml.root();
        constexpr int64_t kMaximum = 100'000'000;
        constexpr int64_t kMaximumMhz = 8000;  // no processor is faster: a file that says so was measured wrongly
        const std::string name = root.need(root.string("processor"), "processor");
        const int64_t threads = root.need(root.integer("threads", 1, 1 << 16), "threads");
        MachineSpeed speed;
        speed.clock_hz = 1e6 * static_cast<double>(root.need(root.integer("clock_mhz", 100, kMaximumMhz), "clock_mhz"));
        speed.thread_bandwidth =
            1e6 * static_cast<double>(root.need(root.integer("thread_mb_s", 1, kMaximum), "thread_mb_s"));
        speed.memory_bandwidth =
            1e6 * static_cast<double>(root.need(root.integer("memory_mb_s", 1, kMaximum), "memory_mb_s"));
        speed.is_disturbed = root.boolean("disturbed").value_or(false);
        root.finish();
        if (toml_text(name) != toml_text(cpu.name) || threads != cpu.threads) return std::nullopt;
        return speed;
    } catch (const Error&) {
        return std::nullopt;  // measured anew, and the file replaced
    }
}

void write_speed(const fs::path& file, const DeviceDescription& cpu, const MachineSpeed& speed) noexcept {
    try {
        std::error_code error;
        fs::create_directories(file.parent_path(), error);
        // Of this process alone, and then in the file's place at once: readers see the old one or the new one.
        const fs::path fresh = fmt::format("{}.{}", file.string(), getpid());
        std::ofstream out(fresh);
        out << "# Measured by tessera; it is measured again when this file is removed.\n"
            << fmt::format(
                   "processor = {}\nthreads = {}\nclock_mhz = {}\nthread_mb_s = {}\nmemory_mb_s = {}\ndisturbed = {}\n",
                   toml_text(cpu.name), cpu.threads, mega(speed.clock_hz), mega(speed.thread_bandwidth),
                   mega(speed.memory_bandwidth), speed.is_disturbed);
        out.close();
        if (out) fs::rename(fresh, file, error);
        if (!out || error) fs::remove(fresh, error);
    } catch (const std::exception&) {
        return;
    }
}

void apply_speed(Hardware& hardware, const std::optional<fs::path>& file) {
    if (hardware.is_rig()) return;
    const DeviceDescription& cpu = hardware.cpu_description();
    std::optional<MachineSpeed> speed = file ? read_speed(*file, cpu) : std::nullopt;
    if (!speed || (speed->is_disturbed && is_old(*file))) {
        const MachineSpeed now = measure_speed(cpu);
        speed = speed ? faster_of(*speed, now) : now;
        if (speed->clock_hz <= 0 || speed->thread_bandwidth <= 0 || speed->memory_bandwidth <= 0) return;
        if (file) write_speed(*file, cpu, *speed);
    }
    if (speed->is_disturbed) {
        hardware.add_note(
            "other processes kept this machine busy while its speed was measured: predictions may be too low");
    }
    hardware.set_speed(speed->clock_hz, speed->thread_bandwidth, speed->memory_bandwidth);
}

}  // namespace tessera
