#include "apps/server/client_limits.hpp"

#include "apps/server/byte_budget.hpp"
#include "core/base/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::server {
namespace {

using Time = ClientAccounts::Clock::time_point;
using std::chrono::seconds;
using testing::HasSubstr;

unsigned status_of(ClientAccounts& accounts, const ClientLimits& limits, uint64_t tokens, Time now) {
    try {
        accounts.admit("a", limits, 4, 1, tokens, now);
        return 200;
    } catch (const ApiError& error) {
        return error.status();
    }
}

unsigned retry_of(ClientAccounts& accounts, const ClientLimits& limits, uint64_t tokens, Time now) {
    try {
        accounts.admit("a", limits, 4, 1, tokens, now);
    } catch (const ApiError& error) {
        EXPECT_EQ(error.code(), "rate_limit_exceeded");
        return error.retry_after;
    }
    return 0;
}

TEST(ClientLimits, AreReadAndKeepWhatIsNotNamed) {
    ClientLimits base;
    base.running = 3;
    const ClientLimits limits =
        parse_client_limits(" waiting=0,requests-per-minute=60\ttokens-per-minute=none\r", base);
    EXPECT_EQ(limits.running, 3u);
    EXPECT_EQ(limits.waiting, 0u);
    EXPECT_EQ(limits.requests_per_minute, 60u);
    EXPECT_EQ(limits.tokens_per_minute, std::nullopt);
    EXPECT_EQ(parse_client_limits("running=none", base).running, std::nullopt);
    EXPECT_EQ(parse_client_limits("", base), base);
}

TEST(ClientLimits, WhatIsNoLimitIsRefused) {
    for (const char* text : {"running", "running=", "running=0", "running=-1", "running=1.5",
                             "running=99999999999999999999", "runing=1", "=4", "tokens-per-minute=0", "waiting=x"}) {
        try {
            parse_client_limits(text);
            ADD_FAILURE() << text;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
            EXPECT_THAT(error.what(), HasSubstr("expected"));
        }
    }
}

TEST(ClientAccounts, RequestsOfAMinuteComeBackEvenly) {
    ClientAccounts accounts;
    const ClientLimits limits = parse_client_limits("requests-per-minute=6");
    Time now{};
    for (int i = 0; i < 6; ++i) EXPECT_EQ(status_of(accounts, limits, 1, now), 200u) << i;
    EXPECT_EQ(retry_of(accounts, limits, 1, now), 10u);
    EXPECT_EQ(status_of(accounts, limits, 1, now + seconds(9)), 429u);
    EXPECT_EQ(status_of(accounts, limits, 1, now + seconds(11)), 200u);
    EXPECT_EQ(status_of(accounts, limits, 1, now + seconds(12)), 429u);
    EXPECT_EQ(accounts.refused(), 3u);
    // Others have theirs.
    EXPECT_NO_THROW(accounts.admit("b", limits, 4, 1, 1, now + seconds(12)));
    for (int i = 0; i < 6; ++i) EXPECT_EQ(status_of(accounts, limits, 1, now + seconds(1000)), 200u) << i;
    EXPECT_EQ(status_of(accounts, limits, 1, now + seconds(1000)), 429u);
}

TEST(ClientAccounts, TokensOfPromptsAndAnswersCount) {
    ClientAccounts accounts;
    const ClientLimits limits = parse_client_limits("tokens-per-minute=600");
    const Time now{};
    const auto ticket = accounts.admit("a", limits, 4, 1, 500, now);
    EXPECT_EQ(retry_of(accounts, limits, 110, now), 1u);
    EXPECT_EQ(status_of(accounts, limits, 100, now), 200u);
    // An answer is not cut; what it exceeds delays the next.
    ticket->use(300);
    EXPECT_EQ(retry_of(accounts, limits, 10, now), 31u);
    EXPECT_EQ(status_of(accounts, limits, 10, now + seconds(32)), 200u);
    // A prompt longer than a minute's share needs a full bucket.
    EXPECT_EQ(status_of(accounts, limits, 10'000, now + seconds(33)), 429u);
    EXPECT_EQ(status_of(accounts, limits, 10'000, now + seconds(200)), 200u);
    EXPECT_GT(retry_of(accounts, limits, 1, now + seconds(200)), 900u);
}

TEST(ClientAccounts, PlacesAreFreeWhenAnswersHaveEnded) {
    ClientAccounts accounts;
    const ClientLimits limits = parse_client_limits("running=1 waiting=2");
    auto first = accounts.admit("a", limits, 4, 1, 1);
    auto second = accounts.admit("a", limits, 4, 2, 1);
    EXPECT_THROW(accounts.admit("a", limits, 4, 1, 1), ApiError);
    ASSERT_TRUE(accounts.refusal("a", limits, 4));
    EXPECT_EQ(accounts.refusal("a", limits, 4)->status(), 429u);
    EXPECT_FALSE(accounts.refusal("b", limits, 4));
    second.reset();
    EXPECT_FALSE(accounts.refusal("a", limits, 4));
    EXPECT_NO_THROW(accounts.admit("a", limits, 4, 2, 1));
    // More than it may ever have.
    try {
        accounts.admit("b", limits, 4, 4, 1);
        ADD_FAILURE();
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 400u);
        EXPECT_EQ(error.parameter(), "n");
    }
    // Without a limit of those that run: as many as the server works on.
    const ClientLimits waiting = parse_client_limits("waiting=0");
    std::vector<std::unique_ptr<ClientAccounts::Ticket>> tickets;
    for (int i = 0; i < 4; ++i) tickets.push_back(accounts.admit("c", waiting, 4, 1, 1));
    EXPECT_THROW(accounts.admit("c", waiting, 4, 1, 1), ApiError);
}

TEST(ClientAccounts, FullPlacesAreToBeTriedAgainWhenOneMayBeFree) {
    ClientAccounts accounts;
    const ClientLimits limits = parse_client_limits("running=1 waiting=1");
    const auto now = ClientAccounts::Clock::now();
    const auto had_for = [&](std::chrono::milliseconds time) { accounts.admit("a", limits, 4, 1, 1, now - time); };
    const auto retry = [&] {
        const auto both = accounts.admit("a", limits, 4, 2, 1, now);
        return retry_of(accounts, limits, 1, now);
    };
    EXPECT_EQ(retry(), 1u) << "nothing is known yet";
    for (int i = 0; i < 50; ++i) had_for(seconds(25));
    EXPECT_THAT(retry(), testing::AllOf(testing::Ge(12u), testing::Le(13u))) << "one of two, each for 25 s";
    for (int i = 0; i < 50; ++i) had_for(seconds(4000));
    EXPECT_EQ(retry(), 60u);
    for (int i = 0; i < 50; ++i) had_for(std::chrono::milliseconds(10));
    EXPECT_EQ(retry(), 1u);
}

TEST(ClientAccounts, ThousandsOfAddressesAreForgotten) {
    ClientAccounts accounts;
    const ClientLimits limits = parse_client_limits("requests-per-minute=1");
    Time now{};
    const auto kept = accounts.admit("kept", limits, 4, 1, 1, now);
    for (int i = 0; i < 5000; ++i)
        EXPECT_NO_THROW(accounts.admit(std::to_string(i), limits, 4, 1, 1, now += seconds(1)));
    // What was used is remembered for as long as it counts.
    EXPECT_THROW(accounts.admit("4999", limits, 4, 1, 1, now), ApiError);
    EXPECT_NO_THROW(accounts.admit("1", limits, 4, 1, 1, now));
}

TEST(ByteBudget, IsSharedAndGivenBack) {
    ByteBudget budget(100);
    HeldBytes one(budget);
    EXPECT_TRUE(one.add(60));
    {
        HeldBytes two(budget);
        EXPECT_FALSE(two.add(41));
        EXPECT_TRUE(two.add(40));
        EXPECT_FALSE(one.add(1));
        two.add_always(1000);
        EXPECT_EQ(budget.used(), 1100u);
    }
    EXPECT_EQ(budget.used(), 60u);
    one.remove(20);
    HeldBytes moved(std::move(one));
    one.remove(5);
    EXPECT_EQ(budget.used(), 40u);
    moved.remove(1000);
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_FALSE(moved.add(UINT64_MAX));
}

}  // namespace
}  // namespace tessera::server
