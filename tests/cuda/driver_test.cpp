// The emulated driver does what the manual of the driver says, and refuses what it refuses.
#include "emulated_cards.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

namespace tessera::cuda::emulated {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr size_t kGranule = 2 << 20;

int attribute(int which, int device) {
    int value = -1;
    EXPECT_EQ(call("cuDeviceGetAttribute", &value, which, device), 0);
    return value;
}

TEST(EmulatedDriver, DescribesItsCards) {
    start_driver();
    int count = 0, device = -1, version = 0;
    EXPECT_EQ(call("cuDeviceGetCount", &count), 0);
    EXPECT_EQ(count, kCards);
    EXPECT_EQ(call("cuDeviceGet", &device, kCards), 101);
    EXPECT_EQ(call("cuDriverGetVersion", &version), 0);
    EXPECT_EQ(version, 12090);
    char name[64] = "", pci[32] = "";
    EXPECT_EQ(call("cuDeviceGetName", static_cast<char*>(name), 64, 0), 0);
    EXPECT_STREQ(name, "NVIDIA GeForce RTX 3090");
    EXPECT_EQ(call("cuDeviceGetName", static_cast<char*>(name), 64, 1), 0);
    EXPECT_STREQ(name, "Tesla P40");
    EXPECT_EQ(call("cuDeviceGetPCIBusId", static_cast<char*>(pci), 32, 1), 0);
    EXPECT_STREQ(pci, "EE00:02:00.0");
    size_t bytes = 0;
    EXPECT_EQ(call("cuDeviceTotalMem_v2", &bytes, 0), 0);
    EXPECT_EQ(bytes, 1u << 30);
    EXPECT_EQ(attribute(75, 0) * 10 + attribute(76, 0), 86);
    EXPECT_EQ(attribute(75, 1) * 10 + attribute(76, 1), 61);
    EXPECT_EQ(attribute(16, 0), 82);
    EXPECT_EQ(attribute(97, 0), 99 << 10);
    EXPECT_EQ(attribute(97, 1), 48 << 10);
    EXPECT_EQ(attribute(97, kHopper), 227 << 10);
    EXPECT_EQ(attribute(75, kUnknown) * 10 + attribute(76, kUnknown), 130);
    EXPECT_EQ(attribute(97, kUnknown), 99 << 10);  // as of the newest that is known
    EXPECT_NEAR(2e3 * attribute(36, 0) * attribute(37, 0) / 8, 936e9, 1e6);
    int value = 0;
    EXPECT_EQ(call("cuDeviceGetAttribute", &value, 9999, 0), 1);
}

TEST(EmulatedDriver, CallsNeedAContext) {
    start_driver();
    Address address = 0;
    void *made = nullptr, *context = nullptr, *popped = nullptr;
    EXPECT_EQ(call("cuMemAlloc_v2", &address, size_t{16}), 201);
    EXPECT_EQ(call("cuStreamCreate", &made, 0u), 201);
    EXPECT_EQ(call("cuDevicePrimaryCtxRetain", &context, 7), 0);
    EXPECT_EQ(call("cuCtxPushCurrent_v2", context), 0);
    int device = -1;
    EXPECT_EQ(call("cuCtxGetDevice", &device), 0);
    EXPECT_EQ(device, 7);
    EXPECT_EQ(call("cuDevicePrimaryCtxRelease_v2", 7), 0);
    EXPECT_EQ(call("cuMemAlloc_v2", &address, size_t{16}), 709);
    EXPECT_EQ(call("cuCtxPopCurrent_v2", &popped), 0);
    EXPECT_EQ(popped, context);
    EXPECT_EQ(call("cuCtxPopCurrent_v2", &popped), 201);
    EXPECT_EQ(call("cuCtxPushCurrent_v2", context), 709);
    EXPECT_EQ(call("cuCtxPushCurrent_v2", static_cast<void*>(&device)), 201);
}

TEST(EmulatedDriver, MemoryEndsWithTheCard) {
    TestCard card(0);
    size_t free_before = 0, free_after = 0, total = 0;
    EXPECT_EQ(call("cuMemGetInfo_v2", &free_before, &total), 0);
    EXPECT_EQ(total, 1u << 30);
    EXPECT_EQ(free_before, (1u << 30) - (64u << 20) - 512);  // what the context takes, and the module's data
    const size_t granules = free_before / kGranule * kGranule;
    Address large = 0, small = 0;
    EXPECT_EQ(call("cuMemAlloc_v2", &large, granules + 1), 2);
    EXPECT_EQ(call("cuMemAlloc_v2", &large, granules), 0);
    EXPECT_EQ(call("cuMemAlloc_v2", &small, size_t{1}), 2);
    EXPECT_EQ(call("cuMemGetInfo_v2", &free_after, &total), 0);
    EXPECT_EQ(free_after, free_before - granules);
    EXPECT_EQ(card.download(large + granules - 8, 2), (std::vector<int>{-1, -1}));  // poisoned to its end
    EXPECT_EQ(call("cuMemFree_v2", large), 0);
    EXPECT_EQ(call("cuMemFree_v2", large), 1);
    EXPECT_EQ(call("cuMemGetInfo_v2", &free_after, &total), 0);
    EXPECT_EQ(free_after, free_before);
    EXPECT_EQ(call("cuMemAlloc_v2", &small, size_t{0}), 1);
}

TEST(EmulatedDriver, TheLastReleaseOfAContextTakesAllWithIt) {
    start_driver();
    void *context = nullptr, *stream = nullptr, *popped = nullptr, *module = nullptr, *function = nullptr;
    const std::vector<char> image = make_emulation_image(86, "test__driver", 800, test_kernels());
    Address left = 0;
    size_t free_bytes = 0, total = 0;
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(call("cuDevicePrimaryCtxRetain", &context, 20), 0);
        EXPECT_EQ(call("cuCtxPushCurrent_v2", context), 0);
        EXPECT_EQ(call("cuMemGetInfo_v2", &free_bytes, &total), 0);
        EXPECT_EQ(free_bytes, (1u << 30) - (64u << 20));
        EXPECT_EQ(call("cuMemAlloc_v2", &left, size_t{512} << 20), 0);
        EXPECT_EQ(call("cuModuleLoadData", &module, static_cast<const void*>(image.data())), 0);
        EXPECT_EQ(call("cuModuleGetFunction", &function, module, "fill"), 0);
        EXPECT_EQ(call("cuStreamCreate", &stream, 1u), 0);
        EXPECT_EQ(call("cuMemsetD8Async", left, static_cast<unsigned char>(1), size_t{64}, stream), 0);
        EXPECT_EQ(call("cuDevicePrimaryCtxRelease_v2", 20), 0);
        EXPECT_EQ(call("cuStreamSynchronize", stream), 709);
        EXPECT_EQ(call("cuModuleGetFunction", &function, module, "fill"), 400);
        EXPECT_EQ(call("cuStreamDestroy_v2", stream), 0);
        EXPECT_EQ(call("cuCtxPopCurrent_v2", &popped), 0);
    }
    EXPECT_EQ(call("cuDevicePrimaryCtxRelease_v2", 20), 201);
}

