// How emulated cards are described.
#include "testing/emulated_cuda/driver/description.hpp"

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
    const auto more = parse_cards("8.6:24GiB:link=pcie3x4:taken=2GiB:ptx=8.4;6.1;9.0");
    EXPECT_EQ(more[0].link_generation, 3u);
    EXPECT_EQ(more[0].link_lanes, 4u);
    EXPECT_EQ(more[0].taken, 2ull << 30);
    EXPECT_EQ(more[0].ptx_version, 84u);
    EXPECT_EQ(more[1].link_generation, 3u);
    EXPECT_EQ(more[2].link_generation, 5u);
    EXPECT_EQ(more[2].link_lanes, 16u);
    EXPECT_EQ(more[2].ptx_version, 88u);  // of driver 12.9
}

// Such as the newest one before it, but for its name.
TEST(CardDescriptions, OfACapabilityThatIsNotKnownYet) {
    const auto cards = parse_cards("13.0:24GiB;12.0;8.7");
    EXPECT_EQ(cards[0].capability, 1300u);
    EXPECT_EQ(cards[0].name, "GPU of compute capability 13.0");
    EXPECT_EQ(cards[0].processors, cards[1].processors);
    EXPECT_EQ(cards[0].limits.shared_per_block, 99u << 10);
    EXPECT_EQ(cards[0].peers, 0u);
    EXPECT_EQ(cards[2].capability, 870u);
    EXPECT_EQ(cards[2].limits.threads_per_processor, 1536u);
}

TEST(CardDescriptions, SayWhatIsWrong) {
    using testing::HasSubstr;
    EXPECT_THAT(refusal("5.2:4GiB"),
                HasSubstr("6.0 6.1 7.0 7.5 8.0 8.6 8.9 9.0 10.0 12.0 or later; found \"5.2:4GiB\""));
    EXPECT_THAT(refusal("8.6:24"), HasSubstr("memory in GiB, MiB, GB or MB"));
    EXPECT_THAT(refusal("8.6:-1GiB"), HasSubstr("a positive number as memory"));
    EXPECT_THAT(refusal("8.6:24GiB:colour=red"), HasSubstr("the keys name, sms"));
    EXPECT_THAT(refusal("8.6:24GiB:peers=x"), HasSubstr("numbers of cards"));
    EXPECT_THAT(refusal("8.6:24GiB:sms=4x"), HasSubstr("a positive number as sms"));
    for (const char* wrong : {"8.6x:24GiB", "8.:24GiB", "8.60:24GiB", "8:24GiB", ".6:24GiB", "-8.6:24GiB"})
        EXPECT_THAT(refusal(wrong), HasSubstr("a compute capability of")) << wrong;
    for (const char* wrong : {"pcie7x16", "pcie4x32", "pcie4x", "pciex16", "pcie4", "nvlink", "pcie4x16x", ""})
        EXPECT_THAT(refusal(std::string("8.6:24GiB:link=") + wrong), HasSubstr("pcie1x1 to pcie6x16")) << wrong;
    EXPECT_THAT(refusal("8.6:24GiB:taken=25GiB"), HasSubstr("no more memory taken than the card has"));
    EXPECT_THAT(refusal("8.6:24GiB:ptx=8"), HasSubstr("a version of PTX"));
    EXPECT_THAT(refusal("8.6:24GiB;"), HasSubstr("found \"\""));
}

}  // namespace
}  // namespace tessera::cuda::emulated
