// What no stream, event or wait of the host orders is reported, whatever happens to be done first.
#include "emulated_cards.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

namespace tessera::cuda::emulated {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kCount = 1024;
constexpr size_t kBytes = 4 * kCount;

int fill(TestCard& card, void* stream, Address out, int value) {
    return card.launch_on(stream, "fill", 4, 256, 0, out, kCount, value);
}
int add_one(TestCard& card, void* stream, Address values) {
    return card.launch_on(stream, "add_one", 4, 256, 0, values, kCount);
}
// `later` goes on after what `earlier` has been given.
void order(TestCard& card, void* earlier, void* later) {
    void* const event = card.make_event();
    EXPECT_EQ(call("cuEventRecord", event, earlier), 0);
    EXPECT_EQ(call("cuStreamWaitEvent", later, event, 0u), 0);
    EXPECT_EQ(call("cuEventDestroy_v2", event), 0);
}

// Page-locked memory for as long as a test.
struct Pinned {
    Pinned() { EXPECT_EQ(call("cuMemHostAlloc", reinterpret_cast<void**>(&values), kBytes, 1u), 0); }
    ~Pinned() { call("cuMemFreeHost", static_cast<void*>(values)); }
    int* values = nullptr;
};
int up(void* stream, Address to, const int* from) {
    return call("cuMemcpyHtoDAsync_v2", to, static_cast<const void*>(from), kBytes, stream);
}
int down(void* stream, int* to, Address from) {
    return call("cuMemcpyDtoHAsync_v2", static_cast<void*>(to), from, kBytes, stream);
}

struct Scene {
    TestCard& card;
    void* other;  // a stream
    Address values;
    int* pinned;
    bool bug;
    void order(void* earlier, void* later) const {
        if (!bug) emulated::order(card, earlier, later);
    }
};

struct Planted {
    const char* name;
    std::vector<const char*> report;
    std::function<void(const Scene&)> run;
};

const std::vector<Planted>& planted() {
    static const std::vector<Planted> all{
        {"TwoKernelsWrite",
         {"kernel fill on stream", " writes byte ", "has written"},
         [](const Scene& s) {
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 1), 0);
             s.order(s.card.stream, s.other);
             EXPECT_EQ(fill(s.card, s.other, s.values, 2), 0);
         }},
        {"AKernelUsesWhatIsBeingUploaded",
         {"kernel add_one on stream", "a copy from the host on stream"},
         [](const Scene& s) {
             // Written before, so that nothing else is to be found.
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 1), 0);
             EXPECT_EQ(s.card.synchronize(), 0);
             std::memset(s.pinned, 0, kBytes);
             EXPECT_EQ(up(s.other, s.values, s.pinned), 0);
             s.order(s.other, s.card.stream);
             EXPECT_EQ(add_one(s.card, s.card.stream, s.values), 0);
         }},
        {"ACopyReadsWhatAKernelWrites",
         {"a copy to the host on stream", "kernel fill on stream"},
         [](const Scene& s) {
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 1), 0);
             s.order(s.card.stream, s.other);
             EXPECT_EQ(down(s.other, s.pinned, s.values), 0);
         }},
        {"AKernelWritesWhatACopyReads",
         {"kernel fill on stream", "a copy to the host on stream"},
         [](const Scene& s) {
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 1), 0);
             EXPECT_EQ(s.card.synchronize(), 0);
             EXPECT_EQ(down(s.other, s.pinned, s.values), 0);
             s.order(s.other, s.card.stream);
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 2), 0);
         }},
        {"TheEventIsRecordedTooEarly",
         {"kernel add_one on stream", "a memset on stream"},
         [](const Scene& s) {
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 1), 0);
             if (s.bug) emulated::order(s.card, s.card.stream, s.other);
             EXPECT_EQ(call("cuMemsetD8Async", s.values, static_cast<unsigned char>(0), kBytes, s.card.stream), 0);
             s.order(s.card.stream, s.other);
             EXPECT_EQ(add_one(s.card, s.other, s.values), 0);
         }},
        {"AnEarlierEventIsWaitedFor",
         {"kernel fill on stream", " writes byte "},
         [](const Scene& s) {
             void* const event = s.card.make_event();
             EXPECT_EQ(fill(s.card, s.other, s.values, 1), 0);
             EXPECT_EQ(call("cuEventRecord", event, s.other), 0);
             EXPECT_EQ(s.bug ? call("cuEventSynchronize", event) : 0, 0);
             EXPECT_EQ(add_one(s.card, s.other, s.values), 0);
             EXPECT_EQ(call("cuEventRecord", event, s.other), 0);
             EXPECT_EQ(s.bug ? 0 : call("cuEventSynchronize", event), 0);
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 2), 0);
             EXPECT_EQ(call("cuEventDestroy_v2", event), 0);
         }},
        {"MemoryOfTheHostIsHandedOn",
         {"on page-locked memory", "a copy from the host on stream", "a copy to the host on stream"},
         [](const Scene& s) {
             const Address second = s.card.allocate(kBytes);
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 1), 0);
             EXPECT_EQ(down(s.card.stream, s.pinned, s.values), 0);
             s.order(s.card.stream, s.other);
             EXPECT_EQ(up(s.other, second, s.pinned), 0);
         }},
        {"TheHostWritesWhatACopyReads",
         {"the host has written byte 40 of allocation", "which a copy reads"},
         [](const Scene& s) {
             std::memset(s.pinned, 0, kBytes);
             EXPECT_EQ(call("tesseraEmulatedHold", 1), 0);
             EXPECT_EQ(up(s.card.stream, s.values, s.pinned), 0);
             if (s.bug) s.pinned[10] = 1;
             EXPECT_EQ(call("tesseraEmulatedHold", 0), 0);
             EXPECT_EQ(s.card.synchronize(), 0);
             s.pinned[11] = 1;
         }},
        {"TheHostWritesWhereACopyWrites",
         {"the host has written byte 12 of allocation", "which a copy writes"},
         [](const Scene& s) {
             EXPECT_EQ(call("tesseraEmulatedHold", 1), 0);
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 1), 0);
             EXPECT_EQ(down(s.card.stream, s.pinned, s.values), 0);
             if (s.bug) s.pinned[3] = 1;
             EXPECT_EQ(call("tesseraEmulatedHold", 0), 0);
             EXPECT_EQ(s.card.synchronize(), 0);
             EXPECT_EQ(s.pinned[3], 1);
         }},
        {"BranchesOfAGraph",
         {"kernel fill on stream", " writes byte "},
         [](const Scene& s) {
             void *graph = nullptr, *executable = nullptr;
             const Address own = s.card.allocate(kBytes);
             s.card.function("fill");
             void* const fork = s.card.make_event();
             EXPECT_EQ(call("cuStreamBeginCapture_v2", s.card.stream, 1), 0);
             EXPECT_EQ(call("cuEventRecord", fork, s.card.stream), 0);
             EXPECT_EQ(call("cuStreamWaitEvent", s.other, fork, 0u), 0);
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 1), 0);
             EXPECT_EQ(fill(s.card, s.other, s.bug ? s.values : own, 2), 0);
             emulated::order(s.card, s.other, s.card.stream);
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 3), 0);
             EXPECT_EQ(call("cuStreamEndCapture", s.card.stream, &graph), 0);
             EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
             EXPECT_EQ(call("cuGraphLaunch", executable, s.card.stream), 0);
             EXPECT_EQ(call("cuGraphLaunch", executable, s.card.stream), 0);
             EXPECT_EQ(call("cuEventDestroy_v2", fork), 0);
         }},
        {"AGraphAndAKernel",
         {"kernel ", " on stream", " writes byte "},
         [](const Scene& s) {
             void *graph = nullptr, *executable = nullptr;
             s.card.function("fill");
             s.card.function("add_one");
             EXPECT_EQ(call("cuStreamBeginCapture_v2", s.card.stream, 1), 0);
             EXPECT_EQ(fill(s.card, s.card.stream, s.values, 1), 0);
             EXPECT_EQ(add_one(s.card, s.card.stream, s.values), 0);
             EXPECT_EQ(call("cuStreamEndCapture", s.card.stream, &graph), 0);
             EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
             EXPECT_EQ(call("cuGraphLaunch", executable, s.card.stream), 0);
             s.order(s.card.stream, s.other);
             EXPECT_EQ(fill(s.card, s.other, s.values, 3), 0);
         }},
    };
    return all;
}

