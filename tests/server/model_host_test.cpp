#include "apps/server/model_host.hpp"

#include "apps/server/api_error.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace tessera::server {
namespace {

TEST(ModelHost, TellsWhenTryingAgainMakesSense) {
    ModelHost host;
    EXPECT_EQ(host.health().seconds_left, 1u) << "nothing is known yet";
    host.progress(0, 100);
    EXPECT_EQ(host.health().seconds_left, 1u);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    host.progress(1, 101);
    EXPECT_GE(host.health().seconds_left, 6u);
    try {
        host.model();
        ADD_FAILURE() << "there is none";
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 503u);
        EXPECT_EQ(error.retry_after, host.health().seconds_left);
    }
    host.progress(1, uint64_t{1} << 60);
    EXPECT_EQ(host.health().seconds_left, 600u);
    host.progress(101, 101);
    EXPECT_EQ(host.health().seconds_left, 1u);
}

}  // namespace
}  // namespace tessera::server
