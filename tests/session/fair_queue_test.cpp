#include "core/session/fair_queue.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace tessera::session {
namespace {

using Queue = FairQueue<std::string>;
using Time = Queue::Clock::time_point;

std::string served(Queue& queue, Time now = {}) {
    std::string order;
    while (!queue.empty()) {
        const std::string front = queue.front(now);
        const std::string item = queue.pop(now);
        EXPECT_EQ(item, front);
        order += item;
    }
    return order;
}

TEST(FairQueue, OneClientIsServedInOrder) {
    Queue queue(100, std::chrono::seconds(60));
    for (const char* item : {"a", "b", "c"}) queue.push("x", 1000, item, {});
    EXPECT_EQ(queue.size(), 3u);
    EXPECT_EQ(queue.cost(), 3000u);
    EXPECT_EQ(served(queue), "abc");
    EXPECT_EQ(queue.cost(), 0u);
}

TEST(FairQueue, ClientsTakeTurnsByCostNotByNumber) {
    Queue queue(100, std::chrono::seconds(60));
    for (int i = 0; i < 8; ++i) queue.push("flood", 100, "f", {});
    for (int i = 0; i < 8; ++i) queue.push("light", 50, "l", {});
    // In each round the flood may have one, the other client two.
    EXPECT_EQ(served(queue).substr(0, 9), "fllfllfll");
}

TEST(FairQueue, AnExpensiveRequestWaitsForSeveralRounds) {
    Queue queue(100, std::chrono::seconds(60));
    queue.push("big", 350, "B", {});
    for (int i = 0; i < 6; ++i) queue.push("small", 100, "s", {});
    EXPECT_EQ(served(queue), "sssBsss");
}

TEST(FairQueue, AgeGoesBeforeTurns) {
    Queue queue(100, std::chrono::seconds(60));
    const Time start{};
    queue.push("a", 10, "1", start);
    queue.push("b", 10000, "2", start);
    queue.push("a", 10, "3", start + std::chrono::seconds(50));
    EXPECT_EQ(queue.pop(start + std::chrono::seconds(55)), "1");
    EXPECT_EQ(queue.front(start + std::chrono::seconds(61)), "2");
    EXPECT_EQ(served(queue, start + std::chrono::seconds(61)), "23");
}

TEST(FairQueue, TheOldestThatIsPreferredGoesFirst) {
    Queue queue(100, std::chrono::seconds(60));
    const Time start{};
    queue.push("a", 10, "1", start);
    queue.push("b", 10, "2", start + std::chrono::seconds(2));
    queue.push("c", 10, "3", start + std::chrono::seconds(1));
    EXPECT_EQ(queue.front(start), "1");
    EXPECT_FALSE(queue.prefer([](const std::string&) { return false; }));
    EXPECT_EQ(queue.front(start), "1");
    EXPECT_TRUE(queue.prefer([](const std::string& item) { return item != "1"; }));
    EXPECT_EQ(served(queue), "312");
}

TEST(FairQueue, WhatIsErasedIsGivenBack) {
    Queue queue(100, std::chrono::seconds(60));
    queue.push("a", 10, "1", {});
    queue.push("a", 20, "2", {});
    queue.push("b", 30, "3", {});
    EXPECT_EQ(queue.front({}), "1");
    std::vector<std::string> taken;
    queue.erase_if([](const std::string& item) { return item != "2"; },
                   [&](std::string item) { taken.push_back(std::move(item)); });
    EXPECT_EQ(taken, (std::vector<std::string>{"1", "3"}));
    EXPECT_EQ(queue.cost(), 20u);
    EXPECT_EQ(served(queue), "2");
}

// Whatever the arrivals: while both wait, neither client gets more than a quantum and a request ahead of its share.
TEST(FairQueue, SharesDifferByNoMoreThanAQuantumAndARequest) {
    constexpr uint64_t kQuantum = 500;
    Queue queue(kQuantum, std::chrono::seconds(60));
    std::map<std::string, uint64_t> costs;
    uint32_t random = 7;
    const auto next = [&] { return random = random * 1664525 + 1013904223; };
    uint64_t largest = 0;
    for (int i = 0; i < 400; ++i) {
        const uint64_t cost = 1 + next() % 900;
        largest = std::max(largest, cost);
        const std::string item = std::string(1, i % 2 ? 'a' : 'b') + std::to_string(i);
        costs[item] = cost;
        queue.push(item.substr(0, 1), cost, item, {});
    }
    std::map<char, int64_t> share;
    for (int i = 0; i < 250; ++i) {
        const std::string item = queue.pop({});
        share[item[0]] += static_cast<int64_t>(costs[item]);
        EXPECT_LE(std::abs(share['a'] - share['b']), static_cast<int64_t>(kQuantum + 2 * largest));
    }
}

TEST(FairQueue, ClientsThatMayNotBeServedArePassedOver) {
    FairQueue<std::string> queue(1, std::chrono::seconds(60));
    queue.push("a", 1, "a1", {});
    queue.push("b", 5, "b1", {});
    queue.push("a", 1, "a2", {});
    const auto not_a = [](const std::string& item) { return !item.starts_with('a'); };
    ASSERT_NE(queue.front({}, not_a), nullptr);
    EXPECT_EQ(*queue.front({}, not_a), "b1");
    EXPECT_EQ(queue.pop({}), "b1");
    EXPECT_EQ(queue.front({}, not_a), nullptr);
    // Nor does age help them.
    EXPECT_EQ(queue.front(std::chrono::steady_clock::time_point(std::chrono::seconds(100)), not_a), nullptr);
    EXPECT_EQ(queue.size(), 2u);
    EXPECT_EQ(queue.pop({}), "a1");
    EXPECT_EQ(queue.pop({}), "a2");
}

}  // namespace
}  // namespace tessera::session
