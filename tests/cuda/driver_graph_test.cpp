// Graphs of the emulated driver: what is captured, what is refused meanwhile, replay and update.
#include "emulated_cards.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <thread>

namespace tessera::cuda::emulated {
namespace {

using testing::Each;

constexpr int kThreadLocal = 1, kRelaxed = 2;

class Graphs : public testing::Test {
  protected:
    Graphs() : card(0), other(card.make_stream()), event(card.make_event()), back(card.make_event()) {
        values = card.allocate(4096);
        for (const char* name : {"fill", "add_one"}) card.function(name);
        EXPECT_EQ(call("cuMemHostAlloc", reinterpret_cast<void**>(&pinned), size_t{4096}, 1u), 0);
    }
    ~Graphs() override {
        call("cuMemFreeHost", static_cast<void*>(pinned));
        call("cuStreamDestroy_v2", other);
        call("cuEventDestroy_v2", event);
        call("cuEventDestroy_v2", back);
    }

    void begin(int mode = kThreadLocal) { ASSERT_EQ(call("cuStreamBeginCapture_v2", card.stream, mode), 0); }
    int end() { return call("cuStreamEndCapture", card.stream, &graph); }
    int fill(int value, void* on = nullptr) {
        return card.launch_on(on ? on : card.stream, "fill", 4, 256, 0, values, 1024, value);
    }
    int add_one(void* on = nullptr) {
        return card.launch_on(on ? on : card.stream, "add_one", 4, 256, 0, values, 1024);
    }
    // What `what` does while capturing: it has to end the capture with `result`.
    void refused(const char* name, int result, const std::function<int()>& what, int mode = kThreadLocal) {
        SCOPED_TRACE(name);
        begin(mode);
        EXPECT_EQ(fill(1), 0);
        EXPECT_EQ(what(), result);
        int status = -1;
        EXPECT_EQ(call("cuStreamIsCapturing", card.stream, &status), 0);
        EXPECT_EQ(status, 2);
        EXPECT_EQ(fill(2), 901);
        EXPECT_EQ(end(), 901);
        EXPECT_EQ(graph, nullptr);
        EXPECT_EQ(card.synchronize(), 0);
    }

    TestCard card;
    void *other, *event, *back, *graph = nullptr, *executable = nullptr;
    Address values = 0;
    int* pinned = nullptr;
};

TEST_F(Graphs, AreReplayed) {
    EXPECT_EQ(fill(5), 0);
    begin();
    EXPECT_EQ(call("cuMemcpyHtoDAsync_v2", values, static_cast<const void*>(pinned), size_t{4096}, card.stream), 0);
    EXPECT_EQ(add_one(), 0);
    EXPECT_EQ(add_one(), 0);
    EXPECT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(pinned), values, size_t{4096}, card.stream), 0);
    EXPECT_EQ(end(), 0);
    size_t count = 0;
    EXPECT_EQ(call("cuGraphGetNodes", graph, static_cast<void**>(nullptr), &count), 0);
    EXPECT_EQ(count, 4u);
    EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
    EXPECT_EQ(call("cuGraphDestroy", graph), 0);
    EXPECT_THAT(card.download(values, 1024), Each(5));  // nothing of it was done
    EXPECT_EQ(call("cuGraphUpload", executable, card.stream), 0);
    EXPECT_EQ(card.synchronize(), 0);
    std::fill_n(pinned, 1024, 10);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(call("cuGraphLaunch", executable, card.stream), 0);
    EXPECT_EQ(call("cuGraphExecDestroy", executable), 0);  // what was launched is still done
    EXPECT_EQ(card.synchronize(), 0);
    EXPECT_THAT(std::vector<int>(pinned, pinned + 1024), Each(16));
}

TEST_F(Graphs, ForkAndJoin) {
    const Address more = card.allocate(4096);
    begin();
    EXPECT_EQ(fill(1), 0);
    EXPECT_EQ(call("cuEventRecord", event, card.stream), 0);
    EXPECT_EQ(call("cuStreamWaitEvent", other, event, 0u), 0);
    EXPECT_EQ(card.launch_on(other, "fill", 4, 256, 0, more, 1024, 20), 0);
    EXPECT_EQ(add_one(), 0);
    EXPECT_EQ(call("cuEventRecord", back, other), 0);
    EXPECT_EQ(call("cuEventQuery", back), 907);
    EXPECT_EQ(call("cuEventSynchronize", back), 907);
    EXPECT_EQ(call("cuStreamWaitEvent", card.stream, back, 0u), 0);
    EXPECT_EQ(card.launch("add_one", 4, 256, more, 1024), 0);
    EXPECT_EQ(end(), 0);
    EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(call("cuGraphLaunch", executable, card.stream), 0);
        EXPECT_THAT(card.download(more, 1024), Each(21));
        EXPECT_THAT(card.download(values, 1024), Each(2));
    }
    EXPECT_EQ(call("cuGraphExecDestroy", executable), 0);
    EXPECT_EQ(call("cuGraphDestroy", graph), 0);
}

