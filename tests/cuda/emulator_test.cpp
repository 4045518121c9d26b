// Every check of the emulator finds the bug that is planted for it, and nothing in the same kernel without it.
#include "emulated_module.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <set>

namespace tessera::cuda::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const EmulatedModule& kernels() {
    static const EmulatedModule module(TSR_EMULATED_DIR "/test__emulator.80.emulated.so");
    return module;
}

std::vector<int> counted(int n, int first = 0) {
    std::vector<int> values(static_cast<size_t>(n));
    std::iota(values.begin(), values.end(), first);
    return values;
}

std::vector<float> floats(int n) {
    std::vector<float> values(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i % 17) - 3.0f;
    return values;
}

// For all seeds and arrivals: without the bug nothing is found and `right` holds; with it, the report has the text.
struct Planted {
    const char* kernel;
    int bug;
    Fault fault;
    const char* report;
    // Runs it in the options; false if the results are wrong.
    std::function<Outcome(const Options&, int bug, bool& right)> run;
};

std::vector<Options> many_options() {
    std::vector<Options> all;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        Options options;
        options.seed = seed;
        options.arrival = seed % 3 == 0   ? CopyArrival::kEarly
                          : seed % 3 == 1 ? CopyArrival::kLate
                                          : CopyArrival::kRandom;
        options.ordered = seed == 12;
        options.patience = 200'000;
        all.push_back(options);
    }
    return all;
}

Outcome neighbours(const Options& options, int bug, bool& right) {
    CardMemory card;
    const int rounds = 3;
    int* const in = card.upload(counted(128 * rounds));
    int* const out = card.allocate<int>(256);
    Outcome outcome = kernels().run("neighbours", {2, 1, 1}, {128, 1, 1}, card, options, 0, in, out, rounds, bug);
    for (int t = 0; t < 256; ++t) right &= out[t] == 3 * ((t % 128 + 1) % 128) + 128 + 256;
    return outcome;
}

Outcome lanes(const Options& options, int bug, bool& right) {
    CardMemory card;
    int* const in = card.upload(counted(32));
    int* const out = card.allocate<int>(32);
    Outcome outcome = kernels().run("lanes", {1, 1, 1}, {32, 1, 1}, card, options, 0, in, out, bug);
    for (int t = 0; t < 32; ++t) right &= out[t] == 31 - t;
    return outcome;
}

Outcome copy_floats(const Options& options, int bug, bool& right) {
    CardMemory card;
    const int n = 100;
    float* const in = card.upload(floats(n));
    float* const out = card.allocate<float>(n);
    Outcome outcome = kernels().run("copy_floats", {2, 1, 1}, {64, 1, 1}, card, options, 0, in, out, n, bug);
    right = std::memcmp(in, out, n * sizeof(float)) == 0;
    return outcome;
}

Outcome shared_bounds(const Options& options, int bug, bool& right) {
    CardMemory card;
    const int n = 20;
    int* const out = card.allocate<int>(32);
    Outcome outcome = kernels().run("shared_bounds", {1, 1, 1}, {32, 1, 1}, card, options, 4 * n, out, n, bug);
    for (int t = 0; t < 32; ++t) right &= out[t] == (t < n ? 2 * t : t);
    return outcome;
}

Outcome vectors(const Options& options, int bug, bool& right) {
    CardMemory card;
    auto* const in = card.upload(std::vector<unsigned char>(33 * 16, 7));
    auto* const out = card.allocate<unsigned char>(33 * 16);
    Outcome outcome = kernels().run("vectors", {1, 1, 1}, {32, 1, 1}, card, options, 0, in, out, bug);
    right = std::memcmp(in, out, 512) == 0;
    return outcome;
}

Outcome own_place(const Options& options, int bug, bool& right) {
    CardMemory card;
    int* const out = card.allocate<int>(7);
    Outcome outcome = kernels().run("own_place", {7, 1, 1}, {32, 1, 1}, card, options, 0, out, bug);
    for (int b = 0; b < 7; ++b) right &= out[b] == b;
    return outcome;
}

