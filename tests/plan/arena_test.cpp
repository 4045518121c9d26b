#include "core/plan/arena.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tessera {
namespace {

struct Buffer {
    uint64_t bytes;
    uint32_t first, last;  // when it is used
};

bool together(const Buffer& a, const Buffer& b) {
    return a.first <= b.last && b.first <= a.last;
}

struct Packed {
    std::vector<uint64_t> offsets;
    uint64_t total = 0;
};

Packed pack(const std::vector<Buffer>& buffers) {
    std::vector<uint64_t> bytes;
    for (const Buffer& buffer : buffers) bytes.push_back(buffer.bytes);
    Packed packed;
    packed.offsets = pack_buffers(
        bytes, 64, [&](size_t a, size_t b) { return together(buffers[a], buffers[b]); }, packed.total);
    return packed;
}

TEST(Arena, BuffersThatDoNotMeetShareMemory) {
    const Packed packed = pack({{100, 0, 1}, {100, 2, 3}, {50, 4, 4}});
    EXPECT_EQ(packed.total, 128u);
    for (const uint64_t offset : packed.offsets) EXPECT_EQ(offset, 0u);
}

TEST(Arena, BuffersThatMeetDoNot) {
    const Packed packed = pack({{100, 0, 2}, {100, 2, 3}});
    EXPECT_EQ(packed.total, 256u);
    EXPECT_NE(packed.offsets[0], packed.offsets[1]);
}

TEST(Arena, FillsGaps) {
    // The two long ones leave a hole in the middle of time that the short one fits into.
    EXPECT_EQ(pack({{640, 0, 9}, {320, 0, 2}, {320, 5, 9}, {320, 3, 4}}).total, 960u);
}

TEST(Arena, NothingTakesNothing) {
    EXPECT_EQ(pack({}).total, 0u);
}

TEST(Arena, TimeNeedNotBeALine) {
    // A ring of four, each used at the same time as its neighbours: no intervals say that.
    const std::vector<uint64_t> bytes(4, 64);
    uint64_t total = 0;
    const auto offsets = pack_buffers(
        bytes, 64, [](size_t a, size_t b) { return (a + 1) % 4 == b || (b + 1) % 4 == a; }, total);
    EXPECT_EQ(total, 128u);
    for (size_t i = 0; i < 4; ++i) EXPECT_NE(offsets[i], offsets[(i + 1) % 4]);
}

TEST(Arena, RandomBuffersNeverOverlap) {
    std::mt19937 random(3);
    for (int round = 0; round < 50; ++round) {
        std::vector<Buffer> buffers(60);
        uint64_t sum = 0, live_maximum = 0;
        for (Buffer& buffer : buffers) {
            buffer.bytes = 1 + random() % 5000;
            buffer.first = random() % 100;
            buffer.last = buffer.first + random() % 20;
            sum += (buffer.bytes + 63) / 64 * 64;
        }
        for (uint32_t time = 0; time < 120; ++time) {
            uint64_t live = 0;
            for (const Buffer& b : buffers) live += b.first <= time && time <= b.last ? b.bytes : 0;
            live_maximum = std::max(live_maximum, live);
        }
        const Packed packed = pack(buffers);
        EXPECT_LE(packed.total, sum);
        EXPECT_GE(packed.total, live_maximum);
        EXPECT_LE(packed.total, live_maximum * 2) << "twice what lives at once is a poor packing";
        for (size_t i = 0; i < buffers.size(); ++i) {
            const uint64_t begin = packed.offsets[i], end = begin + buffers[i].bytes;
            EXPECT_EQ(begin % 64, 0u);
            EXPECT_LE(end, packed.total);
            for (size_t k = 0; k < i; ++k) {
                const bool in_space = begin < packed.offsets[k] + buffers[k].bytes && packed.offsets[k] < end;
                EXPECT_FALSE(in_space && together(buffers[i], buffers[k]));
            }
        }
    }
}

}  // namespace
}  // namespace tessera