TEST(EmulatedDriver, CopiesStayWithinAllocations) {
    TestCard card(0);
    const Address a = card.allocate(64), b = card.allocate(64);
    std::vector<int> host(64);
    const auto up = [&](Address to, size_t bytes) {
        return call("cuMemcpyHtoDAsync_v2", to, static_cast<const void*>(host.data()), bytes, card.stream);
    };
    EXPECT_EQ(up(a, 64), 0);
    EXPECT_EQ(up(a, 65), 1);
    EXPECT_EQ(up(a + 64, 1), 1);
    EXPECT_EQ(up(a - 1, 1), 1);
    EXPECT_EQ(up(reinterpret_cast<Address>(host.data()), 4), 1);
    EXPECT_EQ(call("cuMemcpyHtoDAsync_v2", a, reinterpret_cast<const void*>(b), size_t{4}, card.stream), 1);
    EXPECT_EQ(call("cuMemcpyDtoDAsync_v2", b, a + 60, size_t{8}, card.stream), 1);
    EXPECT_EQ(call("cuMemsetD8Async", a, static_cast<unsigned char>(1), size_t{65}, card.stream), 1);
    EXPECT_EQ(card.synchronize(), 0);
}

TEST(EmulatedDriver, Computes) {
    for (const int number : {0, 1}) {
        TestCard card(number);
        const int n = 1000;
        const Address in = card.allocate(n * 4), out = card.allocate(n * 4);
        std::vector<float> values(n), results(n);
        for (int i = 0; i < n; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i);
        EXPECT_EQ(call("cuMemcpyHtoDAsync_v2", in, static_cast<const void*>(values.data()), size_t{n * 4}, card.stream),
                  0);
        struct {
            Address in, out;
            double factor;
            int n;
        } scaling{in, out, 1.5, n};
        EXPECT_EQ(card.launch("scale", 8, 128, scaling), 0);
        EXPECT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(results.data()), out, size_t{n * 4}, card.stream), 0);
        for (int i = 0; i < n; ++i) ASSERT_EQ(results[static_cast<size_t>(i)], 1.5f * static_cast<float>(i));
        EXPECT_EQ(call("cuMemsetD8Async", out, static_cast<unsigned char>(1), size_t{n * 4}, card.stream), 0);
        EXPECT_THAT(card.download(out, n), Each(0x01010101));
    }
}

