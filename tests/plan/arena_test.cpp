#include "core/plan/arena.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace tessera {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) {
    const bool in_time = a.first <= b.last && b.first <= a.last;
    const bool in_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
    return in_time && in_space;
}

TEST(Arena, BuffersThatDoNotMeetShareMemory) {
    std::deque<Lifetime> buffers = {{100, 0, 1, 0}, {100, 2, 3, 0}, {50, 4, 4, 0}};
    EXPECT_EQ(pack_lifetimes(buffers, 64), 128u);
    for (const Lifetime& buffer : buffers) EXPECT_EQ(buffer.offset, 0u);
}

TEST(Arena, BuffersThatMeetDoNot) {
    std::deque<Lifetime> buffers = {{100, 0, 2, 0}, {100, 2, 3, 0}};
    EXPECT_EQ(pack_lifetimes(buffers, 64), 256u);
    EXPECT_FALSE(overlap(buffers[0], buffers[1]));
}

TEST(Arena, FillsGaps) {
    // The two long ones leave a hole in the middle of time that the short one fits into.
    std::deque<Lifetime> buffers = {{640, 0, 9, 0}, {320, 0, 2, 0}, {320, 5, 9, 0}, {320, 3, 4, 0}};
    EXPECT_EQ(pack_lifetimes(buffers, 64), 960u);
}

TEST(Arena, NothingTakesNothing) {
    std::deque<Lifetime> none;
    EXPECT_EQ(pack_lifetimes(none, 64), 0u);
}

TEST(Arena, RandomBuffersNeverOverlap) {
    std::mt19937 random(3);
    for (int round = 0; round < 50; ++round) {
        std::deque<Lifetime> buffers(60);
        uint64_t sum = 0, live_most = 0;
        for (Lifetime& buffer : buffers) {
            buffer.bytes = 1 + random() % 5000;
            buffer.first = random() % 100;
            buffer.last = buffer.first + random() % 20;
            sum += (buffer.bytes + 63) / 64 * 64;
        }
        for (uint32_t step = 0; step < 120; ++step) {
            uint64_t live = 0;
            for (const Lifetime& b : buffers) live += b.first <= step && step <= b.last ? b.bytes : 0;
            live_most = std::max(live_most, live);
        }
        const uint64_t total = pack_lifetimes(buffers, 64);
        EXPECT_LE(total, sum);
        EXPECT_GE(total, live_most);
        EXPECT_LE(total, live_most * 2) << "twice what lives at once is a poor packing";
        for (size_t i = 0; i < buffers.size(); ++i) {
            EXPECT_EQ(buffers[i].offset % 64, 0u);
            EXPECT_LE(buffers[i].offset + buffers[i].bytes, total);
            for (size_t k = 0; k < i; ++k) EXPECT_FALSE(overlap(buffers[i], buffers[k]));
        }
    }
}

}  // namespace
}  // namespace tessera
