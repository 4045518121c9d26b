// What opening a card and using it says where it cannot be done. Those that need a card are run on emulated ones.
#include "card.hpp"

#include <tessera/cuda/launch.hpp>
#include <tessera/kernel.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr cuda::CardRange kPascal = {600, 620};
constexpr cuda::CardRange kAll = {0, 99990};

struct Told {
    tsr_code code = TSR_OK;
    std::string message;
};
Told told(const tsr_status* status) {
    if (!status) return {};
    Told all{status->code, status->message};
    if (status->destroy) status->destroy(status);
    return all;
}

Told open(const tsr_device_info& info, const cuda::CardRange& range = kAll) {
    const tsr_device_provider provider = cuda::make_provider(range);
    tsr_device* device = nullptr;
    const Told all = told(provider.open(&provider, &info, &device));
    if (device) device->close(device);
    return all;
}

tsr_device_info some_card() {
    tsr_device_info info{};
    info.struct_size = sizeof info;
    info.kind = cuda::kKind;
    info.id = "CUDA0";
    info.compute_capability = 860;
    return info;
}

// The cards here; skips the test where there is no driver.
std::vector<std::unique_ptr<CardInfo>> cards_or_skip() {
    try {
        return list_cards();
    } catch (const sdk::Failure&) {
        return {};
    }
}

TEST(CudaProvider, WithoutADriverItSaysWhatIsMissing) {
    if (!cards_or_skip().empty()) GTEST_SKIP() << "there is a driver";
    const Told refused = open(some_card());
    EXPECT_EQ(refused.code, TSR_NOT_FOUND);
    EXPECT_THAT(refused.message, AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("libcuda.so.1")));
}

// Code that is tried on a newer card is for cards of its major version alone.
TEST(CardRange, ATrialAddsOneMajorVersion) {
    constexpr cuda::CardRange kTrial = {600, 750, 900};
    for (const uint32_t inside : {600u, 610u, 750u, 900u}) EXPECT_TRUE(kTrial.contains(inside)) << inside;
    for (const uint32_t outside : {520u, 800u, 860u, 890u, 1000u, 1200u})
        EXPECT_FALSE(kTrial.contains(outside)) << outside;
    EXPECT_FALSE(kPascal.contains(900));
    EXPECT_FALSE(kPascal.contains(0));
}

TEST(CudaProvider, MatchesTheCardsOfItsRange) {
    const tsr_device_provider provider = cuda::make_provider(kPascal);
    tsr_device_info info = some_card();
    char reason[TSR_REASON_BYTES] = "";
    EXPECT_EQ(provider.match(&provider, &info, reason, sizeof reason), 0u);
    EXPECT_STREQ(reason, "required compute capability 6.0 to 6.2; found 8.6");
    info.compute_capability = 610;
    EXPECT_EQ(provider.match(&provider, &info, reason, sizeof reason), 1u);
    info.kind = "simulated";
    EXPECT_EQ(provider.match(&provider, &info, reason, sizeof reason), 0u);
    EXPECT_EQ(open(some_card(), kPascal).code, TSR_UNSUPPORTED);
}

TEST(CudaProvider, ACardThatIsNotTheDescribedOneIsRefused) {
    const auto cards = cards_or_skip();
    if (cards.empty()) GTEST_SKIP() << "no card here; the test cuda_provider_emulated runs this on emulated cards";
    tsr_device_info info = cards[0]->info;
    info.compute_capability += 10;
    EXPECT_THAT(open(info).message, AllOf(HasSubstr("CUDA0"), HasSubstr(cuda::capability_text(info.compute_capability)),
                                          HasSubstr(cuda::capability_text(info.compute_capability - 10))));
    info = cards[0]->info;
    info.pci_id = "";
    info.index = 1000;
    const Told absent = open(info);
    EXPECT_EQ(absent.code, TSR_NOT_FOUND);
    EXPECT_THAT(absent.message, HasSubstr("index 1000"));
    info.pci_id = "ffff:ff:1f.0";
    EXPECT_EQ(open(info).code, TSR_NOT_FOUND);
}