// 86@61: as a build for acceptance has both plugins' code for one card.
TEST(EmulatedDriver, CodeRunsAsTheArchitectureThatItWasMadeFrom) {
    for (const auto& [virtual_arch, expected] : {std::pair(610u, 610), std::pair(800u, 800)}) {
        TestCard card(0, 86, virtual_arch);
        const Address out = card.allocate(4);
        EXPECT_EQ(card.launch("architecture", 1, 32, out), 0);
        EXPECT_THAT(card.download(out, 1), Each(expected));
    }
}

// What the manual allows: page-locked memory is read when the stream comes to the copy.
TEST(EmulatedDriver, CopiesFromPageLockedMemoryReadItLate) {
    TestCard card(0);
    int* pinned = nullptr;
    ASSERT_EQ(call("cuMemHostAlloc", reinterpret_cast<void**>(&pinned), size_t{4096}, 1u), 0);
    EXPECT_EQ(pinned[1023], -1);
    const Address to = card.allocate(4096);
    // Written by a copy that the host does not wait for, then read: what the copy brings.
    const Address from = card.allocate(4096);
    EXPECT_EQ(card.launch("fill", 1, 32, from, 1, 7), 0);
    EXPECT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(pinned), from, size_t{4}, card.stream), 0);
    EXPECT_EQ(call("cuMemcpyHtoDAsync_v2", to, static_cast<const void*>(pinned), size_t{4}, card.stream), 0);
    EXPECT_EQ(card.download(to, 1)[0], 7);
    int pageable = 5;
    EXPECT_EQ(call("cuMemcpyHtoDAsync_v2", to, static_cast<const void*>(&pageable), size_t{4}, card.stream), 0);
    pageable = 6;  // allowed
    EXPECT_EQ(card.download(to, 1)[0], 5);
    EXPECT_EQ(call("cuMemFreeHost", static_cast<void*>(pinned)), 0);
    EXPECT_EQ(call("cuMemFreeHost", static_cast<void*>(pinned)), 1);
}

TEST(EmulatedDriver, RegistersMemoryOfTheHost) {
    TestCard card(0);
    std::vector<int> host(1024);
    void* const at = host.data();
    unsigned type = 0;
    const auto type_of = [&](const void* p) {
        return call("cuPointerGetAttribute", static_cast<void*>(&type), 2, reinterpret_cast<Address>(p));
    };
    EXPECT_EQ(type_of(at), 1);
    EXPECT_EQ(call("cuMemHostRegister_v2", at, size_t{4096}, 1u), 0);
    EXPECT_EQ(call("cuMemHostRegister_v2", static_cast<void*>(host.data() + 8), size_t{64}, 1u), 712);
    EXPECT_EQ(type_of(host.data() + 1023), 0);
    EXPECT_EQ(type, 1u);
    EXPECT_EQ(type_of(reinterpret_cast<void*>(card.allocate(4))), 0);
    EXPECT_EQ(type, 2u);
    EXPECT_EQ(call("cuMemHostUnregister", at), 0);
    EXPECT_EQ(call("cuMemHostUnregister", at), 713);
}

