// What threads together read from memory at this moment: memory_speed [THREADS].
#include "core/base/error.hpp"
#include "core/hardware/measure.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>

int main(int argc, char** argv) {
    using namespace tessera;
    try {
        uint32_t threads = std::max(std::thread::hardware_concurrency(), 1u);
        if (argc > 1) {
            const char* const end = argv[1] + std::strlen(argv[1]);
            const auto [rest, error] = std::from_chars(argv[1], end, threads);
            if (error != std::errc{} || rest != end || threads < 1 || threads > 1024) {
                fail(TSR_INVALID_ARGUMENT, "threads: expected 1 to 1024, found '{}'", argv[1]);
            }
        }
        // More than caches hold, also those that are shared with other virtual machines; the rounds take some 0.2 s.
        constexpr size_t kBytes = 512 << 20;
        constexpr uint32_t kRounds = 15;
        std::vector<double> speeds = measure_reads(threads, kBytes / threads / 4096 * 4096, kRounds);
        if (speeds.empty()) fail(TSR_DOES_NOT_FIT, "cannot allocate {} MiB to read from", kBytes >> 20);
        const auto middle = speeds.begin() + kRounds / 2;
        std::nth_element(speeds.begin(), middle, speeds.end());
        std::printf("%.1f GB/s with %u threads\n", *middle / 1e9, threads);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "memory_speed: %s\n", error.what());
        return 1;
    }
}
