#include "apps/server/end_in_time.hpp"

#include <gtest/gtest.h>

namespace tessera::server {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void wait_for_ever() {
    for (;;) std::this_thread::sleep_for(1h);
}

TEST(EndInTimeDeathTest, WhateverWaitsEndsWithAnError) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto wait = [] {
        EndInTime end;
        end.limit(0s);
        wait_for_ever();
    };
    EXPECT_EXIT(wait(), testing::ExitedWithCode(EXIT_FAILURE), "not everything has ended in 0 s");
}

TEST(EndInTimeDeathTest, WhatGivesMemoryBackEndsWithoutAWord) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto wait = [] {
        EndInTime end;
        end.done();
        end.limit(0s);
        wait_for_ever();
    };
    EXPECT_EXIT(wait(), testing::ExitedWithCode(EXIT_SUCCESS), "^$");
}

}  // namespace
}  // namespace tessera::server