TEST_F(Graphs, RefuseWhatCannotBeCaptured) {
    std::vector<int> pageable(1024);
    void* handle = nullptr;
    Address address = 0;
    refused("waiting for the stream", 900, [&] { return card.synchronize(); });
    refused("asking for its state", 900, [&] { return call("cuStreamQuery", card.stream); });
    refused("waiting for another stream", 900, [&] { return call("cuStreamSynchronize", other); });
    refused("allocation", 900, [&] { return call("cuMemAlloc_v2", &address, size_t{64}); });
    refused("release", 900, [&] { return call("cuMemFree_v2", values); });
    refused("waiting for the card", 900, [&] { return call("cuCtxSynchronize"); });
    refused("the end of a module", 900, [&] { return call("cuModuleUnload", card.module); });
    refused("release of page-locked memory", 900, [&] { return call("cuMemFreeHost", static_cast<void*>(pinned)); });
    refused("page-locked memory", 900, [&] { return call("cuMemHostAlloc", &handle, size_t{64}, 0u); });
    refused("registration", 900,
            [&] { return call("cuMemHostRegister_v2", static_cast<void*>(pageable.data()), size_t{64}, 0u); });
    refused("a module", 900,
            [&] { return call("cuModuleLoadData", &handle, static_cast<const void*>(card.image.data())); });
    refused("a function that is loaded now", 900,
            [&] { return call("cuModuleGetFunction", &handle, card.module, "scale"); });
    refused("pageable memory, up", 900, [&] {
        return call("cuMemcpyHtoDAsync_v2", values, static_cast<const void*>(pageable.data()), size_t{64}, card.stream);
    });
    refused("pageable memory, down", 900, [&] {
        return call("cuMemcpyDtoHAsync_v2", static_cast<void*>(pageable.data()), values, size_t{64}, card.stream);
    });
    refused("an event of work that is not captured", 905, [&] {
        EXPECT_EQ(call("cuEventRecord", event, other), 0);
        return call("cuStreamWaitEvent", card.stream, event, 0u);
    });
    refused("a second capture of it", 900, [&] { return call("cuStreamBeginCapture_v2", card.stream, kThreadLocal); });
    refused(
        "an allocation of another thread in global mode", 900,
        [&] {
            int result = 0;
            std::thread([&] {
                call("cuCtxPushCurrent_v2", card.context);
                result = call("cuMemAlloc_v2", &address, size_t{64});
            }).join();
            return result;
        },
        0);
    EXPECT_EQ(call("cuModuleGetFunction", &handle, card.module, "scale"), 0);
}

TEST_F(Graphs, AllowWhatDisturbsNobody) {
    begin();
    EXPECT_EQ(fill(3), 0);
    std::thread([&] {
        TestCard own(0);  // allocates, loads, waits in another thread
        const Address out = own.allocate(64);
        EXPECT_EQ(own.launch("fill", 1, 32, out, 16, 4), 0);
        EXPECT_THAT(own.download(out, 16), Each(4));
    }).join();
    void* function = nullptr;
    EXPECT_EQ(call("cuModuleGetFunction", &function, card.module, "fill"), 0);  // loaded before
    EXPECT_EQ(end(), 0);
    EXPECT_EQ(call("cuGraphDestroy", graph), 0);
    begin(kRelaxed);
    Address address = 0;
    EXPECT_EQ(call("cuMemAlloc_v2", &address, size_t{64}), 0);
    EXPECT_EQ(end(), 0);
    EXPECT_EQ(call("cuMemFree_v2", address), 0);
    EXPECT_EQ(call("cuGraphDestroy", graph), 0);
}

TEST_F(Graphs, EndWhereAndHowTheyBegan) {
    void* nothing = nullptr;
    EXPECT_EQ(end(), 1);  // not begun
    // Work that was forked and not joined.
    begin();
    EXPECT_EQ(call("cuEventRecord", event, card.stream), 0);
    EXPECT_EQ(call("cuStreamWaitEvent", other, event, 0u), 0);
    EXPECT_EQ(fill(1, other), 0);
    EXPECT_EQ(end(), 904);
    EXPECT_EQ(call("cuStreamSynchronize", other), 0);
    // Ended in the stream that joined.
    begin();
    EXPECT_EQ(call("cuEventRecord", event, card.stream), 0);
    EXPECT_EQ(call("cuStreamWaitEvent", other, event, 0u), 0);
    EXPECT_EQ(call("cuStreamEndCapture", other, &nothing), 903);
    EXPECT_EQ(end(), 901);
    // Ended by another thread.
    begin();
    int result = 0;
    std::thread([&] { result = call("cuStreamEndCapture", card.stream, &nothing); }).join();
    EXPECT_EQ(result, 908);
    EXPECT_EQ(end(), 0);
    EXPECT_EQ(call("cuGraphDestroy", graph), 0);
    // Two captures meet.
    begin();
    EXPECT_EQ(call("cuStreamBeginCapture_v2", other, kThreadLocal), 0);
    EXPECT_EQ(call("cuEventRecord", event, other), 0);
    EXPECT_EQ(call("cuStreamWaitEvent", card.stream, event, 0u), 902);
    EXPECT_EQ(end(), 901);
    EXPECT_EQ(call("cuStreamEndCapture", other, &nothing), 901);
}