Outcome read_of_other_block(const Options& options, int bug, bool& right) {
    CardMemory card;
    int* const values = card.upload(counted(1));
    int* const out = card.allocate<int>(5);
    Outcome outcome = kernels().run("read_of_other_block", {5, 1, 1}, {32, 1, 1}, card, options, 0, values, out, bug);
    right = values[0] == 7;
    return outcome;
}

Outcome last_block(const Options& options, int bug, bool& right) {
    CardMemory card;
    int* const in = card.upload(counted(9));
    int* const partial = card.allocate<int>(9);
    auto* const counter = card.upload(std::vector<unsigned>{0});
    int* const out = card.allocate<int>(1);
    Outcome outcome =
        kernels().run("last_block", {9, 1, 1}, {32, 1, 1}, card, options, 0, in, partial, counter, out, bug);
    right = *out == 36;
    return outcome;
}

Outcome histogram(const Options& options, int bug, bool& right) {
    CardMemory card;
    int* const in = card.upload(counted(64));
    int* const out = card.allocate<int>(4);
    Outcome outcome = kernels().run("histogram", {1, 1, 1}, {64, 1, 1}, card, options, 0, in, out, bug);
    for (int i = 0; i < 4; ++i) right &= out[i] == 16;
    return outcome;
}

Outcome standard_atomics(const Options& options, int bug, bool& right) {
    CardMemory card;
    auto* const counters = card.upload(std::vector<unsigned>(6));
    Outcome outcome = kernels().run("standard_atomics", {1, 1, 1}, {64, 1, 1}, card, options, 0, counters, bug);
    right = counters[0] == 2016 && counters[1] == 63 && counters[2] == ~0u && counters[3] == ~0u;
    return outcome;
}

Outcome sum_written(const Options& options, int bug, bool& right) {
    CardMemory card;
    float* const in = card.allocate<float>(20);
    range_before(*card.memory.ranges(), reinterpret_cast<uintptr_t>(in))->written->mark(0, 19 * 4);
    std::fill_n(in, 19, 2.0f);
    float* const out = card.allocate<float>(1);
    Outcome outcome = kernels().run("sum_written", {1, 1, 1}, {32, 1, 1}, card, options, 0, in, 19, out, bug);
    right = *out == 38;
    return outcome;
}

Outcome read_only(const Options& options, int bug, bool& right) {
    CardMemory card;
    float* const in = card.upload(floats(32));
    float* const out = card.allocate<float>(32);
    Outcome outcome = kernels().run("read_only", {1, 1, 1}, {32, 1, 1}, card, options, 0, in, out, bug);
    for (int t = 0; t < 32; ++t) right &= out[t] == 2 * in[(t + 1) % 32];
    return outcome;
}

Outcome stages(const Options& options, int bug, bool& right) {
    CardMemory card;
    const int steps = 5;
    float* const in = card.upload(floats(steps * 256));
    float* const out = card.allocate<float>(64);
    Outcome outcome = kernels().run("stages", {1, 1, 1}, {64, 1, 1}, card, options, 0, in, out, steps, bug);
    for (int t = 0; t < 64; ++t) {
        float sum = 0;
        for (int s = 0; s < steps; ++s) {
            for (int e = 0; e < 4; ++e) sum += in[s * 256 + (t + 1) % 64 * 4 + e];
        }
        right &= out[t] == sum;
    }
    return outcome;
}

Outcome barriers(const Options& options, int bug, bool& right) {
    CardMemory card;
    int* const out = card.allocate<int>(64);
    Outcome outcome = kernels().run("barriers", {1, 1, 1}, {64, 1, 1}, card, options, 0, out, bug);
    for (int t = 0; t < 64; ++t) right &= out[t] == t;
    return outcome;
}

Outcome hand_over(const Options& options, int bug, bool& right) {
    CardMemory card;
    const int tiles = 4;
    int* const in = card.upload(counted(32 * tiles));
    int* const out = card.allocate<int>(32);
    Outcome outcome = kernels().run("hand_over", {1, 1, 1}, {64, 1, 1}, card, options, 0, in, out, tiles, bug);
    for (int t = 0; t < 32; ++t) right &= out[t] == 4 * (31 - t) + 32 * 6;
    return outcome;
}

