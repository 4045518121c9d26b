#include "apps/server/request_workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <thread>

namespace tessera::server {
namespace {

constexpr uint64_t kLarge = RequestWorkers::kSmallBytes + 1;

// Keeps the thread that takes large bodies at work until it is released; outlives the workers.
class Occupation {
  public:
    void begin(RequestWorkers& workers, const char* client) {
        workers.post(client, kLarge, [this] {
            begun_.set_value();
            release_.get_future().wait();
        });
        begun_.get_future().wait();
    }
    void release() { release_.set_value(); }

  private:
    std::promise<void> begun_, release_;
};

TEST(RequestWorkers, SmallBodiesDoNotWaitForLargeOnes) {
    Occupation occupation;
    RequestWorkers workers;
    std::promise<void> done;
    occupation.begin(workers, "a");
    std::atomic<bool> large{false};
    workers.post("a", kLarge, [&] { large = true; });
    workers.post("a", RequestWorkers::kSmallBytes, [&] { done.set_value(); });
    done.get_future().wait();
    EXPECT_FALSE(large);
    occupation.release();
    workers.stop();
}

TEST(RequestWorkers, ClientsTakeTurns) {
    Occupation occupation;
    RequestWorkers workers;
    std::promise<void> done;
    occupation.begin(workers, "flood");
    int before = 0, flood = 0;  // of the one thread that takes large ones
    for (int i = 0; i < 9; ++i) workers.post("flood", 4 << 20, [&] { ++flood; });
    workers.post("light", kLarge, [&] {
        before = flood;
        done.set_value();
    });
    occupation.release();
    done.get_future().wait();
    EXPECT_LT(before, 5);
    workers.stop();
}

TEST(RequestWorkers, WorkThatThrowsEndsNothingElse) {
    RequestWorkers workers;
    std::promise<void> done;
    for (int i = 0; i < 3; ++i) workers.post("a", 1, [] { throw std::bad_alloc(); });
    workers.post("a", 1, [&] { done.set_value(); });
    done.get_future().wait();
    workers.stop();
}

TEST(RequestWorkers, WhatRunsIsFinishedAndNothingIsKept) {
    auto held = std::make_shared<int>();
    std::atomic<bool> finished{false};
    std::promise<void> begun;
    {
        RequestWorkers workers;
        workers.post("a", kLarge, [&] {
            begun.set_value();
            // So that it is likely to be at work when it is to stop; the outcome is the same if not.
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            finished = true;
        });
        begun.get_future().wait();
        for (int i = 0; i < 3; ++i) workers.post("a", kLarge, [held] {});
    }
    EXPECT_TRUE(finished);
    EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace tessera::server
