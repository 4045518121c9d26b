// Recordings: what is captured, what is refused meanwhile, and what a replay does.
#include "simulated_gpu.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <thread>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Recordings : public testing::TestWithParam<tsr_simulated_policy> {};

TEST_P(Recordings, CapturedWorkRunsWithEachReplayAndNotBefore) {
    Gpu gpu(options(GetParam()));
    auto* in = gpu.pinned<int>(1);
    auto* out = gpu.pinned<int>(1);
    void *a = gpu.allocate(4), *b = gpu.allocate(4);
    *in = 1, *out = 0;
    gpu.begin_recording();
    gpu.put_upload(a, in, 4);
    gpu.put_copy(b, a, 4);
    gpu.put_download(out, b, 4);
    const tsr_recording recording = gpu.end_recording();
    gpu.wait();
    EXPECT_EQ(*out, 0) << "captured, not run";
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_COPY, nullptr), 0u);
    const uint64_t bytes = failures().allocated_bytes("SIM0");
    for (int i = 1; i <= 50; ++i) {
        *in = i;
        gpu.replay(recording);
        gpu.wait();
        ASSERT_EQ(*out, i);
    }
    // Several at once keep their order.
    void* sum = gpu.allocate(4 * 20);
    for (int i = 0; i < 20; ++i) {
        gpu.replay(recording);
        gpu.put_copy(static_cast<char*>(sum) + 4 * i, b, 4);
    }
    gpu.wait();
    EXPECT_EQ(*out, 50);
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_REPLAY, nullptr), 70u);
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_COPY, nullptr), 3 * 70u + 20u);
    gpu.release(sum);
    EXPECT_EQ(failures().allocated_bytes("SIM0"), bytes);
    gpu.destroy_recording(recording);
}

TEST_P(Recordings, AReplayIsOrderedByEventsAsOtherWorkIs) {
    Gpu gpu(options(GetParam()));
    const tsr_queue other = gpu.create_queue();
    const tsr_event before = gpu.create_event(), after = gpu.create_event();
    auto* in = gpu.pinned<int>(30);
    auto* out = gpu.pinned<int>(30);
    void *a = gpu.allocate(4), *b = gpu.allocate(4);
    gpu.begin_recording();
    gpu.put_copy(b, a, 4);
    const tsr_recording recording = gpu.end_recording();
    for (int i = 0; i < 30; ++i) {
        in[i] = i;
        gpu.queue_wait(after, other);
        gpu.put_upload(a, &in[i], 4, other);
        gpu.record(before, other);
        gpu.queue_wait(before);
        gpu.replay(recording);
        gpu.put_download(&out[i], b, 4);
        gpu.record(after);
    }
    gpu.wait_event(after);
    for (int i = 0; i < 30; ++i) EXPECT_EQ(out[i], i);
    gpu.wait();
    gpu.wait(other);
}

INSTANTIATE_TEST_SUITE_P(All, Recordings,
                         testing::Values(TSR_SIMULATED_RANDOM, TSR_SIMULATED_AT_ONCE, TSR_SIMULATED_ON_WAIT,
                                         TSR_SIMULATED_OLDEST_LAST, TSR_SIMULATED_NEWEST_LAST),
                         [](const auto& instance) { return policy_name(instance.param); });

struct Refused {
    const char* name;
    const char* message;
    std::function<const tsr_status*(Gpu&, tsr_queue, tsr_event, tsr_recording, char*)> call;
};

char g_pageable[64];