Outcome converged(const Options& options, int bug, bool& right) {
    CardMemory card;
    int* const out = card.allocate<int>(32);
    Outcome outcome = kernels().run("converged", {1, 1, 1}, {32, 1, 1}, card, options, 0, out, bug);
    for (int t = 0; t < 32; ++t) right &= out[t] == (t ^ 1);
    return outcome;
}

Outcome whole_blocks(const Options& options, int bug, bool& right) {
    CardMemory card;
    const int n = 64;
    std::vector<unsigned char> bytes(34 * n);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i / 34);
    auto* const in = card.upload(bytes);
    int* const out = card.allocate<int>(64);
    Outcome outcome =
        kernels().run("whole_blocks", {1, 1, 1}, {64, 1, 1}, card, options, 0, in, bug == 2 ? n - 1 : n, out, bug);
    for (int t = 0; t < 64; ++t) right &= out[t] == 32 * ((t + 1) % n);
    return outcome;
}

Outcome assigned_blocks(const Options& options, int bug, bool& right) {
    CardMemory card;
    const int n = bug == 2 ? 63 : 64;
    std::vector<unsigned char> bytes(static_cast<size_t>(34 * n));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i / 34);
    auto* const in = card.upload(bytes);
    int* const out = card.allocate<int>(64);
    Outcome outcome = kernels().run("assigned_blocks", {1, 1, 1}, {64, 1, 1}, card, options, 0, in, n, out, bug);
    for (int t = 0; t < 64; ++t) right &= out[t] == 32 * ((t + 1) % n);
    return outcome;
}

Outcome local_memory(const Options& options, int bug, bool& right) {
    CardMemory card;
    int* const out = card.allocate<int>(32);
    Outcome outcome = kernels().run("local_memory", {1, 1, 1}, {32, 1, 1}, card, options, 0, out, bug);
    for (int t = 0; t < 32; ++t) right &= out[t] == t;
    return outcome;
}

Outcome relay(const Options& options, int bug, bool& right) {
    CardMemory card;
    auto* const flags = card.upload(std::vector<unsigned>(5));
    Outcome outcome = kernels().run("relay", {5, 1, 1}, {32, 1, 1}, card, options, 0, flags, bug);
    for (int b = 0; b < 5; ++b) right &= flags[b] == 1;
    return outcome;
}

Outcome rounds(const Options& options, int bug, bool& right) {
    CardMemory card;
    int* const out = card.allocate<int>(32);
    Outcome outcome = kernels().run("rounds", {1, 1, 1}, {32, 1, 1}, card, options, 0, out, bug);
    for (int t = 0; t < 32; ++t) right &= out[t] == 3;
    return outcome;
}

