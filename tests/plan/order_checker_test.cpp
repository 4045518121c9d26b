#include "core/plan/order_checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

OrderChecker checker(size_t tracks) {
    return {tracks, [](uint32_t arena) { return "arena " + std::to_string(arena); }};
}

Access bytes(uint64_t begin, uint64_t end, bool writes, uint32_t arena = 0) {
    return {arena, begin, end, writes};
}

void touch(OrderChecker& order, TrackIndex track, const Access& access, const char* what) {
    order.start(track);
    order.access(track, access, what);
}

TEST(OrderChecker, FindsAReadBesideAWrite) {
    OrderChecker order = checker(3);
    touch(order, 1, bytes(0, 100, true), "writer");
    touch(order, 2, bytes(50, 60, false), "reader");
    EXPECT_THAT(order.faults(), ElementsAre("arena 0: nothing orders writer and reader"));
}

TEST(OrderChecker, FindsAWriteBesideAnEarlierRead) {
    OrderChecker order = checker(3);
    touch(order, 1, bytes(0, 100, false), "reader");
    touch(order, 2, bytes(99, 200, true), "writer");
    EXPECT_THAT(order.faults(), ElementsAre(HasSubstr("reader and writer")));
}

TEST(OrderChecker, FindsWritesBesideEachOtherWhateverCameBetween) {
    OrderChecker order = checker(4);
    touch(order, 1, bytes(0, 10, true), "one");
    touch(order, 2, bytes(20, 30, true), "elsewhere");
    const VectorClock event = order.record(2);
    order.wait(3, event);
    touch(order, 3, bytes(0, 30, true), "other");
    EXPECT_THAT(order.faults(), ElementsAre(HasSubstr("one and other")));
}

TEST(OrderChecker, AnEventOrders) {
    OrderChecker order = checker(3);
    touch(order, 1, bytes(0, 100, true), "writer");
    const VectorClock event = order.record(1);
    order.wait(2, event);
    touch(order, 2, bytes(0, 100, false), "reader");
    EXPECT_THAT(order.faults(), IsEmpty());
}

TEST(OrderChecker, AnEventDoesNotOrderWhatCameAfterIt) {
    OrderChecker order = checker(3);
    touch(order, 1, bytes(0, 10, true), "before");
    const VectorClock event = order.record(1);
    touch(order, 1, bytes(10, 20, true), "after");
    order.wait(2, event);
    touch(order, 2, bytes(0, 20, false), "reader");
    EXPECT_THAT(order.faults(), ElementsAre(HasSubstr("after and reader")));
}

TEST(OrderChecker, EventsReachThroughOtherLanes) {
    OrderChecker order = checker(4);
    touch(order, 1, bytes(0, 10, true), "writer");
    order.wait(2, VectorClock(order.record(1)));
    touch(order, 2, bytes(50, 60, true), "between");
    order.wait(3, VectorClock(order.record(2)));
    touch(order, 3, bytes(0, 60, true), "last");
    EXPECT_THAT(order.faults(), IsEmpty());
}

TEST(OrderChecker, WorkComesAfterWhatTheHostHasDone) {
    OrderChecker order = checker(2);
    touch(order, 0, bytes(0, 10, true), "host");
    touch(order, 1, bytes(0, 10, false), "device");
    EXPECT_THAT(order.faults(), IsEmpty());
    touch(order, 0, bytes(0, 10, true), "host again");
    EXPECT_THAT(order.faults(), ElementsAre(HasSubstr("device and host again")));
}

TEST(OrderChecker, ReadersAndOtherArenasAreApart) {
    OrderChecker order = checker(3);
    touch(order, 1, bytes(0, 10, false), "one");
    touch(order, 2, bytes(0, 10, false), "two");
    touch(order, 2, bytes(0, 10, true, 1), "other arena");
    EXPECT_THAT(order.faults(), IsEmpty());
}

TEST(OrderChecker, ManyPartsOfOneRange) {
    OrderChecker order = checker(3);
    for (uint64_t i = 0; i < 20; ++i) touch(order, 1, bytes(10 * i, 10 * i + 10, true), "part");
    order.wait(2, VectorClock(order.record(1)));
    touch(order, 1, bytes(55, 56, true), "late part");
    touch(order, 2, bytes(0, 200, false), "reader");
    EXPECT_THAT(order.faults(), ElementsAre("arena 0: nothing orders late part and reader"));
}

}  // namespace
}  // namespace tessera
