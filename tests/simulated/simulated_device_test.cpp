// The device of the simulated plugin: its memory, the host's memory, and what a host can do wrong with either.
#include "simulated_gpu.hpp"

#include <gmock/gmock.h>

#include <cstdlib>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(SimulatedProvider, MatchesWhatItCanBe) {
    const tsr_device_provider& provider = *simulated_plugin().providers[0];
    EXPECT_EQ(provider.device_abi, uint32_t{TSR_DEVICE_ABI});
    EXPECT_STREQ(provider.interop, TSR_SIMULATED_INTEROP);
    char reason[256] = "";
    for (const uint32_t capability : {600u, 610u, 750u, 800u, 860u, 1200u}) {
        const tsr_device_info info = device_info(capability);
        EXPECT_EQ(provider.match(&provider, &info, reason, sizeof reason), 1u) << capability;
    }
    tsr_device_info old = device_info(520);
    EXPECT_EQ(provider.match(&provider, &old, reason, sizeof reason), 0u);
    EXPECT_THAT(reason, AllOf(HasSubstr("6.0"), HasSubstr("5.2")));
    tsr_device* device = nullptr;
    EXPECT_THAT(message_of(provider.open(&provider, &old, &device)), HasSubstr("5.2"));
    tsr_device_info other = device_info();
    other.kind = "cuda";
    EXPECT_EQ(provider.match(&provider, &other, reason, sizeof reason), 0u);
    EXPECT_THAT(reason, HasSubstr("cuda"));
    tsr_device_info crooked = device_info();
    crooked.allocation_alignment = 384;
    EXPECT_EQ(provider.match(&provider, &crooked, reason, sizeof reason), 0u);
    EXPECT_THAT(reason, HasSubstr("384"));
}

TEST(SimulatedProvider, TheTableSaysWhatIsThere) {
    for (const uint32_t without : {0u, 0x7Fu}) {
        Gpu gpu(options(TSR_SIMULATED_RANDOM, 1, without & ~uint32_t{TSR_SIMULATED_NO_PINNED}));
        const tsr_device& d = *gpu.device;
        EXPECT_EQ(d.struct_size, sizeof d);
        EXPECT_EQ(d.info, &gpu.info);
        EXPECT_STREQ(d.interop, TSR_SIMULATED_INTEROP);
        const bool has = without == 0;
        EXPECT_EQ(d.memory_info != nullptr, has);
        EXPECT_EQ(d.register_host != nullptr, has);
        EXPECT_EQ(d.unregister_host != nullptr, has);
        EXPECT_EQ(d.event_seconds != nullptr, has);
        EXPECT_EQ(d.can_reach_peer != nullptr, has);
        EXPECT_EQ(d.copy_from_peer != nullptr, has);
        EXPECT_EQ(d.begin_recording != nullptr, has);
        EXPECT_EQ(d.end_recording != nullptr, has);
        EXPECT_EQ(d.destroy_recording != nullptr, has);
        EXPECT_EQ(d.replay != nullptr, has);
    }
    Gpu gpu(options(TSR_SIMULATED_RANDOM, 1, TSR_SIMULATED_NO_PINNED));
    EXPECT_EQ(gpu.device->allocate_pinned, nullptr);
    EXPECT_EQ(gpu.device->release_pinned, nullptr);
    const tsr_event event = gpu.create_event();
    for (int i = 0; i < 2; ++i) {
        EXPECT_NE(gpu.device->native_context(gpu.device), nullptr);
        EXPECT_EQ(gpu.device->native_queue(gpu.device, gpu.queue), gpu.queue);
        EXPECT_EQ(gpu.device->native_event(gpu.device, event), event);
    }
}

TEST(SimulatedProvider, MalformedOptionsAreRefused) {
    const tsr_simulated_options wrong = options(99);
    EXPECT_EQ(failures().configure("SIM7", &wrong), 0u);
    tsr_simulated_options unknown = options(TSR_SIMULATED_RANDOM);
    unknown.lacks = "matmul,q9";
    EXPECT_EQ(failures().configure("SIM7", &unknown), 0u);
}

