// The device of the simulated plugin: what a host can do wrong, and what can go wrong under it.
#include "simulated_gpu.hpp"

#include <gmock/gmock.h>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class Body>
std::string failure(Body&& body, tsr_code code) {
    try {
        body();
    } catch (const sdk::Failure& f) {
        EXPECT_EQ(f.code(), code) << f.what();
        return f.what();
    }
    return "nothing failed";
}

TEST(SimulatedProvider, MatchesWhatItCanBe) {
    const tsr_device_provider& provider = *simulated_plugin().providers[0];
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
}

TEST(SimulatedMemory, CarriesDataThereAndBack) {
    Gpu gpu;
    std::vector<unsigned char> out(1000), back(1000);
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<unsigned char>(i * 7);
    void* a = gpu.upload(out.data(), out.size());
    void* b = gpu.allocate(1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
    sdk::check(gpu.device->copy(gpu.device, gpu.queue, static_cast<char*>(b) + 10, static_cast<char*>(a) + 20, 900));
    gpu.download(back.data(), static_cast<char*>(b) + 10, 900);
    EXPECT_EQ(0, std::memcmp(back.data(), out.data() + 20, 900));
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
    void* most = gpu.allocate((1 << 20) - 256);
    gpu.allocate(1);
    EXPECT_THAT(failure([&] { gpu.allocate(1); }, TSR_DOES_NOT_FIT),
                AllOf(HasSubstr("SIM0"), HasSubstr("1 bytes"), HasSubstr("0 of 1048576 bytes are free")));
    EXPECT_EQ(failures().allocated_bytes("SIM0"), uint64_t{1} << 20);
    gpu.release(most);
    gpu.allocate(512 << 10);
    EXPECT_EQ(failures().allocated_bytes("SIM0"), (uint64_t{512} << 10) + 256);
    EXPECT_EQ(failures().most_allocated_bytes("SIM0"), uint64_t{1} << 20);
}

TEST(SimulatedMemory, HonoursWhatIsFree) {
    tsr_device_info info = device_info(860, 1 << 20);
    info.free_memory_bytes = 4096;
    const tsr_device_provider& provider = *simulated_plugin().providers[0];
    tsr_device* device = nullptr;
    sdk::check(provider.open(&provider, &info, &device));
    void* address = nullptr;
    EXPECT_THAT(message_of(device->allocate(device, 8192, &address)), HasSubstr("4096"));
    device->close(device);
}

TEST(SimulatedMemory, WrongAddressesAreNamed) {
    Gpu gpu;
    char host[64] = {};
    void* here = gpu.allocate(64);
    const auto upload = [&](void* to, const void* from, uint64_t bytes) {
        sdk::check(gpu.device->upload(gpu.device, gpu.queue, to, from, bytes));
    };
    EXPECT_THAT(failure([&] { upload(host, host, 64); }, TSR_INVALID_ARGUMENT), HasSubstr("host pointer"));
    EXPECT_THAT(failure([&] { upload(here, here, 64); }, TSR_INVALID_ARGUMENT), HasSubstr("not of the host"));
    EXPECT_THAT(failure([&] { upload(here, host, 65); }, TSR_INVALID_ARGUMENT), HasSubstr("of which 64 are left"));
    EXPECT_THAT(failure([&] { upload(nullptr, host, 1); }, TSR_INVALID_ARGUMENT), HasSubstr("NULL"));
    gpu.release(here);
    EXPECT_THAT(failure([&] { upload(here, host, 1); }, TSR_INVALID_ARGUMENT), HasSubstr("nothing is allocated"));
    EXPECT_NE(gpu.allocate(64), here) << "addresses are not used twice";
    gpu.device->release(gpu.device, here);
    EXPECT_THAT(failure([&] { gpu.allocate(64); }, TSR_INTERNAL), HasSubstr("release"));

    Gpu other(610, 1 << 20, "SIM1");
    void* there = other.allocate(64);
    EXPECT_THAT(failure([&] { upload(there, host, 64); }, TSR_INVALID_ARGUMENT), HasSubstr("SIM0"));
    EXPECT_THAT(message_of(gpu.device->upload(gpu.device, other.queue, gpu.allocate(1), host, 1)),
                HasSubstr("queue of SIM1"));
}

TEST(SimulatedQueue, WorksWhenWaitedFor) {
    Gpu gpu;
    char value = 1, back = 0;
    void* address = gpu.allocate(1);
    sdk::check(gpu.device->upload(gpu.device, gpu.queue, address, &value, 1));
    sdk::check(gpu.device->download(gpu.device, gpu.queue, &back, address, 1));
    EXPECT_EQ(back, 0) << "nothing has been waited for";
    sdk::check(gpu.device->wait(gpu.device, gpu.queue));
    EXPECT_EQ(back, 1);
    // More than the queue holds at once.
    std::vector<char> many(2000, 3), all(2000, 0);
    void* target = gpu.allocate(2000);
    for (int i = 0; i < 2000; ++i) {
        sdk::check(gpu.device->upload(gpu.device, gpu.queue, static_cast<char*>(target) + i,
                                      &many[static_cast<size_t>(i)], 1));
    }
    gpu.download(all.data(), target, 2000);
    EXPECT_EQ(all, many);
}

TEST(SimulatedFailures, AllocationsCopiesAndTheWholeDevice) {
    Gpu gpu, other(610, 1 << 20, "SIM1");
    failures().refuse_allocations("SIM0", 1);
    gpu.allocate(64);
    EXPECT_THAT(failure([&] { gpu.allocate(64); }, TSR_DOES_NOT_FIT), HasSubstr("refused"));
    EXPECT_THAT(failure([&] { gpu.allocate(64); }, TSR_DOES_NOT_FIT), HasSubstr("refused"));
    other.allocate(64);
    failures().reset("SIM0");
    void* address = gpu.allocate(64);

    char bytes[8] = {};
    failures().fail_copy("SIM0", 1);
    gpu.download(bytes, address, 8);
    EXPECT_THAT(failure([&] { gpu.download(bytes, address, 8); }, TSR_DEVICE_ERROR), HasSubstr("download of 8 bytes"));
    gpu.download(bytes, address, 8);

    failures().vanish("SIM0");
    EXPECT_THAT(failure([&] { gpu.download(bytes, address, 8); }, TSR_DEVICE_ERROR), HasSubstr("vanished"));
    EXPECT_THAT(failure([&] { gpu.allocate(8); }, TSR_DEVICE_ERROR), HasSubstr("vanished"));
    EXPECT_THAT(message_of(gpu.device->wait(gpu.device, gpu.queue)), HasSubstr("vanished"));
    void* queue = nullptr;
    EXPECT_THAT(message_of(gpu.device->create_queue(gpu.device, &queue)), HasSubstr("vanished"));
    other.allocate(8);
}

}  // namespace
}  // namespace tessera::test
