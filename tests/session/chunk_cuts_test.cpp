// Where prompts are cut.
#include "core/session/chunk_cuts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tessera::session {
namespace {

std::vector<uint32_t> cuts(const ChunkCuts& chunks, uint32_t begin, uint32_t end) {
    std::vector<uint32_t> all;
    while (begin < end) all.push_back(begin = chunks.after(begin));
    return all;
}

// 1 s for a page at the beginning, 3 s after 3,200 tokens.
std::vector<ChunkTime> times() {
    return {{64, 1, 3}, {128, 2, 6}, {192, 3, 9}};
}

TEST(ChunkCuts, WithoutABoundAllChunksAreTheSame) {
    const ChunkCuts chunks(192, 0, 3200, times());
    EXPECT_EQ(cuts(chunks, 0, 700), (std::vector<uint32_t>{192, 384, 576, 768}));
    EXPECT_EQ(chunks.after(191), 192u);
    EXPECT_EQ(chunks.after(192), 384u);
    EXPECT_EQ(chunks.rows_at(200), 192u);
}

TEST(ChunkCuts, ChunksAreSmallerWhereAStepWouldTakeLonger) {
    // 192 rows take 6 s after 1,600 tokens, 128 after 3,200.
    const ChunkCuts chunks(192, 6, 3200, times());
    EXPECT_EQ(chunks.rows_at(0), 192u);
    EXPECT_EQ(cuts(chunks, 1400, 2000), (std::vector<uint32_t>{1536, 1728, 1856, 1984, 2112}));
    EXPECT_EQ(chunks.rows_at(3100), 128u);
}

// Where all steps are long, only those are cut that are much longer than the first: 3.75 s, after 400 tokens with 192
// rows, after 1,400 with 128.
TEST(ChunkCuts, AStepAtTheBeginningIsWhatOthersAreHeldAgainst) {
    const ChunkCuts chunks(192, 0.1, 3200, times());
    EXPECT_EQ(cuts(chunks, 0, 900), (std::vector<uint32_t>{192, 384, 576, 704, 832, 960}));
    EXPECT_EQ(chunks.rows_at(1700), 64u);
    EXPECT_EQ(chunks.rows_at(3100), 64u) << "no less than a page";
}

TEST(ChunkCuts, RowsThatAreLessThanAPageStay) {
    const ChunkCuts odd(40, 0.1, 3200, std::vector<ChunkTime>{{40, 1, 2}});
    EXPECT_EQ(cuts(odd, 0, 100), (std::vector<uint32_t>{40, 80, 120}));
}

// A prompt that goes on behind a cached prefix is cut where it is cut from its beginning.
TEST(ChunkCuts, FollowFromPositionsAlone) {
    const ChunkCuts chunks(192, 4, 3200, times());
    const std::vector<uint32_t> all = cuts(chunks, 0, 3200);
    for (uint32_t begin = 0; begin < 3200; begin += 7) {
        const auto next = std::ranges::upper_bound(all, begin);
        EXPECT_EQ(chunks.after(begin), *next) << begin;
        EXPECT_EQ(chunks.rows_at(begin), *next - (next == all.begin() ? 0 : *(next - 1))) << begin;
    }
}

}  // namespace
}  // namespace tessera::session