TEST(SimulatedMemory, CarriesDataThereAndBack) {
    Gpu gpu;
    std::vector<unsigned char> out(1000), back(1000);
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<unsigned char>(i * 7);
    void* a = gpu.upload(out.data(), out.size());
    void* b = gpu.allocate(1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
    gpu.put_copy(static_cast<char*>(b) + 10, static_cast<char*>(a) + 20, 900);
    gpu.download(back.data(), static_cast<char*>(b) + 10, 900);
    EXPECT_EQ(0, std::memcmp(back.data(), out.data() + 20, 900));
    EXPECT_EQ(failures().bytes("SIM0", TSR_SIMULATED_UPLOAD), 1000u);
    EXPECT_EQ(failures().bytes("SIM0", TSR_SIMULATED_COPY), 900u);
    EXPECT_EQ(failures().bytes("SIM0", TSR_SIMULATED_DOWNLOAD), 900u);
    EXPECT_THAT(failure([&] { gpu.put_copy(static_cast<char*>(a) + 10, a, 11); }, TSR_INVALID_ARGUMENT),
                HasSubstr("overlap"));
}

TEST(SimulatedMemory, IsPoisonedWhenFresh) {
    Gpu gpu;
    float values[64] = {};
    gpu.download(values, gpu.allocate(sizeof values), sizeof values);
    for (const float v : values) EXPECT_TRUE(std::isnan(v));
}

TEST(SimulatedMemory, TheHostCannotReadIt) {
    Gpu gpu;
    const auto* address = static_cast<volatile unsigned char*>(gpu.allocate(4096));
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH(static_cast<void>(*address), "");
}

TEST(SimulatedMemory, HasALimit) {
    Gpu gpu(860, 1 << 20);
    void* large = gpu.allocate((1 << 20) - 256);
    gpu.allocate(1);
    EXPECT_THAT(failure([&] { gpu.allocate(1); }, TSR_DOES_NOT_FIT),
                AllOf(HasSubstr("SIM0"), HasSubstr("1 bytes"), HasSubstr("0 of 1048576 bytes are free")));
    EXPECT_EQ(failures().allocated_bytes("SIM0"), uint64_t{1} << 20);
    gpu.release(large);
    gpu.allocate(512 << 10);
    EXPECT_EQ(failures().allocated_bytes("SIM0"), (uint64_t{512} << 10) + 256);
    EXPECT_EQ(failures().maximum_allocated_bytes("SIM0"), uint64_t{1} << 20);
    uint64_t free_bytes = 0, total = 0;
    sdk::check(gpu.device->memory_info(gpu.device, &free_bytes, &total));
    EXPECT_EQ(free_bytes, (uint64_t{512} << 10) - 256);
    EXPECT_EQ(total, uint64_t{1} << 20);
}

TEST(SimulatedMemory, HonoursWhatTheDeviceSays) {
    tsr_device_info info = device_info(860, 64 << 20);
    info.free_memory_bytes = 8 << 20;
    info.allocation_alignment = 2 << 20;
    info.largest_allocation_bytes = 4 << 20;
    Gpu gpu(info, options(TSR_SIMULATED_RANDOM));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(reinterpret_cast<uintptr_t>(gpu.allocate(1)) % (2 << 20), 0u);
    EXPECT_THAT(failure([&] { gpu.allocate((4 << 20) + 1); }, TSR_DOES_NOT_FIT), HasSubstr("4194304 at once"));
    EXPECT_THAT(failure([&] { gpu.allocate(3 << 20); }, TSR_DOES_NOT_FIT), HasSubstr("2097152 of 8388608"));
    gpu.allocate(2 << 20);
}

TEST(SimulatedMemory, WrongAddressesAreNamed) {
    Gpu gpu;
    char host[64] = {};
    void* here = gpu.allocate(64);
    const auto upload = [&](void* to, const void* from, uint64_t bytes) { gpu.put_upload(to, from, bytes); };
    EXPECT_THAT(failure([&] { upload(host, host, 64); }, TSR_INVALID_ARGUMENT), HasSubstr("host pointer"));
    EXPECT_THAT(failure([&] { upload(here, here, 64); }, TSR_INVALID_ARGUMENT), HasSubstr("not of the host"));
    EXPECT_THAT(failure([&] { upload(here, host, 65); }, TSR_INVALID_ARGUMENT), HasSubstr("of which 64 are left"));
    EXPECT_THAT(failure([&] { upload(nullptr, host, 1); }, TSR_INVALID_ARGUMENT), HasSubstr("NULL"));
    gpu.release(here);
    EXPECT_THAT(failure([&] { upload(here, host, 1); }, TSR_INVALID_ARGUMENT), HasSubstr("nothing is allocated"));
    EXPECT_NE(gpu.allocate(64), here) << "addresses are not used twice";
    gpu.device->release(gpu.device, here);
    EXPECT_THAT(failure([&] { gpu.allocate(64); }, TSR_INTERNAL), HasSubstr("release"));
    gpu.allocate(64);

    Gpu other(610, 1 << 20, "SIM1");
    void* there = other.allocate(64);
    EXPECT_THAT(failure([&] { upload(there, host, 64); }, TSR_INVALID_ARGUMENT), HasSubstr("SIM0"));
    EXPECT_THAT(failure([&] { upload(gpu.allocate(64), there, 64); }, TSR_INVALID_ARGUMENT), HasSubstr("SIM1"));
}

TEST(SimulatedMemory, WhatQueuedWorkUsesIsNotReleased) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    char byte = 0;
    void* here = gpu.allocate(64);
    gpu.put_upload(here, &byte, 1);
    gpu.release(here);
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_INTERNAL),
                AllOf(HasSubstr("an allocation of 64 bytes"), HasSubstr("queued work")));
    // The copy itself was not done either; the failed wait has drained the queue.
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_INVALID_ARGUMENT), HasSubstr("was released"));
    gpu.wait();
}

