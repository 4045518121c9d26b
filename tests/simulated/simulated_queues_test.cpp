// Queues and events of simulated devices under every policy: what events order is ordered, and nothing else is.
#include "simulated_gpu.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Policies : public testing::TestWithParam<tsr_simulated_policy> {
  protected:
    tsr_simulated_options how(uint64_t seed = 1) const { return options(GetParam(), seed); }
};

TEST_P(Policies, AQueueKeepsItsOrder) {
    Gpu gpu(how());
    constexpr int kSteps = 300;
    auto* values = gpu.pinned<int>(kSteps);
    auto* back = gpu.pinned<int>(kSteps);
    std::iota(values, values + kSteps, 0);
    void* cell = gpu.allocate(sizeof(int));
    for (int i = 0; i < kSteps; ++i) {
        gpu.put_upload(cell, &values[i], sizeof(int));
        gpu.put_download(&back[i], cell, sizeof(int));
    }
    gpu.wait();
    for (int i = 0; i < kSteps; ++i) ASSERT_EQ(back[i], i);
}

// A number is handed from queue to queue, each time through a wait for the event of the one before.
TEST_P(Policies, EventsOrderQueues) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
        Gpu gpu(how(seed));
        tsr_queue queues[] = {gpu.queue, gpu.create_queue(), gpu.create_queue()};
        tsr_event done[] = {gpu.create_event(), gpu.create_event(), gpu.create_event()};
        constexpr int kHops = 60;
        auto* start = gpu.pinned<int>(1);
        auto* end = gpu.pinned<int>(1);
        *start = 42;
        auto* cells = static_cast<char*>(gpu.allocate(256 * (kHops + 1)));
        gpu.put_upload(cells, start, sizeof(int), queues[0]);
        gpu.record(done[0], queues[0]);
        for (int hop = 1; hop <= kHops; ++hop) {
            gpu.queue_wait(done[(hop - 1) % 3], queues[hop % 3]);
            gpu.put_copy(cells + 256 * hop, cells + 256 * (hop - 1), sizeof(int), queues[hop % 3]);
            gpu.record(done[hop % 3], queues[hop % 3]);
        }
        gpu.put_download(end, cells + 256 * kHops, sizeof(int), queues[kHops % 3]);
        gpu.wait(queues[kHops % 3]);
        EXPECT_EQ(*end, 42);
        for (tsr_queue queue : queues) gpu.wait(queue);
    }
}

TEST_P(Policies, EventsOrderDevices) {
    Gpu a(how(), "SIM0"), b(how(2), "SIM1");
    ASSERT_EQ(b.device->can_reach_peer(b.device, a.device), 1u);
    constexpr int kRounds = 40;
    auto* values = a.pinned<int>(kRounds);
    auto* back = b.pinned<int>(kRounds);
    std::iota(values, values + kRounds, 100);
    void *here = a.allocate(64), *there = b.allocate(64);
    const tsr_event sent = a.create_event(), taken = b.create_event();
    for (int i = 0; i < kRounds; ++i) {
        a.queue_wait(b, taken);  // of the round before; never recorded at first
        a.put_upload(here, &values[i], sizeof(int));
        a.record(sent);
        b.queue_wait(a, sent);
        sdk::check(b.device->copy_from_peer(b.device, b.queue, there, a.device, here, sizeof(int)));
        b.record(taken);
        b.put_download(&back[i], there, sizeof(int));
    }
    b.wait();
    for (int i = 0; i < kRounds; ++i) EXPECT_EQ(back[i], 100 + i);
    a.wait();
}

TEST_P(Policies, WaitingForAnEventIsEnoughForTheHost) {
    Gpu gpu(how());
    const tsr_event event = gpu.create_event();
    auto* in = gpu.pinned<int>(1);
    auto* out = gpu.pinned<int>(1);
    void* cell = gpu.allocate(sizeof(int));
    EXPECT_TRUE(gpu.complete(event)) << "never recorded";
    gpu.wait_event(event);
    for (int i = 0; i < 30; ++i) {
        *in = i;
        gpu.put_upload(cell, in, sizeof(int));
        gpu.put_download(out, cell, sizeof(int));
        gpu.record(event);
        if (i % 2 == 0) {
            gpu.wait_event(event);
        } else {
            while (!gpu.complete(event)) std::this_thread::yield();
        }
        ASSERT_EQ(*out, i);
        EXPECT_TRUE(gpu.complete(event));
    }
}

// Who waited for an event before it was recorded again is bound to the earlier record.
TEST_P(Policies, RecordingAgainMovesAnEvent) {
    Gpu gpu(how());
    const tsr_queue other = gpu.create_queue(), third = gpu.create_queue();
    const tsr_event event = gpu.create_event(), gate = gpu.create_event();
    auto* values = gpu.pinned<int>(3);
    values[0] = 1, values[1] = 2, values[2] = -1;
    void* cell = gpu.allocate(sizeof(int));
    gpu.put_upload(cell, &values[0], sizeof(int));
    gpu.record(event);
    gpu.queue_wait(event, other);
    gpu.put_download(&values[2], cell, sizeof(int), other);
    gpu.record(gate, other);
    // The second record is on another queue, and waits until the first has been used.
    gpu.queue_wait(gate, third);
    gpu.put_upload(cell, &values[1], sizeof(int), third);
    gpu.record(event, third);
    gpu.wait_event(event);
    EXPECT_EQ(values[2], 1);
    gpu.wait(other);
    gpu.wait(third);
    gpu.wait();
}