TEST(EmulatedDriver, EventsOrderStreams) {
    TestCard card(0);
    void* const other = card.make_stream();
    void *const there = card.make_event(), *const back = card.make_event();
    const Address values = card.allocate(4096);
    const int n = 1024, rounds = 40;
    EXPECT_EQ(card.launch("fill", 4, 256, values, n, 0), 0);
    for (int i = 0; i < rounds; ++i) {
        EXPECT_EQ(call("cuEventRecord", there, card.stream), 0);
        EXPECT_EQ(call("cuStreamWaitEvent", other, there, 0u), 0);
        EXPECT_EQ(card.launch_on(other, "add_one", 4, 256, 0, values, n), 0);
        EXPECT_EQ(call("cuEventRecord", back, other), 0);
        EXPECT_EQ(call("cuStreamWaitEvent", card.stream, back, 0u), 0);
        EXPECT_EQ(card.launch("add_one", 4, 256, values, n), 0);
    }
    EXPECT_THAT(card.download(values, n), Each(2 * rounds));
    EXPECT_EQ(call("cuEventDestroy_v2", there), 0);
    EXPECT_EQ(call("cuEventDestroy_v2", there), 400);
    EXPECT_EQ(call("cuEventDestroy_v2", back), 0);
    EXPECT_EQ(call("cuStreamDestroy_v2", other), 0);
    EXPECT_EQ(call("cuStreamDestroy_v2", other), 400);
}

// Without an event two streams are in no order: some round shows it.
TEST(EmulatedDriver, StreamsWithoutEventsAreInNoOrder) {
    const char* const policy = std::getenv("TESSERA_EMULATED_POLICY");
    if (policy) GTEST_SKIP() << "random orders are not the policy of this run";
    TestCard card(0);
    void *const other = card.make_stream(), *const one = card.make_event(0), *const two = card.make_event(0);
    const Address a = card.allocate(4), b = card.allocate(4);
    int firsts = 0, rounds = 0;
    for (; rounds < 3000 && (firsts == 0 || firsts == rounds); ++rounds) {
        EXPECT_EQ(card.launch("fill", 1, 32, a, 1, 1), 0);
        EXPECT_EQ(call("cuEventRecord", one, card.stream), 0);
        EXPECT_EQ(card.launch_on(other, "fill", 1, 32, 0, b, 1, 2), 0);
        EXPECT_EQ(call("cuEventRecord", two, other), 0);
        EXPECT_EQ(card.synchronize(), 0);
        EXPECT_EQ(call("cuStreamSynchronize", other), 0);
        float milliseconds = 0;
        EXPECT_EQ(call("cuEventElapsedTime", &milliseconds, one, two), 0);
        firsts += milliseconds < 0;
    }
    EXPECT_GT(firsts, 0);
    EXPECT_LT(firsts, rounds);
    EXPECT_EQ(call("cuStreamDestroy_v2", other), 0);
    for (void* event : {one, two}) EXPECT_EQ(call("cuEventDestroy_v2", event), 0);
}

