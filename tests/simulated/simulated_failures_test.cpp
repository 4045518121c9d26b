// Failures on purpose: each operation, work that fails late, and a device that vanishes.
#include "simulated_gpu.hpp"

#include <gmock/gmock.h>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// One call of each operation that a host makes.
struct Operation {
    tsr_simulated_operation operation;
    const char* name;
    std::function<void(Gpu&)> call;
};

struct Parts {
    explicit Parts(Gpu& gpu) : memory(static_cast<char*>(gpu.allocate(64))), host(gpu.pinned<char>(64)) {
        event = gpu.create_event(true);
        gpu.record(event);
        gpu.wait();
    }
    char* memory;
    char* host;
    tsr_event event;
};

std::vector<Operation> operations(const Parts& parts, Gpu& peer) {
    return {
        {TSR_SIMULATED_ALLOCATE, "allocate", [](Gpu& g) { g.allocate(8); }},
        {TSR_SIMULATED_ALLOCATE_PINNED, "allocate_pinned", [](Gpu& g) { g.pinned<char>(8); }},
        {TSR_SIMULATED_REGISTER_HOST, "register_host",
         [](Gpu& g) {
             alignas(4096) static char page[4096];
             sdk::check(g.device->register_host(g.device, page, sizeof page));
             g.device->unregister_host(g.device, page);
         }},
        {TSR_SIMULATED_CREATE_QUEUE, "create_queue", [](Gpu& g) { g.create_queue(); }},
        {TSR_SIMULATED_CREATE_EVENT, "create_event", [](Gpu& g) { g.create_event(); }},
        {TSR_SIMULATED_WAIT_QUEUE, "wait_queue", [](Gpu& g) { g.wait(); }},
        {TSR_SIMULATED_RECORD_EVENT, "record_event", [&](Gpu& g) { g.record(parts.event); }},
        {TSR_SIMULATED_QUEUE_WAIT_EVENT, "queue_wait_event", [&](Gpu& g) { g.queue_wait(parts.event); }},
        {TSR_SIMULATED_QUERY_EVENT, "query_event", [&](Gpu& g) { g.complete(parts.event); }},
        {TSR_SIMULATED_WAIT_EVENT, "wait_event", [&](Gpu& g) { g.wait_event(parts.event); }},
        {TSR_SIMULATED_EVENT_SECONDS, "event_seconds",
         [&](Gpu& g) {
             double seconds = 0;
             sdk::check(g.device->event_seconds(g.device, parts.event, parts.event, &seconds));
         }},
        {TSR_SIMULATED_UPLOAD, "upload", [&](Gpu& g) { g.put_upload(parts.memory, parts.host, 8); }},
        {TSR_SIMULATED_DOWNLOAD, "download", [&](Gpu& g) { g.put_download(parts.host, parts.memory, 8); }},
        {TSR_SIMULATED_COPY, "copy", [&](Gpu& g) { g.put_copy(parts.memory, parts.memory + 32, 8); }},
        {TSR_SIMULATED_COPY_FROM_PEER, "copy_from_peer",
         [&](Gpu& g) {
             sdk::check(g.device->copy_from_peer(g.device, g.queue, parts.memory, peer.device, peer.allocate(8), 8));
         }},
        {TSR_SIMULATED_BEGIN_RECORDING, "begin_recording",
         [](Gpu& g) {
             g.begin_recording();
             sdk::check(g.device->end_recording(g.device, g.queue, nullptr));
         }},
        {TSR_SIMULATED_END_RECORDING, "end_recording",
         [](Gpu& g) {
             g.begin_recording();
             try {
                 g.end_recording();
             } catch (...) {
                 sdk::check(g.device->end_recording(g.device, g.queue, nullptr));
                 throw;
             }
         }},
        {TSR_SIMULATED_REPLAY, "replay",
         [](Gpu& g) {
             g.begin_recording();
             g.replay(g.end_recording());
         }},
        {TSR_SIMULATED_MEMORY_INFO, "memory_info",
         [](Gpu& g) {
             uint64_t a = 0, b = 0;
             sdk::check(g.device->memory_info(g.device, &a, &b));
         }},
    };
}

TEST(SimulatedFailures, EveryOperationFailsWhereItIsAskedTo) {
    Gpu peer(options(TSR_SIMULATED_RANDOM), "SIM1");
    Gpu gpu;
    const Parts parts(gpu);
    for (const Operation& o : operations(parts, peer)) {
        SCOPED_TRACE(o.name);
        const uint64_t before = failures().count("SIM0", o.operation, nullptr);
        failures().fail("SIM0", o.operation, nullptr, 1, 2);
        o.call(gpu);
        const tsr_code code =
            o.operation <= TSR_SIMULATED_REGISTER_HOST ? tsr_code{TSR_DOES_NOT_FIT} : tsr_code{TSR_DEVICE_ERROR};
        for (int i = 0; i < 2; ++i) {
            EXPECT_THAT(failure([&] { o.call(gpu); }, code), AllOf(HasSubstr("SIM0"), HasSubstr(o.name)));
        }
        o.call(gpu);
        EXPECT_EQ(failures().count("SIM0", o.operation, nullptr), before + 2);
        gpu.wait();
    }
    failures().fail("SIM0", TSR_SIMULATED_ALLOCATE, nullptr, 0, TSR_SIMULATED_ALWAYS);
    for (int i = 0; i < 5; ++i) EXPECT_THAT(failure([&] { gpu.allocate(1); }, TSR_DOES_NOT_FIT), HasSubstr("allocate"));
    peer.allocate(1);
}