TEST_P(Policies, SecondsAreThoseOfTheWork) {
    Gpu gpu(how());
    const tsr_event begin = gpu.create_event(true), end = gpu.create_event(true), plain = gpu.create_event();
    std::vector<char> bytes(8 << 20, 1);
    void* memory = gpu.allocate(bytes.size());
    gpu.record(begin);
    gpu.put_upload(memory, bytes.data(), bytes.size());
    gpu.record(end);
    gpu.record(plain);
    gpu.wait();
    double seconds = -1;
    sdk::check(gpu.device->event_seconds(gpu.device, begin, end, &seconds));
    EXPECT_GT(seconds, 1e-6);
    EXPECT_LT(seconds, 60);
    double reversed = 0;
    sdk::check(gpu.device->event_seconds(gpu.device, end, begin, &reversed));
    EXPECT_EQ(reversed, -seconds);
    EXPECT_THAT(message_of(gpu.device->event_seconds(gpu.device, begin, plain, &seconds)), HasSubstr("timed"));
}

INSTANTIATE_TEST_SUITE_P(All, Policies,
                         testing::Values(TSR_SIMULATED_RANDOM, TSR_SIMULATED_AT_ONCE, TSR_SIMULATED_ON_WAIT,
                                         TSR_SIMULATED_OLDEST_LAST, TSR_SIMULATED_NEWEST_LAST),
                         [](const auto& instance) { return policy_name(instance.param); });

// ---- mistakes ----

TEST(SimulatedQueue, ForeignAndDeadHandlesAreRefused) {
    Gpu gpu, other(610, 1 << 20, "SIM1");
    char byte = 0;
    void* here = gpu.allocate(1);
    EXPECT_THAT(failure([&] { gpu.put_upload(here, &byte, 1, other.queue); }, TSR_INVALID_ARGUMENT),
                AllOf(HasSubstr("SIM0"), HasSubstr("queue")));
    EXPECT_THAT(message_of(gpu.device->wait_queue(gpu.device, nullptr)), HasSubstr("queue"));
    const tsr_event event = other.create_event();
    EXPECT_THAT(failure([&] { gpu.record(event); }, TSR_INVALID_ARGUMENT), HasSubstr("event"));
    EXPECT_THAT(failure([&] { gpu.queue_wait(event); }, TSR_INVALID_ARGUMENT), HasSubstr("event"));
    gpu.queue_wait(other, event);
    tsr_device foreign{};
    foreign.interop = "cuda-driver/1";
    EXPECT_THAT(message_of(gpu.device->queue_wait_event(gpu.device, gpu.queue, &foreign, event)),
                HasSubstr("cuda-driver/1"));
    EXPECT_EQ(gpu.device->can_reach_peer(gpu.device, &foreign), 0u);
}

TEST(SimulatedQueue, IsNotDestroyedUnderWay) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    tsr_queue queue = nullptr;
    sdk::check(gpu.device->create_queue(gpu.device, &queue));
    const tsr_event event = gpu.create_event();
    char byte = 0;
    gpu.put_upload(gpu.allocate(1), &byte, 1, queue);
    gpu.record(event, queue);
    gpu.device->destroy_queue(gpu.device, queue);
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_INTERNAL), HasSubstr("destroy_queue with work under way"));
    gpu.wait_event(event);

    // Waiting for an event at its end is enough.
    for (int i = 0; i < 200; ++i) {
        sdk::check(gpu.device->create_queue(gpu.device, &queue));
        gpu.put_upload(gpu.allocate(1), &byte, 1, queue);
        gpu.record(event, queue);
        gpu.wait_event(event);
        gpu.device->destroy_queue(gpu.device, queue);
        gpu.wait();
    }
}

TEST(SimulatedQueue, AnEventMayBeDestroyedBeforeItIsComplete) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    const tsr_queue other = gpu.create_queue();
    int in = 3, out = 0;
    void* cell = gpu.allocate(4);
    tsr_event event = nullptr;
    sdk::check(gpu.device->create_event(gpu.device, 0, &event));
    gpu.put_upload(cell, &in, 4);
    gpu.record(event);
    gpu.queue_wait(event, other);
    gpu.device->destroy_event(gpu.device, event);
    gpu.put_download(&out, cell, 4, other);
    gpu.wait(other);
    EXPECT_EQ(out, 3);
    gpu.wait();
}

TEST(SimulatedQueue, IsCalledByOneThreadAtATime) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    // One thread waits for two gigabytes of copies; another calls meanwhile.
    std::vector<char> much(32 << 20);
    void* memory = gpu.allocate(much.size());
    for (int i = 0; i < 64; ++i) gpu.put_upload(memory, much.data(), much.size());
    std::atomic<bool> told{false}, done{false};
    std::thread second([&] {
        while (!done && !told) {
            double seconds = 0;
            tsr_code code = TSR_OK;
            message_of(gpu.device->event_seconds(gpu.device, nullptr, nullptr, &seconds), &code);
            told = code == TSR_INTERNAL;
        }
    });
    tsr_code code = TSR_OK;
    message_of(gpu.device->wait_queue(gpu.device, gpu.queue), &code);
    done = true;
    second.join();
    EXPECT_TRUE(told || code == TSR_INTERNAL);
}

}  // namespace
}  // namespace tessera::test