TEST_F(Graphs, AreUpdated) {
    const auto capture = [&](int value, bool one_more, size_t bytes) {
        begin();
        EXPECT_EQ(fill(value), 0);
        EXPECT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(pinned), values, bytes, card.stream), 0);
        if (one_more) {
            EXPECT_EQ(add_one(), 0);
        }
        EXPECT_EQ(end(), 0);
        return graph;
    };
    struct {
        int result;
        void *node, *from;
    } why{};
    void* const first = capture(1, false, 4096);
    EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, first, 0ull), 0);
    EXPECT_EQ(call("cuGraphLaunch", executable, card.stream), 0);
    void* const second = capture(2, false, 4096);
    EXPECT_EQ(call("cuGraphExecUpdate_v2", executable, second, static_cast<void*>(&why)), 0);
    EXPECT_EQ(card.synchronize(), 0);
    EXPECT_EQ(pinned[7], 1);  // what was launched before is not changed
    EXPECT_EQ(call("cuGraphLaunch", executable, card.stream), 0);
    EXPECT_EQ(card.synchronize(), 0);
    EXPECT_EQ(pinned[7], 2);
    void* const third = capture(3, true, 4096);
    EXPECT_EQ(call("cuGraphExecUpdate_v2", executable, third, static_cast<void*>(&why)), 910);
    EXPECT_EQ(why.result, 2);
    void* const fourth = capture(4, false, 64);
    EXPECT_EQ(call("cuGraphExecUpdate_v2", executable, fourth, static_cast<void*>(&why)), 910);
    EXPECT_EQ(why.result, 5);
    begin();
    EXPECT_EQ(call("cuMemsetD8Async", values, static_cast<unsigned char>(1), size_t{64}, card.stream), 0);
    EXPECT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(pinned), values, size_t{4096}, card.stream), 0);
    EXPECT_EQ(end(), 0);
    void* const fifth = graph;
    EXPECT_EQ(call("cuGraphExecUpdate_v2", executable, fifth, static_cast<void*>(&why)), 910);
    EXPECT_EQ(why.result, 3);  // a node of another kind
    TestCard elsewhere(2);
    elsewhere.function("fill");
    const Address there = elsewhere.allocate(4096);
    EXPECT_EQ(call("cuStreamBeginCapture_v2", elsewhere.stream, kThreadLocal), 0);
    EXPECT_EQ(elsewhere.launch("fill", 4, 256, there, 1024, 1), 0);
    EXPECT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(pinned), there, size_t{4096}, elsewhere.stream), 0);
    void* sixth = nullptr;
    EXPECT_EQ(call("cuStreamEndCapture", elsewhere.stream, &sixth), 0);
    EXPECT_EQ(call("cuGraphExecUpdate_v2", executable, sixth, static_cast<void*>(&why)), 910);
    EXPECT_EQ(why.result, 4);  // a function of another context
    // What was refused has changed nothing.
    EXPECT_EQ(call("cuGraphLaunch", executable, card.stream), 0);
    EXPECT_EQ(card.synchronize(), 0);
    EXPECT_EQ(pinned[7], 2);
    for (void* one : {first, second, third, fourth, fifth, sixth}) EXPECT_EQ(call("cuGraphDestroy", one), 0);
    EXPECT_EQ(call("cuGraphDestroy", first), 1);
    EXPECT_EQ(call("cuGraphExecDestroy", executable), 0);
}

TEST(GraphFaults, AFaultInAGraphEndsTheCard) {
    TestCard card(18);
    const Address out = card.allocate(64);
    card.function("at_offset");
    void *graph = nullptr, *executable = nullptr;
    EXPECT_EQ(call("cuStreamBeginCapture_v2", card.stream, kThreadLocal), 0);
    EXPECT_EQ(card.launch("at_offset", 1, 32, out, 1ll << 20), 0);
    EXPECT_EQ(call("cuStreamEndCapture", card.stream, &graph), 0);
    EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
    EXPECT_EQ(call("cuGraphLaunch", executable, card.stream), 0);
    EXPECT_EQ(card.synchronize(), 700);
}

}  // namespace
}  // namespace tessera::cuda::emulated