const Planted kPlanted[] = {
    {"neighbours", 1, Fault::kLaunchFailed, "", neighbours},  // unwritten, or a race: as the order has it
    {"neighbours", 2, Fault::kLaunchFailed, "race", neighbours},
    {"lanes", 1, Fault::kLaunchFailed, "", lanes},
    {"copy_floats", 1, Fault::kIllegalAddress, "write of 4 bytes out of bounds, at 0 bytes after the end", copy_floats},
    {"copy_floats", 2, Fault::kIllegalAddress, "read of 4 bytes out of bounds", copy_floats},
    {"shared_bounds", 1, Fault::kIllegalAddress, "after the end of static shared array 0 (128 bytes)", shared_bounds},
    {"shared_bounds", 2, Fault::kIllegalAddress, "out of bounds of shared memory", shared_bounds},
    {"shared_bounds", 3, Fault::kIllegalAddress, "out of bounds of shared memory", shared_bounds},
    {"vectors", 1, Fault::kMisaligned, "read of 16 bytes at an address that is no multiple", vectors},
    {"vectors", 2, Fault::kMisaligned, "read of 16 bytes at an address that is no multiple", vectors},
    {"vectors", 3, Fault::kMisaligned, "write of 16 bytes at an address that is no multiple", vectors},
    {"vectors", 4, Fault::kMisaligned, "write of 16 bytes at an address that is no multiple", vectors},
    {"own_place", 1, Fault::kLaunchFailed, "is not ordered after a write by block", own_place},
    {"read_of_other_block", 1, Fault::kLaunchFailed, "race", read_of_other_block},
    {"last_block", 1, Fault::kLaunchFailed, "race", last_block},
    {"last_block", 2, Fault::kLaunchFailed, "race", last_block},
    {"last_block", 3, Fault::kLaunchFailed, "race", last_block},
    {"histogram", 1, Fault::kLaunchFailed, "race", histogram},
    {"standard_atomics", 1, Fault::kLaunchFailed, "race", standard_atomics},
    {"sum_written", 1, Fault::kLaunchFailed, "memory that nobody has written, at byte 76", sum_written},
    {"read_only", 1, Fault::kLaunchFailed, "read-only", read_only},
    {"stages", 1, Fault::kLaunchFailed, "has not been waited for", stages},
    {"stages", 2, Fault::kLaunchFailed, "", stages},
    {"stages", 3, Fault::kLaunchFailed, "", stages},
    {"stages", 4, Fault::kMisaligned, "is not aligned to 16 bytes", stages},
    {"barriers", 1, Fault::kLaunchFailed, "sync_block (emulator_kernels.cu:", barriers},
    {"barriers", 2, Fault::kLaunchFailed, "sync_warp (emulator_kernels.cu:", barriers},
    {"barriers", 3, Fault::kLaunchFailed, "deadlock", barriers},
    {"barriers", 4, Fault::kLaunchFailed, "warps meet at different barriers of the block", barriers},
    {"hand_over", 1, Fault::kLaunchFailed, "race", hand_over},
    {"hand_over", 3, Fault::kLaunchFailed, "barrier 1 again before the others have come once", hand_over},
    {"hand_over", 2, Fault::kLaunchFailed, "", hand_over},
    {"converged", 1, Fault::kLaunchFailed, "", converged},
    {"converged", 2, Fault::kLaunchFailed, "have not converged", converged},
    {"converged", 3, Fault::kLaunchFailed, "", converged},
    {"whole_blocks", 1, Fault::kLaunchFailed, "", whole_blocks},
    {"whole_blocks", 3, Fault::kLaunchFailed, "race", whole_blocks},
    {"assigned_blocks", 1, Fault::kLaunchFailed, "", assigned_blocks},
    {"assigned_blocks", 2, Fault::kIllegalAddress, "read of 34 bytes out of bounds", assigned_blocks},
    {"assigned_blocks", 3, Fault::kLaunchFailed, "race: write of", assigned_blocks},
    {"local_memory", 1, Fault::kIllegalAddress, "KB of local memory", local_memory},
    {"relay", 1, Fault::kTimeout, "waits for what no other thread or block does", relay},
    {"rounds", 1, Fault::kTimeout, "waits in vote_all (emulator_kernels.cu:", rounds},
};

TEST(Emulator, FindsEveryPlantedBug) {
    for (const Planted& planted : kPlanted) {
        for (const Options& options : many_options()) {
            SCOPED_TRACE(std::string(planted.kernel) + " with bug " + std::to_string(planted.bug) + ", seed " +
                         std::to_string(options.seed));
            bool right = true;
            const Outcome outcome = planted.run(options, planted.bug, right);
            EXPECT_EQ(outcome.fault, planted.fault) << outcome.report;
            EXPECT_THAT(outcome.report, AllOf(HasSubstr(std::string("kernel ") + planted.kernel + ", block ("),
                                              HasSubstr("thread ("), HasSubstr(planted.report)));
        }
    }
}

TEST(Emulator, FindsNothingInTheSameKernelsWithoutThem) {
    std::string last;
    for (const Planted& planted : kPlanted) {
        if (planted.kernel == last) continue;
        last = planted.kernel;
        for (const Options& options : many_options()) {
            SCOPED_TRACE(std::string(planted.kernel) + ", seed " + std::to_string(options.seed));
            bool right = true;
            const Outcome outcome = planted.run(options, 0, right);
            EXPECT_EQ(outcome.fault, Fault::kNone) << outcome.report;
            EXPECT_TRUE(right);
        }
    }
}

