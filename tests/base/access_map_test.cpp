#include "core/base/access_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(VectorClock, JoinsAndReaches) {
    VectorClock clock = {3, 1};
    join(clock, {1, 2, 5});
    EXPECT_THAT(clock, ElementsAre(3, 2, 5));
    EXPECT_TRUE(reaches(clock, 2, 5));
    EXPECT_FALSE(reaches(clock, 2, 6));
    EXPECT_FALSE(reaches(clock, 3, 1));
}

constexpr auto never = [](int) { return false; };

std::vector<int> conflicts(const AccessMap<int>& map, uint64_t begin, uint64_t end, bool writes) {
    std::vector<int> found;
    map.conflicts(begin, end, writes, never, [&](int visit, bool, uint64_t) {
        found.push_back(visit);
        return true;
    });
    return found;
}

TEST(AccessMap, KnowsTheWriterAndTheReadersSince) {
    AccessMap<int> map;
    map.note(0, 100, true, 1, never);
    map.note(50, 60, false, 2, never);
    map.note(55, 120, false, 3, never);
    EXPECT_THAT(conflicts(map, 58, 59, true), ElementsAre(1, 2, 3));
    EXPECT_THAT(conflicts(map, 58, 59, false), ElementsAre(1));
    EXPECT_THAT(conflicts(map, 119, 200, true), ElementsAre(3));
    EXPECT_THAT(conflicts(map, 120, 200, true), IsEmpty());
    map.note(40, 130, true, 4, never);
    EXPECT_THAT(conflicts(map, 58, 59, true), ElementsAre(4));
}

TEST(AccessMap, AReaderThatIsOrderedBeforeAnotherIsLeftOut) {
    AccessMap<int> map;
    map.note(0, 10, false, 1, never);
    map.note(5, 10, false, 2, [](int visit) { return visit == 1; });
    EXPECT_THAT(conflicts(map, 0, 5, true), ElementsAre(1));
    EXPECT_THAT(conflicts(map, 5, 10, true), ElementsAre(2));
}

TEST(AccessMap, StopsWhenTold) {
    AccessMap<int> map;
    map.note(0, 10, true, 1, never);
    map.note(20, 30, true, 2, never);
    std::vector<uint64_t> places;
    map.conflicts(5, 25, true, never, [&](int, bool wrote, uint64_t first) {
        EXPECT_TRUE(wrote);
        places.push_back(first);
        return places.size() < 1;
    });
    EXPECT_THAT(places, ElementsAre(5));
}

TEST(AccessMap, RangesThatDoNotDifferAreOne) {
    AccessMap<int> map;
    for (uint64_t i = 0; i < 100; ++i) map.note(10 * i, 10 * i + 10, true, 1, never);
    EXPECT_EQ(map.size(), 1u);
    map.note(55, 56, true, 2, never);
    EXPECT_EQ(map.size(), 3u);
    map.note(55, 56, true, 1, never);
    EXPECT_EQ(map.size(), 1u);
}

// Beside a list of each byte's visits.
TEST(AccessMap, RandomRangesAreThoseOfSingleBytes) {
    constexpr uint64_t kBytes = 48;
    std::mt19937 random(1);
    for (int round = 0; round < 20; ++round) {
        AccessMap<int> map;
        std::vector<std::pair<int, std::set<int>>> bytes(kBytes, {-1, {}});
        for (int visit = 0; visit < 200; ++visit) {
            const uint64_t begin = random() % kBytes, end = begin + random() % (kBytes - begin + 1);
            if (random() % 8 == 0) {
                map.forget(begin, end);
                for (uint64_t i = begin; i < end; ++i) bytes[i] = {-1, {}};
                continue;
            }
            const bool writes = random() % 2 == 0;
            const int old = visit - 20;  // what is older is ordered before
            map.note(begin, end, writes, visit, [&](int earlier) { return earlier < old; });
            for (uint64_t i = begin; i < end; ++i) {
                if (writes)
                    bytes[i] = {visit, {}};
                else
                    std::erase_if(bytes[i].second, [&](int earlier) { return earlier < old; }),
                        bytes[i].second.insert(visit);
            }
            for (uint64_t i = 0; i < kBytes; ++i) {
                const auto* const at = map.find(i);
                const std::set<int> readers =
                    at ? std::set<int>(at->readers.begin(), at->readers.end()) : std::set<int>();
                ASSERT_EQ(at && at->writer ? *at->writer : -1, bytes[i].first)
                    << round << " " << visit << " byte " << i;
                ASSERT_EQ(readers, bytes[i].second) << round << " " << visit << " byte " << i;
            }
        }
    }
}

}  // namespace
}  // namespace tessera