TEST(EmulatedDriver, EventsTellTimeAndState) {
    TestCard card(0);
    void *const begin = card.make_event(0), *const end = card.make_event(0), *const untimed = card.make_event(2);
    float milliseconds = -1;
    EXPECT_EQ(call("cuEventQuery", begin), 0);  // never recorded
    EXPECT_EQ(call("cuEventElapsedTime", &milliseconds, begin, end), 400);
    const Address values = card.allocate(4 << 16);
    EXPECT_EQ(call("cuEventRecord", begin, card.stream), 0);
    EXPECT_EQ(card.launch("fill", 256, 256, values, 1 << 16, 1), 0);
    EXPECT_EQ(call("cuEventRecord", end, card.stream), 0);
    int state = 0;
    do state = call("cuEventQuery", end);
    while (state == 600);
    EXPECT_EQ(state, 0);
    EXPECT_EQ(call("cuEventElapsedTime_v2", &milliseconds, begin, end), 0);
    EXPECT_GT(milliseconds, 0.01f);
    EXPECT_EQ(call("cuEventRecord", untimed, card.stream), 0);
    EXPECT_EQ(call("cuEventSynchronize", untimed), 0);
    EXPECT_EQ(call("cuEventElapsedTime", &milliseconds, begin, untimed), 400);
    for (void* event : {begin, end, untimed}) EXPECT_EQ(call("cuEventDestroy_v2", event), 0);
}

TEST(EmulatedDriver, LaunchesHaveTheLimitsOfTheCard) {
    for (const int number : {0, 1, kHopper}) {
        SCOPED_TRACE(number);
        TestCard card(number, number == kHopper ? 90 : 0);
        const Address out = card.allocate(4096);
        void* const fill = card.function("fill");
        int n = 1, value = 3;
        void* parameters[] = {const_cast<Address*>(&out), &n, &value};
        const auto launch = [&](unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz) {
            return call("cuLaunchKernel", fill, gx, gy, gz, bx, by, bz, 0u, card.stream,
                        static_cast<void**>(parameters), static_cast<void**>(nullptr));
        };
        EXPECT_EQ(launch(1, 1, 1, 32, 1, 1), 0);
        EXPECT_EQ(launch(0, 1, 1, 32, 1, 1), 1);
        EXPECT_EQ(launch(1, 65536, 1, 32, 1, 1), 1);
        EXPECT_EQ(launch(1, 1, 65536, 32, 1, 1), 1);
        EXPECT_EQ(launch(1u << 31, 1, 1, 32, 1, 1), 1);
        EXPECT_EQ(launch(1, 1, 1, 1025, 1, 1), 1);
        EXPECT_EQ(launch(1, 1, 1, 1, 1, 65), 1);
        EXPECT_EQ(launch(1, 1, 1, 64, 32, 1), 1);
        EXPECT_EQ(launch(1, 1, 1, 257, 1, 1), 701);                  // its launch bounds
        EXPECT_EQ(card.launch("at_offset", 1, 512, out, 0ll), 701);  // 255 registers each
        EXPECT_EQ(card.launch("at_offset", 1, 256, out, 0ll), 0);

        const unsigned limit = number == 0 ? 99 << 10 : number == 1 ? 48 << 10 : 227 << 10;
        void* const use_shared = card.function("use_shared");
        const auto use = [&](unsigned bytes) {
            return card.launch_on(card.stream, "use_shared", 1, 32, bytes, out, static_cast<int>(bytes));
        };
        EXPECT_EQ(use(48 << 10), 0);
        EXPECT_EQ(use((48 << 10) + 1), 1);
        EXPECT_EQ(call("cuFuncSetAttribute", use_shared, 8, static_cast<int>(limit) + 1), 1);
        EXPECT_EQ(call("cuFuncSetAttribute", use_shared, 8, static_cast<int>(limit)), 0);
        EXPECT_EQ(use(limit), 0);
        EXPECT_EQ(use(limit + 1), 1);
        EXPECT_EQ(card.download(out, 1)[0], static_cast<unsigned char>(limit - 1));

        // What a kernel has of its own counts.
        void* const scale = card.function("scale");
        EXPECT_EQ(call("cuFuncSetAttribute", scale, 8, static_cast<int>(limit) - 511), 1);
        EXPECT_EQ(call("cuFuncSetAttribute", scale, 8, static_cast<int>(limit) - 512), 0);

        int blocks = 0;
        EXPECT_EQ(call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &blocks, fill, 256, size_t{0}), 0);
        EXPECT_EQ(blocks, number == 0 ? 6 : 8);
        EXPECT_EQ(call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &blocks, use_shared, 32, size_t{20} << 10), 0);
        EXPECT_EQ(blocks, number == 0 ? 4 : number == 1 ? 4 : 10);
        int registers = 0;
        EXPECT_EQ(call("cuFuncGetAttribute", &registers, 4, card.function("at_offset")), 0);
        EXPECT_EQ(registers, 255);
    }
}