// The instrumentation does not see what the compiler makes of memcpy: the emulator's own memcpy does.
TEST(Emulator, ChecksBytesCopiedAsAWhole) {
    CardMemory card;
    auto* const in = card.upload(std::vector<unsigned char>(34 * 63, 1));
    int* const out = card.allocate<int>(64);
    const Outcome outcome = kernels().run("whole_blocks", {1, 1, 1}, {64, 1, 1}, card, Options{}, 0, in, 63, out, 2);
    EXPECT_EQ(outcome.fault, Fault::kIllegalAddress);
    EXPECT_THAT(outcome.report, AllOf(HasSubstr("read of 34 bytes out of bounds"), HasSubstr("thread (63,0,0)")));
}

// What the compiler cannot tell shows in results: the value is the same in every run, and none that is likely.
TEST(Emulator, VariablesWithoutAValueHoldAPattern) {
    for (const int bug : {0, 1}) {
        CardMemory card;
        int* const out = card.allocate<int>(32);
        const Outcome outcome = kernels().run("variables", {1, 1, 1}, {32, 1, 1}, card, Options{}, 0, out, bug);
        EXPECT_EQ(outcome.fault, Fault::kNone) << outcome.report;
        for (int t = 0; t < 32; ++t) EXPECT_EQ(static_cast<unsigned>(out[t]), bug ? 0xFEFEFEFEu : 1u);
    }
}

// What a launch has touched, for the order of launches: exact to the byte.
TEST(Emulator, CollectsWhatIsTouched) {
    CardMemory card;
    float* const in = card.upload(floats(32));
    float* const out = card.allocate<float>(32);
    Options options;
    options.collect = true;
    const Outcome outcome = kernels().run("copy_floats", {1, 1, 1}, {64, 1, 1}, card, options, 0, in, out, 29, 0);
    ASSERT_EQ(outcome.fault, Fault::kNone) << outcome.report;
    const auto at = [](const float* p) { return reinterpret_cast<uintptr_t>(p); };
    ASSERT_EQ(outcome.touched.size(), 2u);
    for (const Touched& touched : outcome.touched) {
        const float* const first = touched.written ? out : in;
        EXPECT_EQ(touched.begin, at(first));
        EXPECT_EQ(touched.end, at(first + 29));
    }
}

TEST(Emulator, SaysWhoWaitsWhere) {
    bool right = true;
    const Outcome outcome = barriers(Options{}, 3, right);
    EXPECT_THAT(outcome.report,
                AllOf(HasSubstr("warp 0 (32 of 32 lanes) waits in named_barrier_sync (emulator_kernels.cu:"),
                      HasSubstr("barrier 1: 32 of 64 threads"),
                      HasSubstr("warp 1 (32 of 32 lanes) waits in sync_block (emulator_kernels.cu:")));
}

TEST(Emulator, SaysWhoElseItWas) {
    bool right = true;
    EXPECT_THAT(histogram(Options{}, 1, right).report,
                AllOf(HasSubstr("byte "), HasSubstr("of static shared array 0 (16 bytes)"),
                      HasSubstr("not ordered after a"), HasSubstr("of the same block")));
}

TEST(Emulator, MemoryOfAnotherCardNeedsAccess) {
    CardMemory card;
    float* const in = card.upload(floats(32), 1);
    float* const out = card.allocate<float>(32);
    const Outcome outcome = kernels().run("copy_floats", {1, 1, 1}, {64, 1, 1}, card, Options{}, 0, in, out, 32, 0);
    EXPECT_EQ(outcome.fault, Fault::kIllegalAddress);
    EXPECT_THAT(outcome.report, AllOf(HasSubstr("on card 1"), HasSubstr("access to which has not been enabled")));
}

TEST(Emulator, MemoryOfTheHostIsNotReached) {
    CardMemory card;
    std::vector<float> in = floats(32);
    float* const out = card.allocate<float>(32);
    const Outcome outcome =
        kernels().run("copy_floats", {1, 1, 1}, {64, 1, 1}, card, Options{}, 0, in.data(), out, 32, 0);
    EXPECT_EQ(outcome.fault, Fault::kIllegalAddress);
}

TEST(Emulator, ASeedRepeatsARun) {
    for (uint64_t seed = 1; seed < 6; ++seed) {
        Options options;
        options.seed = seed;
        bool right = true;
        const Outcome first = histogram(options, 1, right), second = histogram(options, 1, right);
        EXPECT_EQ(first.report, second.report);
        EXPECT_EQ(first.counters.switches, second.counters.switches);
    }
}

