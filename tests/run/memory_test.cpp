// The plan's bytes against those that are allocated. This program replaces malloc and mmap and counts; it
// shares nothing with the planner.
#include "core/base/log.hpp"
#include "core/graph/op_set.hpp"
#include "core/plan/make_plan.hpp"
#include "core/registry/plugin_log.hpp"
#include "core/run/executor.hpp"
#include "core/session/engine.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

constexpr size_t kLarge = 64 << 10;

std::atomic<uint64_t> mapped_bytes{0};    // anonymous mappings asked for
std::atomic<uint64_t> unmapped_bytes{0};  // released
std::atomic<uintptr_t> reserved{0};       // the latest room for addresses alone, which a mapped file is put into
std::atomic<size_t> reserved_bytes{0};
std::atomic<uint64_t> large_mallocs{0};  // bytes of allocations above 64 KiB
std::atomic<uint64_t> large_count{0};    // of both kinds

void count_malloc(size_t bytes) {
    if (bytes <= kLarge) return;
    large_mallocs += bytes;
    ++large_count;
}

}  // namespace

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
    count_malloc(bytes);
    return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
    count_malloc(count * bytes);
    return __libc_calloc(count, bytes);
}

void* realloc(void* old, size_t bytes) {
    count_malloc(bytes);
    return __libc_realloc(old, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
    count_malloc(bytes);
    return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void** result, size_t alignment, size_t bytes) {
    *result = memalign(alignment, bytes);
    return *result ? 0 : ENOMEM;
}

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if ((flags & MAP_ANONYMOUS) && protection != PROT_NONE) {
        mapped_bytes += bytes;
        if (bytes > kLarge) ++large_count;
        reserved_bytes = 0;
    }
    const long got = syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
    if (protection == PROT_NONE) {
        reserved = static_cast<uintptr_t>(got);
        reserved_bytes = bytes;
    }
    return reinterpret_cast<void*>(got);
}

int munmap(void* at, size_t bytes) {
    const bool of_reserved = reinterpret_cast<uintptr_t>(at) - reserved < reserved_bytes;
    if (!of_reserved) unmapped_bytes += bytes;
    return static_cast<int>(syscall(SYS_munmap, at, bytes));
}

}  // extern "C"