const Refused kRefused[] = {
    {"record_event", "record_event while recording",
     [](Gpu& g, tsr_queue, tsr_event e, tsr_recording, char*) { return g.device->record_event(g.device, g.queue, e); }},
    {"queue_wait_event", "queue_wait_event while recording",
     [](Gpu& g, tsr_queue, tsr_event e, tsr_recording, char*) {
         return g.device->queue_wait_event(g.device, g.queue, g.device, e);
     }},
    {"wait_event", "wait_event while recording",
     [](Gpu& g, tsr_queue, tsr_event e, tsr_recording, char*) { return g.device->wait_event(g.device, e); }},
    {"query_event", "query_event while recording",
     [](Gpu& g, tsr_queue, tsr_event e, tsr_recording, char*) {
         uint32_t complete = 0;
         return g.device->query_event(g.device, e, &complete);
     }},
    {"wait_queue", "wait_queue while recording",
     [](Gpu& g, tsr_queue, tsr_event, tsr_recording, char*) { return g.device->wait_queue(g.device, g.queue); }},
    {"wait_other_queue", "wait_queue while recording",
     [](Gpu& g, tsr_queue other, tsr_event, tsr_recording, char*) { return g.device->wait_queue(g.device, other); }},
    {"allocate", "allocate while recording",
     [](Gpu& g, tsr_queue, tsr_event, tsr_recording, char*) {
         void* address = nullptr;
         return g.device->allocate(g.device, 64, &address);
     }},
    {"allocate_pinned", "allocate_pinned while recording",
     [](Gpu& g, tsr_queue, tsr_event, tsr_recording, char*) {
         void* address = nullptr;
         return g.device->allocate_pinned(g.device, 64, &address);
     }},
    {"register_host", "register_host while recording",
     [](Gpu& g, tsr_queue, tsr_event, tsr_recording, char*) {
         return g.device->register_host(g.device, reinterpret_cast<void*>(4096), 4096);
     }},
    {"nested", "begin_recording while recording",
     [](Gpu& g, tsr_queue, tsr_event, tsr_recording, char*) { return g.device->begin_recording(g.device, g.queue); }},
    {"replay", "replay while recording",
     [](Gpu& g, tsr_queue, tsr_event, tsr_recording r, char*) { return g.device->replay(g.device, g.queue, r); }},
    {"other_queue", "another queue",
     [](Gpu& g, tsr_queue other, tsr_event, tsr_recording, char* m) {
         return g.device->copy(g.device, other, m, m + 32, 16);
     }},
    {"upload", "expected page-locked memory",
     [](Gpu& g, tsr_queue, tsr_event, tsr_recording, char* m) {
         return g.device->upload(g.device, g.queue, m, g_pageable, 16);
     }},
    {"download", "expected page-locked memory",
     [](Gpu& g, tsr_queue, tsr_event, tsr_recording, char* m) {
         return g.device->download(g.device, g.queue, g_pageable, m, 16);
     }},
};

TEST(SimulatedRecording, RefusesWhatADriverRefusesAndIsOfNoUseAfterwards) {
    for (const Refused& refused : kRefused) {
        SCOPED_TRACE(refused.name);
        Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
        const tsr_queue other = gpu.create_queue();
        const tsr_event event = gpu.create_event();
        char* memory = static_cast<char*>(gpu.allocate(64));
        auto* out = gpu.pinned<char>(16);
        gpu.begin_recording();
        gpu.put_copy(memory, memory + 32, 16);
        const tsr_recording earlier = gpu.end_recording();

        gpu.begin_recording();
        gpu.put_copy(memory, memory + 32, 16);
        tsr_code code = TSR_OK;
        EXPECT_THAT(message_of(refused.call(gpu, other, event, earlier, memory), &code),
                    AllOf(HasSubstr("SIM0"), HasSubstr(refused.message)));
        EXPECT_EQ(code, TSR_INVALID_ARGUMENT);
        tsr_recording made = nullptr;
        EXPECT_THAT(message_of(gpu.device->end_recording(gpu.device, gpu.queue, &made)),
                    AllOf(HasSubstr("cannot be used"), HasSubstr(refused.message)));
        EXPECT_EQ(message_of(gpu.device->end_recording(gpu.device, gpu.queue, nullptr)), "");
        // The device still works.
        gpu.put_upload(memory, "0123456789abcdef", 16);
        gpu.replay(earlier);
        gpu.put_download(out, memory, 16);
        gpu.wait();
        gpu.wait(other);
        gpu.begin_recording();
        gpu.end_recording();
    }
}

TEST(SimulatedRecording, ReleasingWhileRecordingIsAMistake) {
    Gpu gpu;
    void* memory = gpu.allocate(64);
    gpu.begin_recording();
    gpu.release(memory);
    EXPECT_THAT(failure([&] { gpu.end_recording(); }, TSR_INTERNAL), HasSubstr("release while recording"));
    EXPECT_EQ(message_of(gpu.device->end_recording(gpu.device, gpu.queue, nullptr)), "");
    gpu.wait();
}

TEST(SimulatedRecording, EndsWhereItBegan) {
    Gpu gpu;
    const tsr_queue other = gpu.create_queue();
    tsr_recording made = nullptr;
    EXPECT_THAT(message_of(gpu.device->end_recording(gpu.device, gpu.queue, &made)),
                HasSubstr("without begin_recording"));
    EXPECT_EQ(message_of(gpu.device->end_recording(gpu.device, gpu.queue, nullptr)), "") << "nothing to discard";
    gpu.begin_recording();
    EXPECT_THAT(message_of(gpu.device->end_recording(gpu.device, other, &made)), HasSubstr("another queue"));
    EXPECT_EQ(message_of(gpu.device->end_recording(gpu.device, gpu.queue, nullptr)), "");
    gpu.begin_recording();
    gpu.end_recording();
    EXPECT_THAT(message_of(gpu.device->replay(gpu.device, gpu.queue, &made)), HasSubstr("none of this device's"));
}

TEST(SimulatedRecording, OtherThreadsMayAskForEventsMeanwhile) {
    Gpu gpu;
    const tsr_event event = gpu.create_event();
    gpu.record(event);
    gpu.begin_recording();
    std::thread([&] {
        gpu.wait_event(event);
        EXPECT_TRUE(gpu.complete(event));
    }).join();
    gpu.end_recording();
}