TEST(EmulatedDriver, LaunchesMayOverlapOnCardsThatCan) {
    for (const int number : {1, kHopper}) {
        SCOPED_TRACE(number);
        TestCard card(number, number == kHopper ? 90 : 0);
        const Address out = card.allocate(128);
        int n = 32, value = 3;
        void* parameters[] = {const_cast<Address*>(&out), &n, &value};
        struct Attribute {
            int id, padding, value[16];
        } attributes[] = {{0, 0, {}}, {6, 0, {1}}};
        struct {
            unsigned grid[3], block[3], shared;
            void* stream;
            const Attribute* attributes;
            unsigned count;
        } config{{1, 1, 1}, {32, 1, 1}, 0, card.stream, attributes, 2};
        const auto launch = [&] {
            return call("cuLaunchKernelEx", static_cast<const void*>(&config), card.function("fill"),
                        static_cast<void**>(parameters), static_cast<void**>(nullptr));
        };
        EXPECT_EQ(launch(), number == kHopper ? 0 : 1);
        attributes[1].value[0] = 0;
        EXPECT_EQ(launch(), 0);
        EXPECT_THAT(card.download(out, 32), Each(3));
        attributes[1].id = 2;  // cooperative
        EXPECT_EQ(launch(), 801);
        config.attributes = nullptr;
        EXPECT_EQ(launch(), 1);
    }
}

TEST(EmulatedDriver, ModulesFitTheCard) {
    TestCard card(0);
    void* module = nullptr;
    const auto load = [&](const std::vector<char>& image) {
        return call("cuModuleLoadData", &module, static_cast<const void*>(image.data()));
    };
    EXPECT_EQ(load(make_emulation_image(61, "test__driver", 610, test_kernels())), 209);
    EXPECT_THAT(report(), HasSubstr("a cubin for 6.1 on a card of 8.6"));
    EXPECT_EQ(load(make_emulation_image(89, "test__driver", 800, test_kernels())), 209);
    EXPECT_EQ(load(make_emulation_image(90, "test__driver", 800, test_kernels())), 209);
    EXPECT_EQ(load(make_emulation_image(80, "test__driver", 800, test_kernels())), 0);
    EXPECT_EQ(call("cuModuleUnload", module), 0);
    EXPECT_EQ(call("cuModuleUnload", module), 400);
    EXPECT_EQ(load(make_emulation_image(86, "test__missing", 800, test_kernels())), 303);
    EXPECT_THAT(report(), AllOf(HasSubstr("test__missing.80.emulated.so"), HasSubstr(TSR_EMULATED_DIR)));
    EXPECT_EQ(load(std::vector<char>(200, 'x')), 200);
    void* function = nullptr;
    EXPECT_EQ(call("cuModuleGetFunction", &function, card.module, "nothing"), 500);

    // The same kernel with other parameters on the other side.
    EXPECT_EQ(load(make_emulation_image(86, "test__driver", 800, {{"fill", {8, 8, 4}}, {"gone", {8}}})), 0);
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "fill"), 200);
    EXPECT_THAT(report(), HasSubstr("the parameters of fill differ"));
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "gone"), 500);
    EXPECT_EQ(call("cuModuleUnload", module), 0);
}

