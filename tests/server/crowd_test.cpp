#include "apps/server/crowd.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tessera::server {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class Someone final : public Occupant {
  public:
    Someone(Crowd& crowd, std::string name, Stage stage, bool in_reserve = false)
        : body(crowd.no_body()), crowd_(crowd) {
        client = network = std::move(name);
        reserved = in_reserve;
        enter(stage);
        crowd_.add(*this);
    }
    ~Someone() override { leave(); }
    uint64_t body_bytes() const override { return body.bytes(); }
    uint64_t unread_bytes() const override { return 0; }
    void leave() override {
        if (std::exchange(here, false)) crowd_.remove(*this);
    }
    bool give_up_body() override {
        if (busy) return false;
        body.reset();
        return true;
    }
    bool wants(uint64_t bytes) {
        progress(bytes - body.bytes());
        return crowd_.grow_body(*this, body, bytes);
    }

    HeldBytes body;
    bool here = true, busy = false;

  private:
    Crowd& crowd_;
};

using Stage = Occupant::Stage;
using Place = Crowd::Place;
constexpr Crowd::Limits kLimits{
    .connections = 4, .of_network = 3, .reserved = 1, .body_bytes = 10 * kMiB, .unread_bytes = kMiB};

TEST(Crowd, WhoHasMostMakesRoomForABody) {
    Crowd crowd(kLimits);
    Someone first(crowd, "a", Stage::kBody), second(crowd, "a", Stage::kBody), other(crowd, "b", Stage::kBody);
    EXPECT_TRUE(first.wants(4 * kMiB));
    EXPECT_TRUE(second.wants(3 * kMiB));
    second.progress(100 * kMiB);
    EXPECT_TRUE(other.wants(5 * kMiB));
    EXPECT_EQ(first.body_bytes(), 0u) << "the slower of the two";
    EXPECT_EQ(second.body_bytes(), 3 * kMiB);
    // Nobody is sent away for one that has more.
    EXPECT_FALSE(other.wants(8 * kMiB));
    EXPECT_EQ(second.body_bytes(), 3 * kMiB);
    EXPECT_FALSE(first.wants(11 * kMiB)) << "more than there is";
}

TEST(Crowd, SmallBodiesHaveTheirOwn) {
    Crowd crowd(kLimits);
    Someone large(crowd, "a", Stage::kResponse), small(crowd, "b", Stage::kBody);
    EXPECT_TRUE(large.wants(10 * kMiB));
    large.busy = true;
    EXPECT_TRUE(small.wants(Crowd::kSmallBody));
    EXPECT_FALSE(small.wants(Crowd::kSmallBody + 1)) << "a thread is at work on the other";
    EXPECT_EQ(crowd.held_bodies(), 10 * kMiB + Crowd::kSmallBody);
}

TEST(Crowd, OneOfTheLargestNetworkLeaves) {
    Crowd crowd(kLimits);
    Someone answer(crowd, "a", Stage::kResponse), idle(crowd, "a", Stage::kIdle), header(crowd, "a", Stage::kHeader);
    EXPECT_EQ(crowd.place_for("b", false), Place::kWhole);
    EXPECT_TRUE(answer.here && idle.here && header.here);
    EXPECT_EQ(crowd.place_for("a", false), Place::kWhole);
    EXPECT_FALSE(idle.here) << "three are all that one network may have";
    Someone again(crowd, "a", Stage::kResponse), other(crowd, "b", Stage::kResponse);
    EXPECT_EQ(crowd.place_for("c", false), Place::kWhole);
    EXPECT_FALSE(header.here);
    Someone third(crowd, "c", Stage::kResponse);
    EXPECT_EQ(crowd.place_for("c", false), Place::kReserved) << "who has as many as the others";
    EXPECT_EQ(crowd.place_for("d", false), Place::kWhole);
    EXPECT_FALSE(again.here) << "the youngest answer";
    EXPECT_EQ(crowd.sent_away(), 3u);
}

TEST(Crowd, RefusedOnesLeaveFirstAndReservedPlacesAreFew) {
    Crowd crowd(kLimits);
    Someone one(crowd, "a", Stage::kResponse), refused(crowd, "b", Stage::kRefused), idle(crowd, "a", Stage::kIdle);
    EXPECT_EQ(crowd.place_for("c", true), Place::kWhole);
    EXPECT_FALSE(refused.here);
    idle.leave();
    Someone reserved(crowd, "c", Stage::kHeader, true);
    EXPECT_EQ(crowd.place_for("a", true), Place::kReserved);
    EXPECT_FALSE(reserved.here);
    EXPECT_TRUE(one.here);
}

TEST(Crowd, NetworksOfAddresses) {
    EXPECT_EQ(network_of("192.0.2.1"), "192.0.2.1");
    EXPECT_EQ(network_of("::ffff:192.0.2.1"), "192.0.2.1");
    EXPECT_EQ(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
    EXPECT_EQ(network_of("2001:db8:1:2::9"), network_of("2001:db8:1:2:ffff::"));
}

}  // namespace
}  // namespace tessera::server
