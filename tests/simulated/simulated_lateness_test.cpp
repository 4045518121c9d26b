// How late simulated devices are: what a program does that does not wait is seen. These tests do that on purpose, so
// they are no part of a build with ThreadSanitizer; simulated_races_test.cpp stands there in their place.
#include "simulated_gpu.hpp"

#include <chrono>
#include <numeric>
#include <thread>

namespace tessera::test {
namespace {

TEST(SimulatedLateness, NothingHappensBeforeSomebodyWaits) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    const tsr_queue other = gpu.create_queue();
    auto* out = gpu.pinned<int>(3);
    int in = 7;
    void* cell = gpu.allocate(sizeof(int));
    gpu.put_upload(cell, &in, sizeof(int));
    gpu.put_download(&out[0], cell, sizeof(int));
    const tsr_event event = gpu.create_event();
    gpu.record(event);
    gpu.put_download(&out[1], cell, sizeof(int));
    gpu.put_download(&out[2], cell, sizeof(int), other);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_COPY, nullptr), 0u);
    // Host memory is read as late as that, whether it is page-locked or not.
    in = 8;
    gpu.wait_event(event);
    EXPECT_EQ(out[0], 8);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_COPY, nullptr), 2u) << "what is after the event can wait";
    EXPECT_EQ(failures().maximum_busy_queues("SIM0"), 2u);
    gpu.wait();
    EXPECT_EQ(out[1], 8);
    EXPECT_EQ(out[2], -1);
    gpu.wait(other);
    EXPECT_EQ(out[2], 8);
}

// A query is enough for the work to be done one day: a host may poll.
TEST(SimulatedLateness, AQueryIsAnAnswerOfTheMomentAndAWish) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    const tsr_event event = gpu.create_event();
    int value = 1;
    gpu.put_upload(gpu.allocate(4), &value, sizeof value);
    gpu.record(event);
    EXPECT_FALSE(gpu.complete(event));
    for (int i = 0; i < 300'000 && !gpu.complete(event); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(gpu.complete(event));
}

TEST(SimulatedLateness, WorkIsDoneAtOnce) {
    Gpu gpu(options(TSR_SIMULATED_AT_ONCE));
    std::vector<int> out(1, 0);
    int in = 7;
    void* cell = gpu.allocate(sizeof(int));
    gpu.put_upload(cell, &in, sizeof(int));
    in = 8;  // memory that is not page-locked has been read
    gpu.put_download(out.data(), cell, sizeof(int));
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_COPY, nullptr), 2u);
    gpu.wait();
    EXPECT_EQ(out[0], 7);
}

TEST(SimulatedLateness, OneQueueIsHeldBackForAsLongAsNobodyWaitsForIt) {
    for (const bool oldest : {true, false}) {
        Gpu gpu(options(oldest ? TSR_SIMULATED_OLDEST_LAST : TSR_SIMULATED_NEWEST_LAST));
        const tsr_queue newest = gpu.create_queue();
        const tsr_queue late = oldest ? gpu.queue : newest, free = oldest ? newest : gpu.queue;
        auto* in = gpu.pinned<int>(2);
        auto* out = gpu.pinned<int>(1);
        in[0] = 1, in[1] = 2;
        void* cell = gpu.allocate(sizeof(int));
        gpu.put_upload(cell, &in[0], sizeof(int), late);
        gpu.put_upload(cell, &in[1], sizeof(int), free);  // without an event it comes first
        gpu.wait(free);
        gpu.put_download(out, cell, sizeof(int), late);
        gpu.wait(late);
        EXPECT_EQ(*out, 1);
    }
}

