// Bet 3: streaming repack. Reads a file of Q4_0 rows (2048 elements each) with pread into small staging, packs groups
// of eight rows into anonymous memory, two threads. Prints seconds for each page policy, and the peak of resident
// memory against what was planned.
//
//     bet_repack FILE small|huge [warm]
//
// A file that does not exist is made sparse, 8.2 GiB, and read once, so that it lies in the page cache as a real one
// would. `warm` first takes and gives back as much memory, so that a virtual machine's host has it ready: what is left
// is the guest's own cost of a page fault.
#include <tessera/cpu/isa/avx2.hpp>
#include <tessera/cpu/matmul/packed.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tessera::cpu;
using Isa = isa::Avx2;
using Format = WeightQ4_0<Isa>;
constexpr int kThreads = 2;
constexpr int kElements = 2048;
constexpr size_t kGroupBytes = 8 * (kElements / 32) * sizeof(BlockQ4_0);
constexpr size_t kStagingGroups = 28;  // 252 KiB a thread: the copy that pread makes is still in the second-level cache
constexpr size_t kFileBytes = size_t{8397} * (1u << 20) / kGroupBytes * kGroupBytes;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

size_t peak_resident() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

unsigned char* take(size_t bytes, bool huge) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("cannot map memory");
    madvise(p, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return static_cast<unsigned char*>(p);
}

void pack_group(const unsigned char* rows, Format::Unit* out) {
    constexpr int kUnits = kElements / 32;
    const auto* blocks = reinterpret_cast<const BlockQ4_0*>(rows);
    for (int u = 0; u < kUnits; ++u) {
        IntoLanes<Isa, BlockQ4_0> group;
        for (int r = 0; r < Isa::kLanes; ++r) group.rows[r] = &blocks[r * kUnits + u];
        Format::pack(out[u], group);
    }
}

template <class Work>
double on_all(size_t groups, Work&& work) {
    std::atomic<size_t> next{0};
    const double start = now();
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (;;) {
                const size_t at = next.fetch_add(kStagingGroups);
                if (at >= groups) return;
                work(t, at, std::min(kStagingGroups, groups - at));
            }
        });
    }
    for (auto& t : threads) t.join();
    return now() - start;
}

int run(const char* path, bool huge, bool warm) {
    struct stat info {};
    if (stat(path, &info) != 0) {
        const int made = open(path, O_CREAT | O_WRONLY, 0644);
        if (made < 0 || ftruncate(made, static_cast<off_t>(kFileBytes)) != 0)
            throw std::runtime_error("cannot make the file");
        close(made);
        stat(path, &info);
    }
    const int file = open(path, O_RDONLY);
    if (file < 0) throw std::runtime_error("cannot open the file");
    const size_t bytes = static_cast<size_t>(info.st_size) / kGroupBytes * kGroupBytes;
    const size_t groups = bytes / kGroupBytes;
    std::vector<unsigned char> staging[kThreads];
    for (auto& s : staging) s.resize(kStagingGroups * kGroupBytes);
    auto read_groups = [&](int t, size_t at, size_t count) {
        size_t done = 0;
        while (done < count * kGroupBytes) {
            const ssize_t got = pread(file, staging[t].data() + done, count * kGroupBytes - done,
                                      static_cast<off_t>(at * kGroupBytes + done));
            if (got <= 0) throw std::runtime_error("cannot read the file");
            done += static_cast<size_t>(got);
        }
    };
    const double cold_read = on_all(groups, read_groups);
    const double cached_read = on_all(groups, read_groups);
    std::vector<Format::Unit> sink[kThreads];
    for (auto& s : sink) s.resize(kStagingGroups * kElements / 32);
    const double read_and_pack = on_all(groups, [&](int t, size_t at, size_t count) {
        read_groups(t, at, count);
        for (size_t g = 0; g < count; ++g)
            pack_group(staging[t].data() + g * kGroupBytes, sink[t].data() + g * kElements / 32);
    });
    if (warm) {
        unsigned char* p = take(bytes, huge);
        const double touch = on_all(
            groups, [&](int, size_t at, size_t count) { std::memset(p + at * kGroupBytes, 1, count * kGroupBytes); });
        std::printf("first touch of memory that the host may not have ready: %.2f s\n", touch);
        munmap(p, bytes);
    }
    const size_t before = peak_resident();
    const double start = now();
    unsigned char* packed = take(bytes, huge);
    on_all(groups, [&](int t, size_t at, size_t count) {
        read_groups(t, at, count);
        for (size_t g = 0; g < count; ++g) {
            pack_group(staging[t].data() + g * kGroupBytes,
                       reinterpret_cast<Format::Unit*>(packed + (at + g) * kGroupBytes));
        }
    });
    const double whole = now() - start;
    const double again = on_all(groups, [&](int t, size_t at, size_t count) {
        read_groups(t, at, count);
        for (size_t g = 0; g < count; ++g) {
            pack_group(staging[t].data() + g * kGroupBytes,
                       reinterpret_cast<Format::Unit*>(packed + (at + g) * kGroupBytes));
        }
    });
    const size_t plan = bytes + kThreads * 2 * kStagingGroups * kGroupBytes;
    const double gib = static_cast<double>(bytes) / (1 << 30);
    std::printf("%s pages, %s: %.2f GiB in %.2f s (%.2f GiB/s); again into touched memory %.2f s\n",
                huge ? "huge" : "small", warm ? "warm" : "as it is", gib, whole, gib / whole, again);
    std::printf("parts: read into the cache %.2f s, cached read %.2f s, cached read and pack in cache %.2f s\n",
                cold_read, cached_read, read_and_pack);
    if (!warm)
        std::printf("resident before %.1f MiB, peak %.1f MiB, planned %.1f MiB (%+.2f %%)\n",
                    static_cast<double>(before) / 1048576, static_cast<double>(peak_resident()) / 1048576,
                    static_cast<double>(plan) / 1048576,
                    100.0 * (static_cast<double>(peak_resident()) / static_cast<double>(plan) - 1));
    return packed[0] == 255;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 3) throw std::runtime_error("usage: bet_repack FILE small|huge [warm]");
        return run(argv[1], std::string(argv[2]) == "huge", argc > 3);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "bet_repack: %s\n", e.what());
        return 1;
    }
}