TEST(EmulatedDriver, FunctionsBelongToTheirCard) {
    TestCard first(0), second(2);
    const Address out = second.allocate(64);
    int n = 1, value = 3;
    void* parameters[] = {const_cast<Address*>(&out), &n, &value};
    EXPECT_EQ(call("cuLaunchKernel", first.function("fill"), 1u, 1u, 1u, 32u, 1u, 1u, 0u, second.stream,
                   static_cast<void**>(parameters), static_cast<void**>(nullptr)),
              400);
    EXPECT_EQ(call("cuMemsetD8Async", out, static_cast<unsigned char>(1), size_t{64}, first.stream), 1);
    EXPECT_EQ(call("cuLaunchKernel", second.function("fill"), 1u, 1u, 1u, 32u, 1u, 1u, 0u, static_cast<void*>(nullptr),
                   static_cast<void**>(parameters), static_cast<void**>(nullptr)),
              400);
}

TEST(EmulatedDriver, PeersCopyAndReachEachOther) {
    TestCard first(0), second(2);
    int can = -1;
    EXPECT_EQ(call("cuDeviceCanAccessPeer", &can, 0, 2), 0);
    EXPECT_EQ(can, 1);
    EXPECT_EQ(call("cuDeviceCanAccessPeer", &can, 0, 1), 0);
    EXPECT_EQ(can, 0);
    const Address from = second.allocate(4096), to = first.allocate(4096);
    EXPECT_EQ(second.launch("fill", 4, 256, from, 1024, 9), 0);
    EXPECT_EQ(second.synchronize(), 0);
    EXPECT_EQ(call("cuMemcpyPeerAsync", to, first.context, from, second.context, size_t{4096}, first.stream), 0);
    EXPECT_THAT(first.download(to, 1024), Each(9));
    EXPECT_EQ(call("cuCtxPushCurrent_v2", first.context), 0);
    EXPECT_EQ(call("cuMemcpyDtoDAsync_v2", to, from, size_t{4096}, first.stream), 1);
    const int enabled = call("cuCtxEnablePeerAccess", second.context, 0u);
    EXPECT_EQ(enabled, 0);
    EXPECT_EQ(call("cuCtxEnablePeerAccess", second.context, 0u), 704);
    EXPECT_EQ(call("cuMemcpyDtoDAsync_v2", to, from, size_t{4096}, first.stream), 0);
    EXPECT_EQ(first.launch("add_one", 4, 256, from, 1024), 0);  // writes to the other card
    EXPECT_EQ(first.synchronize(), 0);
    EXPECT_THAT(second.download(from, 1024), Each(10));
    const TestCard pascal(1);
    EXPECT_EQ(call("cuCtxEnablePeerAccess", first.context, 0u), 217);
    void* popped = nullptr;
    EXPECT_EQ(call("cuCtxPopCurrent_v2", &popped), 0);
}

// ---- faults: each on a card of its own, which is of no use after it ----

TEST(EmulatedDriver, AnIllegalAddressEndsTheCard) {
    TestCard card(4);
    const Address out = card.allocate(256);
    EXPECT_EQ(card.launch("at_offset", 1, 32, out, 256ll), 0);
    EXPECT_EQ(card.synchronize(), 700);
    EXPECT_THAT(report(),
                AllOf(HasSubstr("card 4 (NVIDIA GeForce RTX 3090): kernel at_offset, block (0,0,0), thread (0,0,0)"),
                      HasSubstr("write of 4 bytes out of bounds"), HasSubstr("0 bytes after the end of allocation"),
                      HasSubstr("(256 bytes on card 4)")));
    const char *text = nullptr, *name = nullptr;
    EXPECT_EQ(call("cuGetErrorString", 700, &text), 0);
    EXPECT_THAT(text, AllOf(HasSubstr("an illegal memory access was encountered"), HasSubstr("kernel at_offset")));
    EXPECT_EQ(call("cuGetErrorName", 700, &name), 0);
    EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_EQ(call("cuGetErrorName", 12345, &name), 1);
    // All later calls fail alike, and waits end.
    Address more = 0;
    size_t free_bytes = 0, total = 0;
    EXPECT_EQ(call("cuMemAlloc_v2", &more, size_t{16}), 700);
    EXPECT_EQ(call("cuMemGetInfo_v2", &free_bytes, &total), 700);
    EXPECT_EQ(card.launch("fill", 1, 32, out, 1, 1), 700);
    EXPECT_EQ(card.synchronize(), 700);
    // Other cards go on.
    TestCard other(0);
    const Address there = other.allocate(64);
    EXPECT_EQ(other.launch("fill", 1, 32, there, 16, 5), 0);
    EXPECT_THAT(other.download(there, 16), Each(5));
}