TEST(Emulator, SeedsChangeTheOrder) {
    std::vector<std::string> reports;
    for (uint64_t seed = 1; seed < 20; ++seed) {
        Options options;
        options.seed = seed;
        bool right = true;
        reports.push_back(own_place(options, 1, right).report);
    }
    std::sort(reports.begin(), reports.end());
    EXPECT_GT(std::unique(reports.begin(), reports.end()) - reports.begin(), 5);
}

// Threads in the order in which they have run.
std::vector<int> order_of(const Options& options) {
    CardMemory card;
    auto* const count = card.upload(std::vector<unsigned>{0});
    int* const out = card.allocate<int>(128);
    const Outcome outcome = kernels().run("order", {1, 1, 1}, {128, 1, 1}, card, options, 0, count, out);
    EXPECT_EQ(outcome.fault, Fault::kNone) << outcome.report;
    return std::vector<int>(out, out + 128);
}

TEST(Emulator, SeedsChangeTheOrderOfWarpsAndLanes) {
    std::set<std::vector<int>> warps;
    std::set<int> lanes;
    for (uint64_t seed = 1; seed < 20; ++seed) {
        Options options;
        options.seed = seed;
        const std::vector<int> order = order_of(options);
        EXPECT_EQ(order, order_of(options));
        std::vector<int> of_warps;
        for (const int thread : order) {
            const int warp = thread / 32;
            if (std::find(of_warps.begin(), of_warps.end(), warp) != of_warps.end()) continue;
            of_warps.push_back(warp);
            lanes.insert(thread % 32);  // that its warp begins with
        }
        ASSERT_EQ(of_warps.size(), 4u);
        warps.insert(of_warps);
    }
    EXPECT_GT(warps.size(), 8u);  // of 24
    EXPECT_GT(lanes.size(), 16u);
    Options options;
    options.ordered = true;
    EXPECT_EQ(order_of(options), counted(128));
}

TEST(Emulator, SharedMemoryHasItsLimit) {
    CardMemory card;
    int* const out = card.allocate<int>(32);
    const Outcome outcome =
        kernels().run("shared_bounds", {1, 1, 1}, {32, 1, 1}, card, Options{}, (48 << 10) - 64, out, 20, 0);
    EXPECT_EQ(outcome.fault, Fault::kLaunchFailed);
    EXPECT_THAT(outcome.report, HasSubstr("the limit is 49152"));
}

Counters transposed(int bug) {
    CardMemory card;
    float* const in = card.upload(floats(1024));
    float* const out = card.allocate<float>(1024);
    Options options;
    options.count = true;
    const Outcome outcome = kernels().run("transposed", {1, 1, 1}, {32, 1, 1}, card, options, 0, in, out, bug);
    EXPECT_EQ(outcome.fault, Fault::kNone) << outcome.report;
    for (int i = 0; i < 1024; ++i) EXPECT_EQ(out[i], bug == 2 ? in[i] : in[i % 32 * 32 + i / 32]);
    return outcome.counters;
}

TEST(Emulator, CountsConflictsBetweenBanks) {
    const Counters padded = transposed(0), conflicts = transposed(1);
    EXPECT_EQ(padded.shared_requests, 64u);
    EXPECT_EQ(padded.shared_ideal, 64u);
    EXPECT_EQ(padded.shared_wavefronts, 64u);
    EXPECT_EQ(conflicts.shared_wavefronts, 32u + 32 * 32);
}

TEST(Emulator, CountsSectors) {
    const Counters rows = transposed(0), columns = transposed(2);
    EXPECT_EQ(rows.global_requests, 64u);
    EXPECT_EQ(rows.global_sectors, 64u * 4);
    EXPECT_EQ(rows.global_sectors_ideal, 64u * 4);
    EXPECT_EQ(columns.global_sectors, 32u * 4 + 32 * 32);
}