TEST(SimulatedFailures, AVanishedDeviceFailsInEveryCallForGood) {
    for (const tsr_simulated_policy policy : {TSR_SIMULATED_RANDOM, TSR_SIMULATED_ON_WAIT}) {
        Gpu peer(options(policy), "SIM1");
        Gpu gpu{options(policy)};
        const Parts parts(gpu);
        const auto all = operations(parts, peer);
        // Work is under way, here and on a device that waits for it.
        char byte = 0;
        gpu.put_upload(parts.memory, &byte, 1);
        gpu.record(parts.event);
        peer.queue_wait(gpu, parts.event);
        failures().vanish("SIM0", 0);
        for (int i = 0; i < 2; ++i) {
            for (const Operation& o : all) {
                SCOPED_TRACE(o.name);
                EXPECT_THAT(failure([&] { o.call(gpu); }, TSR_DEVICE_LOST), HasSubstr("vanished"));
            }
        }
        peer.wait();
        tsr_device* again = nullptr;
        const tsr_device_provider& provider = *simulated_plugin().providers[0];
        tsr_code code = TSR_OK;
        EXPECT_THAT(message_of(provider.open(&provider, &gpu.info, &again), &code), HasSubstr("vanished"));
        EXPECT_EQ(code, uint32_t{TSR_DEVICE_LOST});
    }
}

TEST(SimulatedFailures, ADeviceVanishesInTheMiddleOfItsWork) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    auto* host = gpu.pinned<char>(1);
    void* memory = gpu.allocate(1);
    // Twelve copies are put and the wait is the thirteenth operation; then the device does four of them.
    failures().vanish("SIM0", 12 + 1 + 4);
    for (int i = 0; i < 12; ++i) gpu.put_upload(memory, host, 1);
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_DEVICE_LOST), HasSubstr("vanished"));
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_COPY, nullptr), 4u);
}

TEST(SimulatedFailures, LateFailuresAreToldByWaits) {
    for (const tsr_simulated_policy policy : {TSR_SIMULATED_RANDOM, TSR_SIMULATED_AT_ONCE, TSR_SIMULATED_ON_WAIT}) {
        Gpu gpu{options(policy)};
        const tsr_queue other = gpu.create_queue();
        const tsr_event event = gpu.create_event(), second = gpu.create_event();
        auto* host = gpu.pinned<int>(3);
        host[0] = 1, host[1] = 2;
        void* memory = gpu.allocate(4);
        failures().fail("SIM0", TSR_SIMULATED_EXECUTE_COPY, nullptr, 1, 1);
        gpu.put_upload(memory, &host[0], 4);
        gpu.put_upload(memory, &host[1], 4);  // fails
        gpu.put_upload(memory, &host[1], 4);  // dropped
        gpu.record(event);
        gpu.queue_wait(event, other);
        gpu.record(second, other);
        // An event reports a failure before it, also of another queue, each time it is waited for.
        for (int i = 0; i < 2; ++i) {
            EXPECT_THAT(failure([&] { gpu.wait_event(event); }, TSR_DEVICE_ERROR), HasSubstr("4 bytes"));
            EXPECT_THAT(failure([&] { gpu.wait_event(second); }, TSR_DEVICE_ERROR), HasSubstr("4 bytes"));
        }
        EXPECT_TRUE(gpu.complete(event));
        gpu.wait(other);
        EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_DEVICE_ERROR), HasSubstr("4 bytes"));
        // The queue reports it once, and works again; events no longer report it.
        gpu.wait();
        gpu.wait_event(event);
        gpu.wait_event(second);
        gpu.put_download(&host[2], memory, 4);
        gpu.record(event);
        gpu.wait_event(event);
        EXPECT_EQ(host[2], 1);
        gpu.record(second, other);
        gpu.wait_event(second);
    }
}

TEST(SimulatedFailures, KernelsFailByOpEarlyAndLate) {
    Gpu gpu;
    TestNode node("get_rows", {floats({1, 1}, {1}), integers({1}, {0})}, {make_tensor(TSR_TYPE_F32, {1, 1})});
    failures().fail("SIM0", TSR_SIMULATED_ENQUEUE, "matmul", 0, 1);
    gpu.compute(node, Ranges::of(1));
    failures().fail("SIM0", TSR_SIMULATED_ENQUEUE, "get_rows", 1, 1);
    gpu.compute(node, Ranges::of(1));
    EXPECT_THAT(failure([&] { gpu.compute(node, Ranges::of(1)); }, TSR_DEVICE_ERROR), HasSubstr("enqueue of get_rows"));
    gpu.compute(node, Ranges::of(1));
    failures().fail("SIM0", TSR_SIMULATED_EXECUTE_KERNEL, "get_rows", 0, 1);
    EXPECT_THAT(failure([&] { gpu.compute(node, Ranges::of(1)); }, TSR_DEVICE_ERROR),
                HasSubstr("computing of get_rows test"));
    gpu.compute(node, Ranges::of(1));
    failures().fail("SIM0", TSR_SIMULATED_PREPARE, nullptr, 0, 1);
    EXPECT_THAT(failure([&] { gpu.compute(node, Ranges::of(1)); }, TSR_DEVICE_ERROR), HasSubstr("prepare of get_rows"));
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_KERNEL, "get_rows"), 4u);
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_KERNEL, "matmul"), 0u);
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_KERNEL, nullptr), 4u);
}

}  // namespace
}  // namespace tessera::test