TEST(SimulatedRecording, RegisteredMemoryIsPageLocked) {
    Gpu gpu;
    constexpr size_t kBytes = 8192;
    std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, kBytes), std::free);
    auto* bytes = static_cast<char*>(memory.get());
    sdk::check(gpu.device->register_host(gpu.device, bytes, kBytes));
    void* here = gpu.allocate(kBytes);
    gpu.begin_recording();
    gpu.put_upload(here, bytes + 100, 16);
    gpu.put_download(bytes + 4096, here, 16);
    const tsr_recording recording = gpu.end_recording();
    for (const char value : {'x', 'y'}) {
        std::fill_n(bytes, 4096, value);
        gpu.replay(recording);
        gpu.wait();
        EXPECT_EQ(std::string(bytes + 4096, 16), std::string(16, value));
    }
    gpu.begin_recording();
    EXPECT_THAT(message_of(gpu.device->upload(gpu.device, gpu.queue, here, bytes + 8000, 300)),
                HasSubstr("page-locked"));
    sdk::check(gpu.device->end_recording(gpu.device, gpu.queue, nullptr));
    gpu.device->unregister_host(gpu.device, bytes);
}

TEST(SimulatedRecording, WhatItRefersToHasToStay) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    char* memory = static_cast<char*>(gpu.allocate(64));
    gpu.begin_recording();
    gpu.put_copy(memory, memory + 32, 16);
    const tsr_recording recording = gpu.end_recording();
    gpu.replay(recording);
    gpu.wait();
    gpu.release(memory);
    EXPECT_EQ(failures().allocated_bytes("SIM0"), 0u);
    EXPECT_THAT(failure([&] { gpu.replay(recording); }, TSR_INVALID_ARGUMENT),
                AllOf(HasSubstr("an allocation of 64 bytes"), HasSubstr("released")));

    memory = static_cast<char*>(gpu.allocate(64));
    gpu.begin_recording();
    gpu.put_copy(memory, memory + 32, 16);
    const tsr_recording second = gpu.end_recording();
    gpu.replay(second);
    gpu.destroy_recording(second);
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_INTERNAL), HasSubstr("destroy_recording while"));
    gpu.wait();
}

TEST(SimulatedRecording, KernelsReadTheirRangesWithEachReplay) {
    Gpu gpu;
    TestNode node("add",
                  {floats({1, 4}, {1, 2, 3, 4}, TSR_RANGE_ROWS), floats({1, 4}, {10, 20, 30, 40}, TSR_RANGE_ROWS)},
                  {make_tensor(TSR_TYPE_F32, {1, 4}, TSR_RANGE_ROWS)});
    Gpu::Prepared prepared(gpu, node);
    tsr_launch launch = prepared.launch(Ranges::of(0));
    std::fill_n(prepared.bounds, int{TSR_RANGE_COUNT}, 3);
    gpu.begin_recording();
    sdk::check(prepared.kernel.enqueue(&prepared.kernel, prepared.state, &launch));
    const tsr_recording recording = gpu.end_recording();
    std::fill_n(prepared.bounds, int{TSR_RANGE_COUNT}, 0);  // ours again
    float out[4];
    const auto rows_written = [&] {
        gpu.download(out, prepared.data[2], sizeof out);
        return std::ranges::count_if(out, [](float v) { return !std::isnan(v); });
    };
    for (int32_t rows = 0; rows <= 3; ++rows) {
        prepared.set(Ranges::of(rows));
        gpu.replay(recording);
        gpu.wait();
        EXPECT_EQ(rows_written(), rows);
    }
    EXPECT_EQ(out[2], 33.0f);
    // A real GPU would leave the fourth row as it was and say nothing.
    prepared.set(Ranges::of(4));
    gpu.replay(recording);
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_INVALID_ARGUMENT),
                AllOf(HasSubstr("add test"), HasSubstr("row bound, which is 3"), HasSubstr("[0, 4)")));
    EXPECT_EQ(rows_written(), 3);
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_ENQUEUE, "add"), 1u);
    gpu.destroy_recording(recording);
}

TEST(SimulatedRecording, CopiesFromPeersAreCaptured) {
    Gpu a, b(options(TSR_SIMULATED_ON_WAIT), "SIM1");
    int value = 5;
    auto* out = a.pinned<int>(1);
    void *here = a.upload(&value, 4), *there = b.allocate(4);
    b.begin_recording();
    sdk::check(b.device->copy_from_peer(b.device, b.queue, there, a.device, here, 4));
    b.put_download(out, there, 4);  // another device's page-locked memory
    const tsr_recording recording = b.end_recording();
    b.replay(recording);
    b.wait();
    EXPECT_EQ(*out, 5);
    b.destroy_recording(recording);
}

}  // namespace
}  // namespace tessera::test