TEST(EmulatedDriver, ALaunchThatNeverEndsIsEnded) {
    TestCard card(20);
    const Address flag = card.allocate(4);
    EXPECT_EQ(call("cuMemsetD8Async", flag, static_cast<unsigned char>(0), size_t{4}, card.stream), 0);
    EXPECT_EQ(card.launch("wait_for_flag", 1, 32, flag), 0);
    EXPECT_EQ(card.synchronize(), 702);
    EXPECT_THAT(report(), AllOf(HasSubstr("kernel wait_for_flag"), HasSubstr("1000001 accesses")));
}

TEST(EmulatedDriver, OtherFaultsHaveTheirErrors) {
    TestCard misaligned(6);
    const Address out = misaligned.allocate(256);
    EXPECT_EQ(misaligned.launch("at_offset", 1, 32, out, 2ll), 0);
    EXPECT_EQ(misaligned.synchronize(), 716);
    TestCard racing(8);
    const Address place = racing.allocate(256);
    EXPECT_EQ(racing.launch("race", 1, 64, place), 0);
    EXPECT_EQ(racing.synchronize(), 719);
    EXPECT_THAT(report(), HasSubstr("kernel race"));
    TestCard unwritten(10);
    const Address never = unwritten.allocate(256);
    EXPECT_EQ(unwritten.launch("add_one", 1, 32, never, 1), 0);
    EXPECT_EQ(unwritten.synchronize(), 719);
    EXPECT_THAT(report(), HasSubstr("memory that nobody has written"));
}

TEST(EmulatedDriver, MemoryOfAPeerNeedsAccess) {
    TestCard owner(0), card(12);
    const Address there = owner.allocate(256);
    EXPECT_EQ(card.launch("at_offset", 1, 32, there, 0ll), 0);
    EXPECT_EQ(card.synchronize(), 700);
    EXPECT_THAT(report(), HasSubstr("access to which has not been enabled"));
}

TEST(EmulatedDriver, ReleasedMemoryIsNoMoreThere) {
    TestCard card(14);
    Address address = 0;
    EXPECT_EQ(call("cuMemAlloc_v2", &address, size_t{256}), 0);
    EXPECT_EQ(call("cuMemFree_v2", address), 0);
    EXPECT_EQ(card.launch("at_offset", 1, 32, address, 0ll), 0);
    EXPECT_EQ(card.synchronize(), 700);
}

TEST(EmulatedDriver, ALostCardLeavesOthersWhole) {
    TestCard lost(16), other(0);
    const Address values = other.allocate(64);
    void* const event = other.make_event();
    EXPECT_EQ(call("tesseraEmulatedLoseCard", 16), 0);
    EXPECT_EQ(lost.synchronize(), 999);
    void* context = nullptr;
    EXPECT_EQ(call("cuDevicePrimaryCtxRetain", &context, 16), 46);
    EXPECT_EQ(other.launch("fill", 1, 32, values, 16, 7), 0);
    EXPECT_EQ(call("cuEventRecord", event, other.stream), 0);
    EXPECT_EQ(call("cuEventSynchronize", event), 0);
    EXPECT_EQ(call("cuEventDestroy_v2", event), 0);
}

// Many threads, each with streams of its own, on two cards.
TEST(EmulatedDriver, AnyThread) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t, &wrong] {
            TestCard card(t % 2);
            const int n = 512;
            for (int round = 0; round < 10; ++round) {
                const Address values = card.allocate(n * 4);
                wrong += card.launch("fill", 2, 256, values, n, t * 100 + round) != 0;
                for (int i = 0; i < 5; ++i) wrong += card.launch("add_one", 2, 256, values, n) != 0;
                for (const int v : card.download(values, n)) wrong += v != t * 100 + round + 5;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tessera::cuda::emulated