TEST(SimulatedLateness, AMissingWaitIsFound) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    const tsr_queue other = gpu.create_queue();
    const tsr_event event = gpu.create_event();
    auto* in = gpu.pinned<int>(1);
    auto* out = gpu.pinned<int>(1);
    *in = 5;
    void* cell = gpu.allocate(sizeof(int));
    for (const bool left_out : {false, true}) {
        const int fresh = -1;
        gpu.put_upload(cell, &fresh, sizeof(int), other);
        gpu.wait(other);
        if (left_out) failures().omit("SIM0", TSR_SIMULATED_QUEUE_WAIT_EVENT, nullptr, 0, 1);
        gpu.put_upload(cell, in, sizeof(int));
        gpu.record(event);
        gpu.queue_wait(event, other);
        gpu.put_download(out, cell, sizeof(int), other);
        gpu.wait(other);
        EXPECT_EQ(*out, left_out ? -1 : 5);
        gpu.wait();
    }
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_QUEUE_WAIT_EVENT, nullptr), 1u);
}

TEST(SimulatedLateness, ReadingADownloadEarlyIsFound) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    auto* out = gpu.pinned<int>(4);
    const int values[] = {1, 2, 3, 4};
    void* memory = gpu.upload(values, sizeof values);
    std::iota(out, out + 4, 1);  // what a step before has left
    gpu.put_download(out, memory, sizeof values);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], -1);
    gpu.wait();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], i + 1);
    // Bytes that a copy under way still needs are left alone.
    void* other = gpu.allocate(sizeof values);
    gpu.put_upload(other, out, sizeof values);
    gpu.put_download(out, memory, sizeof values);
    EXPECT_EQ(out[0], 1);
    gpu.put_download(out, other, sizeof values);
    gpu.wait();
    EXPECT_EQ(out[3], 4);
}

TEST(SimulatedLateness, TheSeedDecidesTheOrder) {
    // Two queues without events write one cell: over many seeds both orders are seen.
    int last_of_first = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
        Gpu gpu(options(TSR_SIMULATED_RANDOM, seed));
        const tsr_queue other = gpu.create_queue();
        const tsr_event go = gpu.create_event();
        auto* values = gpu.pinned<int>(3);
        values[0] = 1, values[1] = 2;
        void* cell = gpu.allocate(sizeof(int));
        // Both wait for the same event, so that both are ready at once.
        std::vector<char> much(4 << 20);
        gpu.put_upload(gpu.allocate(much.size()), much.data(), much.size());
        gpu.record(go);
        const tsr_queue first = gpu.create_queue();
        gpu.queue_wait(go, first);
        gpu.queue_wait(go, other);
        gpu.put_upload(cell, &values[0], sizeof(int), first);
        gpu.put_upload(cell, &values[1], sizeof(int), other);
        gpu.wait(first);
        gpu.wait(other);
        gpu.download(&values[2], cell, sizeof(int));
        last_of_first += values[2] == 1;
    }
    EXPECT_GT(last_of_first, 0);
    EXPECT_LT(last_of_first, 40);
}

// Omitted operations report success.
TEST(SimulatedFailures, OperationsAreOmitted) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    auto* host = gpu.pinned<int>(2);
    host[0] = 1;
    void* memory = gpu.allocate(4);
    const tsr_event event = gpu.create_event();
    failures().omit("SIM0", TSR_SIMULATED_WAIT_QUEUE, nullptr, 0, 1);
    gpu.put_upload(memory, &host[0], 4);
    gpu.put_download(&host[1], memory, 4);
    gpu.wait();
    EXPECT_EQ(host[1], -1);
    failures().omit("SIM0", TSR_SIMULATED_RECORD_EVENT, nullptr, 0, 1);
    gpu.record(event);
    EXPECT_TRUE(gpu.complete(event)) << "never recorded";
    gpu.record(event);
    failures().omit("SIM0", TSR_SIMULATED_WAIT_EVENT, nullptr, 0, 1);
    gpu.wait_event(event);
    EXPECT_EQ(host[1], -1);
    gpu.wait_event(event);
    EXPECT_EQ(host[1], 1);
    gpu.wait();
    failures().omit("SIM0", TSR_SIMULATED_UPLOAD, nullptr, 0, 1);
    host[0] = 2;
    gpu.put_upload(memory, &host[0], 4);
    gpu.put_download(&host[1], memory, 4);
    gpu.wait();
    EXPECT_EQ(host[1], 1);
}

}  // namespace
}  // namespace tessera::test
