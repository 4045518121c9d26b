#include "core/base/checked.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace tessera {
namespace {

constexpr uint64_t kMaximum = std::numeric_limits<uint64_t>::max();

tsr_code code_of(auto&& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.code();
    }
    return TSR_OK;
}

TEST(Checked, AddsUpToTheLimit) {
    EXPECT_EQ(checked_add<uint64_t>(kMaximum - 1, 1, "sum"), kMaximum);
    EXPECT_EQ(code_of([] { checked_add<uint64_t>(kMaximum, 1, "sum"); }), TSR_CORRUPT_DATA);
}

TEST(Checked, MultipliesUpToTheLimit) {
    EXPECT_EQ(checked_mul<uint64_t>(uint64_t{1} << 32, (uint64_t{1} << 32) - 1, "product"), kMaximum - 0xFFFFFFFF);
    EXPECT_EQ(code_of([] { checked_mul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32, "product"); }),
              TSR_CORRUPT_DATA);
}

TEST(Checked, AlignsUp) {
    EXPECT_EQ(checked_align_up(0, 32, "size"), 0u);
    EXPECT_EQ(checked_align_up(1, 32, "size"), 32u);
    EXPECT_EQ(checked_align_up(32, 32, "size"), 32u);
    EXPECT_EQ(code_of([] { checked_align_up(kMaximum - 3, 32, "size"); }), TSR_CORRUPT_DATA);
}

TEST(Checked, CastsWhatSurvives) {
    EXPECT_EQ(checked_cast<uint32_t>(int64_t{7}, "number"), 7u);
    EXPECT_EQ(code_of([] { checked_cast<uint32_t>(int64_t{-1}, "number"); }), TSR_CORRUPT_DATA);
    EXPECT_EQ(code_of([] { checked_cast<int64_t>(kMaximum, "number"); }), TSR_CORRUPT_DATA);
}

TEST(Checked, MessageNamesTheQuantity) {
    try {
        checked_add<uint32_t>(0xFFFFFFFF, 2, "size of all parts");
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "size of all parts: 4294967295 + 2 overflows");
    }
}

TEST(Error, StatusBecomesAnErrorAndGoesBack) {
    static int destroyed = 0;
    const tsr_status status{.struct_size = sizeof(tsr_status),
                            .code = TSR_DOES_NOT_FIT,
                            .message = "needs 3 bytes more",
                            .destroy = [](const tsr_status*) { ++destroyed; }};
    check(nullptr);
    EXPECT_EQ(destroyed, 0);
    try {
        check(&status);
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_DOES_NOT_FIT);
        EXPECT_STREQ(error.what(), "needs 3 bytes more");
    }
    EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace tessera
