// How emulated cards are described.
#include "sdk/cuda/driver/description.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace tessera::cuda::emulated {
namespace {

std::string refusal(const std::string& text) {
    try {
        parse_cards(text);
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "";
}

TEST(CardDescriptions, AreThoseOfACardOfTheCapability) {
    const auto cards = parse_cards("8.6:24GiB;6.1:11GB:name=GTX 1080 Ti:sms=28:bandwidth=484:clock=1582:l2=2.75;8.6");
    ASSERT_EQ(cards.size(), 3u);
    EXPECT_EQ(cards[0].name, "NVIDIA GeForce RTX 3090");
    EXPECT_EQ(cards[0].memory, 24ull << 30);
    EXPECT_EQ(cards[0].peers, 4u);  // the other 8.6
    EXPECT_EQ(cards[1].name, "GTX 1080 Ti");
    EXPECT_EQ(cards[1].memory, 11000000000u);
    EXPECT_EQ(cards[1].processors, 28u);
    EXPECT_EQ(cards[1].clock_khz, 1582000u);
    EXPECT_EQ(cards[1].l2_bytes, 2883584u);
    EXPECT_EQ(cards[1].peers, 0u);
    EXPECT_NEAR(2e3 * cards[1].memory_clock_khz * cards[1].bus_bits / 8, 484e9, 1e6);
    EXPECT_EQ(parse_cards("8.0:40GiB:peers=1;9.0:80GiB:peers=none")[0].peers, 2u);
    EXPECT_TRUE(parse_cards("").empty());
}

TEST(CardDescriptions, SayWhatIsWrong) {
    using testing::HasSubstr;
    EXPECT_THAT(refusal("5.2:4GiB"), HasSubstr("6.0 6.1 7.0 7.5 8.0 8.6 8.9 9.0 10.0 12.0; found \"5.2:4GiB\""));
    EXPECT_THAT(refusal("8.6:24"), HasSubstr("memory in GiB, MiB, GB or MB"));
    EXPECT_THAT(refusal("8.6:-1GiB"), HasSubstr("a positive number as memory"));
    EXPECT_THAT(refusal("8.6:24GiB:colour=red"), HasSubstr("the keys name, sms"));
    EXPECT_THAT(refusal("8.6:24GiB:peers=x"), HasSubstr("numbers of cards"));
    EXPECT_THAT(refusal("8.6:24GiB:sms=4x"), HasSubstr("a positive number as sms"));
    EXPECT_THAT(refusal("8.6:24GiB;"), HasSubstr("found \"\""));
}

}  // namespace
}  // namespace tessera::cuda::emulated