TEST(CudaProvider, MemoryThatCannotBeHadIsToldInBytes) {
    const auto cards = cards_or_skip();
    if (cards.empty()) GTEST_SKIP() << "no card here; the test cuda_provider_emulated runs this on emulated cards";
    Card card(cards[0]->info);
    void* address = nullptr;
    const Told refused = told(card.device().allocate(&card.device(), uint64_t{1} << 50, &address));
    EXPECT_EQ(refused.code, TSR_DOES_NOT_FIT);
    EXPECT_THAT(refused.message, AllOf(HasSubstr("CUDA0"), HasSubstr("1125899906842624 bytes"), HasSubstr("cuMemAlloc"),
                                       HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"), HasSubstr("are free")));
    // The card can go on.
    EXPECT_EQ(told(card.device().allocate(&card.device(), 1 << 20, &address)).code, TSR_OK);
    card.device().release(&card.device(), address);
}

// Where the driver loses its card at some call: logical devices are several opened devices of one card.
TEST(CudaProvider, ALostCardEndsAllDevicesOnIt) {
    const char* const faults = std::getenv("TESSERA_EMULATED_FAULTS");
    const auto cards = faults ? cards_or_skip() : decltype(cards_or_skip())();
    if (cards.size() < 2)
        GTEST_SKIP() << "no card that is lost here; the test cuda_provider_lost runs this on emulated cards";
    Card first(cards[0]->info), second(cards[0]->info), other(cards[1]->info);
    const auto allocate = [](Card& card) {
        void* address = nullptr;
        const Told all = told(card.device().allocate(&card.device(), 4096, &address));
        if (address) card.device().release(&card.device(), address);
        return all;
    };
    Told lost;
    for (int call = 0; call < 1000 && lost.code == TSR_OK; ++call) lost = allocate(first);
    EXPECT_EQ(lost.code, TSR_DEVICE_LOST) << lost.message;
    for (Card* card : {&first, &second}) {
        EXPECT_EQ(allocate(*card).code, TSR_DEVICE_LOST);
        EXPECT_EQ(told(card->device().wait_queue(&card->device(), card->queue())).code, TSR_DEVICE_LOST);
    }
    EXPECT_EQ(allocate(other).code, TSR_OK) << "another card goes on";
}

TEST(CudaProvider, AModuleWithoutAnImageForTheCardIsRefused) {
    const auto cards = cards_or_skip();
    if (cards.empty()) GTEST_SKIP() << "no card here; the test cuda_provider_emulated runs this on emulated cards";
    Card card(cards[0]->info);
    static const cuda::Image kNone[] = {{99990, false, nullptr, nullptr}};
    static const cuda::Module kModule = {"nothing", kNone, 1};
    try {
        const cuda::Kernel kernel(card.device(), kModule, "none");
        FAIL() << "it was loaded";
    } catch (const sdk::Failure& failure) {
        EXPECT_EQ(failure.code(), TSR_UNSUPPORTED);
        EXPECT_THAT(failure.what(), HasSubstr("nothing was built without kernels for compute capability"));
    }
}

TEST(CudaProvider, ARecordingInWhichACallFailedCannotBeUsed) {
    const auto cards = cards_or_skip();
    if (cards.empty()) GTEST_SKIP() << "no card here; the test cuda_provider_emulated runs this on emulated cards";
    Card card(cards[0]->info);
    tsr_device& device = card.device();
    void* address = nullptr;
    tsr_recording recording = nullptr;
    ASSERT_EQ(told(device.begin_recording(&device, card.queue())).code, TSR_OK);
    EXPECT_EQ(told(device.allocate(&device, 64, &address)).code, TSR_INVALID_ARGUMENT);
    const Told ended = told(device.end_recording(&device, card.queue(), &recording));
    EXPECT_EQ(ended.code, TSR_INVALID_ARGUMENT);
    EXPECT_THAT(ended.message, HasSubstr("allocate while a recording is made"));
    // The queue is as before.
    EXPECT_EQ(told(device.wait_queue(&device, card.queue())).code, TSR_OK);
    EXPECT_EQ(told(device.end_recording(&device, card.queue(), &recording)).code, TSR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tessera::test