class EmulatedRaces : public testing::TestWithParam<size_t> {};

TEST_P(EmulatedRaces, AreFound) {
    const Planted& bug = planted()[GetParam()];
    for (const bool with : {false, true}) {
        SCOPED_TRACE(with ? "with the bug" : "without");
        // A card of its own, of no use after it.
        TestCard card(with ? 24 + 2 * static_cast<int>(GetParam()) : 0);
        Pinned pinned;
        const Scene scene{card, card.make_stream(), card.allocate(kBytes), pinned.values, with};
        if (!with) {
            bug.run(scene);
            EXPECT_EQ(card.synchronize(), 0) << report();
            EXPECT_EQ(call("cuStreamSynchronize", scene.other), 0) << report();
            EXPECT_EQ(call("cuStreamDestroy_v2", scene.other), 0);
            continue;
        }
        // What is called after the fault fails; which call that is depends on the policy.
        testing::TestPartResultArray failures;
        {
            testing::ScopedFakeTestPartResultReporter reporter(
                testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
            bug.run(scene);
            card.synchronize();
            call("cuStreamSynchronize", scene.other);
        }
        EXPECT_EQ(card.synchronize(), 719);
        EXPECT_THAT(report(), HasSubstr("race: "));
        for (const char* text : bug.report) EXPECT_THAT(report(), HasSubstr(text));
        call("cuStreamDestroy_v2", scene.other);
    }
}

INSTANTIATE_TEST_SUITE_P(Planted, EmulatedRaces, testing::Range(size_t{0}, planted().size()),
                         [](const auto& planted_one) { return std::string(planted()[planted_one.param].name); });

// A host that reads before it has waited finds neither the old nor the new values.
TEST(EmulatedHost, ReadsTooEarly) {
    TestCard card(0);
    Pinned pinned;
    const Address values = card.allocate(kBytes);
    pinned.values[5] = 1;
    EXPECT_EQ(call("tesseraEmulatedHold", 1), 0);
    EXPECT_EQ(fill(card, card.stream, values, 1), 0);
    EXPECT_EQ(down(card.stream, pinned.values, values), 0);
    EXPECT_EQ(static_cast<unsigned>(pinned.values[5]), 0xEBEBEBEBu);
    EXPECT_EQ(call("tesseraEmulatedHold", 0), 0);
    EXPECT_EQ(card.synchronize(), 0);
    EXPECT_EQ(pinned.values[5], 1);
}

// Other cards' streams are ordered by events as one card's are.
TEST(EmulatedRacesOfCards, ACopyBetweenCards) {
    for (const bool bug : {false, true}) {
        TestCard from(bug ? 60 : 0), to(bug ? 62 : 2);
        const Address source = from.allocate(kBytes), target = to.allocate(kBytes);
        EXPECT_EQ(from.launch("fill", 4, 256, source, kCount, 1), 0);
        void* popped = nullptr;
        EXPECT_EQ(call("cuCtxPushCurrent_v2", from.context), 0);
        if (!bug) order(from, from.stream, to.stream);
        EXPECT_EQ(call("cuCtxPopCurrent_v2", &popped), 0);
        const int called = call("cuMemcpyPeerAsync", target, to.context, source, from.context, kBytes, to.stream);
        const int first = from.synchronize(), second = to.synchronize();
        if (!bug) {
            EXPECT_EQ(called, 0);
            EXPECT_EQ(first, 0) << report();
            EXPECT_EQ(second, 0) << report();
        } else {
            EXPECT_TRUE(called == 719 || first == 719 || second == 719);
            EXPECT_THAT(report(), AllOf(HasSubstr("a copy between cards"), HasSubstr("kernel fill")));
        }
    }
}

// The driver poisons what a copy to the host will write when it is called, but not under a copy that reads the memory.
TEST(EmulatedCopies, ToMemoryThatAnEarlierCopyIsReading) {
    constexpr size_t kLarge = 8 << 20;
    TestCard card(0);
    char* pinned = nullptr;
    ASSERT_EQ(call("cuMemHostAlloc", reinterpret_cast<void**>(&pinned), kLarge, 1u), 0);
    const Address source = card.allocate(kLarge), target = card.allocate(kLarge);
    for (int round = 1; round <= 4; ++round) {
        ASSERT_EQ(call("cuMemsetD8Async", source, static_cast<unsigned char>(100), kLarge, card.stream), 0);
        ASSERT_EQ(card.synchronize(), 0);
        std::memset(pinned, round, kLarge);
        ASSERT_EQ(call("cuMemcpyHtoDAsync_v2", target, static_cast<const void*>(pinned), kLarge, card.stream), 0);
        std::this_thread::sleep_for(std::chrono::microseconds(200 * round));
        ASSERT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(pinned), source, kLarge, card.stream), 0);
        ASSERT_EQ(card.synchronize(), 0) << report();
        EXPECT_EQ(std::count(pinned, pinned + kLarge, 100), static_cast<ptrdiff_t>(kLarge));
        ASSERT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(pinned), target, kLarge, card.stream), 0);
        ASSERT_EQ(card.synchronize(), 0) << report();
        EXPECT_EQ(std::count(pinned, pinned + kLarge, static_cast<char>(round)), static_cast<ptrdiff_t>(kLarge));
    }
    EXPECT_EQ(call("cuMemFreeHost", static_cast<void*>(pinned)), 0);
}

}  // namespace
}  // namespace tessera::cuda::emulated