namespace tessera {
namespace {

class MemoryTest : public testing::TestWithParam<const char*> {};

TEST_P(MemoryTest, PlannedBytesAreThoseAskedFor) {
    const Config config = test::plugins_without({});
    Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load(config, hardware);
    // What the thread library and the logger set up once in a process belongs to no model.
    Team team(hardware.cpu().threads);
    auto nothing = [](uint32_t, uint32_t) {};
    team.run(0, nothing);
    log().flush();
    print_plugin_log();
    const auto path = std::filesystem::path(TSR_GOLDENS) / GetParam();
    for (const auto& [mapped, pack] : {std::pair{true, PackWeights::kAtLoad},
                                       {true, PackWeights::kBetweenSteps},
                                       {true, PackWeights::kNever},
                                       {false, PackWeights::kAtLoad}}) {
        EngineOptions options;
        options.context = 2048;
        options.map_weights = mapped;
        options.pack_weights = pack;
        gguf::GgufFile file = gguf::GgufFile::open(path);
        const uint64_t before = mapped_bytes, before_back = unmapped_bytes, mallocs = large_mallocs;
        Engine engine(std::move(file), registry, hardware, options);
        const uint64_t asked = mapped_bytes - before + (large_mallocs - mallocs);
        const DeviceMemory& planned = engine.plan().memory[0];
        EXPECT_EQ(asked, planned.allocated());
        EXPECT_EQ(unmapped_bytes - before_back, planned.loading) << "what loading needed is given back";
        EXPECT_EQ(mapped ? planned.mapped > 0 : planned.mapped == 0, true);
    }
}

TEST_P(MemoryTest, NothingLargeIsAllocatedAfterLoading) {
    for (const PackWeights pack : {PackWeights::kAtLoad, PackWeights::kBetweenSteps}) {
        EngineOptions options{.context = 1024, .sequences = 2, .rows = 128};
        options.pack_weights = pack;
        test::LoadedModel model(std::filesystem::path(TSR_GOLDENS) / GetParam(), options, test::plugins_without({}));
        Engine& engine = *model.engine;
        const std::vector<Token> prompt(300, 5);
        const uint64_t before = large_count;
        const SequenceId a = engine.cache().create();
        engine.prefill(a, prompt);
        const SequenceId b = engine.cache().fork(a, 290);
        for (int i = 0; i < 20; ++i) {
            const BatchEntry both[] = {{a, std::span(prompt).first(1)}, {b, std::span(prompt).first(3)}};
            engine.step(both);
        }
        for (size_t i = 0; i < engine.plan().deferred.size(); ++i) engine.pack_one();
        EXPECT_EQ(engine.packing().done_bytes, engine.packing().total_bytes);
        EXPECT_EQ(large_count, before);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, MemoryTest,
                         testing::Values("v2-plain.gguf", "v3-groups.gguf", "qwen3moe-norm.gguf", "llama-gqa.gguf"),
                         [](const auto& instance) {
                             std::string name = instance.param;
                             name = name.substr(0, name.find('.'));
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// A weight whose rows the file interleaves, read and packed anew.
class InterleavedSource : public WeightSource {
  public:
    explicit InterleavedSource(uint64_t bytes) : bytes_(bytes) {}
    void read(const std::string&, uint64_t offset, std::span<std::byte> to) const override {
        EXPECT_LE(offset + to.size(), bytes_);
        std::ranges::fill(to, std::byte{1});
    }
    const std::byte* mapped(const std::string&) const override { return nullptr; }

  private:
    uint64_t bytes_;
};

TEST(InterleavedMemory, IsThatOfThePlan) {
    constexpr int64_t kElements = 4096, kRows = 8 * 100;
    constexpr uint64_t kBytes = kRows * kElements / 32 * 34;
    const Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load(test::plugins_without({}), hardware);
    Team team(hardware.cpu().threads);
    auto nothing = [](uint32_t, uint32_t) {};
    team.run(0, nothing);
    log().flush();
    print_plugin_log();
    const OpSet ops;
    Graph graph(ops);
    const Value tokens = graph.input("tokens", {TSR_TYPE_I32, {2}, TSR_RANGE_ROWS});
    graph.set_layer(0);
    const Value weight = graph.weight("w", {TSR_TYPE_Q8_0, {kElements, kRows}}, "q8_0_r8");
    const Value taken = graph.add_one("get_rows", "taken", {weight, tokens});
    graph.set_output("logits", graph.add_one("matmul", "product", {taken, weight}));
    ScheduleOptions options;
    options.max_rows = 2;
    Plan plan = make_plan(graph, registry, hardware, options);
    const uint64_t before = mapped_bytes, mallocs = large_mallocs;
    Executor executor(std::move(plan), registry, team);
    executor.load(InterleavedSource(kBytes));
    EXPECT_EQ(mapped_bytes - before + (large_mallocs - mallocs), executor.plan().memory[0].allocated());
    EXPECT_GE(executor.plan().memory[0].weights, kBytes);
}

// The counting itself must count, or the tests above prove nothing.
TEST(Interposer, Counts) {
    const uint64_t mallocs = large_mallocs, maps = mapped_bytes, count = large_count;
    std::vector<char> block(100'000);
    block[99'999] = 1;
    const HostBlock mapping(1 << 20, "a test");
    EXPECT_EQ(large_mallocs - mallocs, 100'000u);
    EXPECT_EQ(mapped_bytes - maps, 1u << 20);
    EXPECT_EQ(large_count - count, 2u);
}

}  // namespace
}  // namespace tessera