TEST(Emulator, WarpValues) {
    CardMemory card;
    int* const in = card.upload(counted(32, 1));
    int* const out = card.allocate<int>(32 * 11);
    const Outcome outcome = kernels().run("warp_values", {1, 1, 1}, {32, 1, 1}, card, Options{}, 0, in, out);
    ASSERT_EQ(outcome.fault, Fault::kNone) << outcome.report;
    for (int t = 0; t < 32; ++t) {
        const int v = t + 1, packed = v * 0x01030507;
        const auto at = [&](int row) { return out[row * 32 + t]; };
        EXPECT_EQ(at(0), 6);
        EXPECT_EQ(at(1), (t ^ 3) + 1);
        EXPECT_EQ(at(2), (t + 7 < 32 ? t + 7 : t) + 1);
        EXPECT_EQ(static_cast<unsigned>(at(3)), 0x24924924u);
        EXPECT_EQ(at(4), 2);
        int dot = 9;
        for (int i = 0; i < 4; ++i)
            dot += static_cast<signed char>(packed >> 8 * i) * static_cast<signed char>(0x7F80FF02 >> 8 * i);
        EXPECT_EQ(at(5), dot);
        EXPECT_EQ(at(6), 0x66331100);
        EXPECT_EQ(at(7), v % 2 ? v + 1 : v);  // halves go to even numbers
        EXPECT_EQ(at(10), 860);
        const auto half = static_cast<unsigned short>(at(8));
        EXPECT_NEAR(std::ldexp(1.0f + static_cast<float>(half & 1023) / 1024.0f, (half >> 10) - 15),
                    1.0f / static_cast<float>(v + 3), 0.0003f);
        const unsigned wide = static_cast<unsigned>(at(9)) << 16;
        float value = 0;
        std::memcpy(&value, &wide, 4);
        EXPECT_NEAR(value, 1.0f / static_cast<float>(v + 3), 0.001f);
    }
}

unsigned short half_of(float value) {  // exact ones only: multiples of 1/8 below 256
    if (value == 0) return 0;
    int exponent = 0;
    const float fraction = std::frexp(std::fabs(value), &exponent);
    const auto bits = static_cast<unsigned>((fraction * 2 - 1) * 1024);
    return static_cast<unsigned short>((value < 0 ? 0x8000u : 0u) | static_cast<unsigned>(exponent + 14) << 10 | bits);
}

// A whole product: asynchronous copies, ldmatrix, mma, against plain sums. Prints its speed.
TEST(Emulator, ProductOfHalves) {
    const int m = 128, n = 128, k = 256;
    std::mt19937 random(5);
    std::vector<float> a(m * k), b(n * k);
    std::vector<unsigned short> a16, b16;
    for (float& v : a) a16.push_back(half_of(v = static_cast<float>(static_cast<int>(random() % 33) - 16) / 8));
    for (float& v : b) b16.push_back(half_of(v = static_cast<float>(static_cast<int>(random() % 33) - 16) / 8));
    CardMemory card;
    const auto* const left = card.upload(a16);
    const auto* const right = card.upload(b16);
    float* const c = card.allocate<float>(m * n);
    const auto run = [&](const Options& options, int bug) {
        return kernels().run("product_f16", {2, 2, 1}, {128, 1, 1}, card, options, 8192, left, right, c, k, n, bug);
    };
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = run(Options{}, 0);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ASSERT_EQ(outcome.fault, Fault::kNone) << outcome.report;
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            float sum = 0;
            for (int l = 0; l < k; ++l) sum += a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(j * k + l)];
            ASSERT_EQ(c[i * n + j], sum) << i << ' ' << j;
        }
    }
    const Counters& counters = outcome.counters;
    EXPECT_EQ(counters.matrix_products, 4u * (k / 16) * 4 * 8);
    std::printf("%.3f s, %.1f M switches/s, %.1f M accesses/s, %.2f M mma/s\n", seconds,
                static_cast<double>(counters.switches) / seconds / 1e6,
                static_cast<double>(counters.accesses) / seconds / 1e6,
                static_cast<double>(counters.matrix_products) / seconds / 1e6);

    Options counting;
    counting.count = true;
    const Counters swizzled = run(counting, 0).counters, plain = run(counting, 1).counters;
    EXPECT_EQ(swizzled.shared_wavefronts, swizzled.shared_ideal);
    EXPECT_GT(plain.shared_wavefronts, plain.shared_ideal * 3 / 2);
}

}  // namespace
}  // namespace tessera::cuda::emulator