TEST(SimulatedPeers, CopyWhereTheyReachEachOther) {
    Gpu a, b(options(TSR_SIMULATED_RANDOM, 2), "SIM1");
    const int value = 77;
    int back = 0;
    void *here = a.upload(&value, 4), *there = b.allocate(4);
    EXPECT_EQ(b.device->can_reach_peer(b.device, a.device), 1u);
    sdk::check(b.device->copy_from_peer(b.device, b.queue, there, a.device, here, 4));
    b.download(&back, there, 4);
    EXPECT_EQ(back, 77);
    EXPECT_EQ(failures().bytes("SIM1", TSR_SIMULATED_COPY_FROM_PEER), 4u);
    EXPECT_THAT(message_of(b.device->copy_from_peer(b.device, b.queue, there, a.device, there, 4)),
                AllOf(HasSubstr("SIM0"), HasSubstr("copy_from_peer, source")));

    for (const uint32_t without : {TSR_SIMULATED_UNREACHABLE, TSR_SIMULATED_NO_PEERS}) {
        Gpu apart(options(TSR_SIMULATED_RANDOM, 3, without), "SIM2");
        EXPECT_EQ(b.device->can_reach_peer(b.device, apart.device), 0u);
        EXPECT_THAT(message_of(b.device->copy_from_peer(b.device, b.queue, there, apart.device, apart.allocate(4), 4)),
                    HasSubstr("cannot be reached"));
    }
}

TEST(SimulatedHostMemory, IsPoisonedWhenFresh) {
    Gpu gpu;
    const auto* memory = gpu.pinned<unsigned char>(100);
    EXPECT_EQ(std::count(memory, memory + 100, 0xFF), 100);
}

TEST(SimulatedHostMemory, RegistrationIsOfWholePagesOnce) {
    Gpu gpu, other(options(TSR_SIMULATED_RANDOM), "SIM1");
    std::unique_ptr<void, decltype(&std::free)> owned(std::aligned_alloc(4096, 1 << 16), std::free);
    auto* memory = static_cast<char*>(owned.get());
    const auto add = [](Gpu& g, void* at, uint64_t bytes) {
        return message_of(g.device->register_host(g.device, at, bytes));
    };
    EXPECT_THAT(add(gpu, memory + 64, 4096), HasSubstr("4096"));
    EXPECT_THAT(add(gpu, memory, 100), HasSubstr("4096"));
    EXPECT_THAT(add(gpu, memory, 0), HasSubstr("4096"));
    EXPECT_EQ(add(gpu, memory + 8192, 8192), "");
    EXPECT_THAT(add(gpu, memory + 4096, 8192), HasSubstr("part of it is"));
    EXPECT_THAT(add(other, memory + 12288, 4096), HasSubstr("part of it is"));
    EXPECT_EQ(add(other, memory, 8192), "");
    EXPECT_EQ(add(other, memory + 16384, 4096), "");
    other.device->unregister_host(other.device, memory + 8192);
    EXPECT_THAT(failure([&] { other.wait(); }, TSR_INTERNAL), HasSubstr("nothing is registered"));
    gpu.device->release_pinned(gpu.device, memory + 8192);
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_INTERNAL), HasSubstr("nothing is allocated"));
    gpu.device->unregister_host(gpu.device, memory + 8192);
    EXPECT_EQ(add(gpu, memory + 8192, 4096), "");
    // Closing takes the rest back.
}

TEST(SimulatedHostMemory, IsNotReleasedUnderACopy) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    void* memory = nullptr;
    sdk::check(gpu.device->allocate_pinned(gpu.device, 64, &memory));
    gpu.put_upload(gpu.allocate(64), memory, 64);
    gpu.device->release_pinned(gpu.device, memory);
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_INTERNAL), HasSubstr("a copy under way"));
    gpu.wait();
}

}  // namespace
}  // namespace tessera::test
