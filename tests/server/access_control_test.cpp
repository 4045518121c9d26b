#include "apps/server/access_control.hpp"

#include "core/base/error.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace tessera::server {
namespace {

// Of HTTP/1.0, which needs no Host.
unsigned status_of(const ServerSettings& settings, Headers headers, bool needs_key = true, unsigned version = 10) {
    const AccessControl access(settings);
    HttpRequest request;
    request.version = version;
    request.headers = std::move(headers);
    const auto refusal = access.refusal(request, needs_key);
    return refusal ? refusal->status() : 200;
}

TEST(AccessControl, NamesOfALoopbackServer) {
    const ServerSettings settings;
    for (const char* host : {"localhost", "LOCALHOST:99", "127.0.0.1:8080", "[::1]:8080", "127.3.2.1"})
        EXPECT_EQ(status_of(settings, {{"host", host}}), 200u) << host;
    for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1"})
        EXPECT_EQ(status_of(settings, {{"host", host}}), 421u) << host;
    EXPECT_EQ(status_of(settings, {}), 200u) << "HTTP/1.0 names none";
    EXPECT_EQ(status_of(settings, {}, true, 11), 400u) << "HTTP/1.1 has to";
    EXPECT_EQ(status_of(settings, {{"host", "localhost"}}, true, 11), 200u);
    EXPECT_EQ(status_of(settings, {{"host", "localhost"}, {"host", "evil.example"}}), 400u);
}

TEST(AccessControl, AServerForOthersTakesAnyNameUnlessItHasAList) {
    ServerSettings settings;
    settings.host = "0.0.0.0";
    EXPECT_EQ(status_of(settings, {{"host", "box.lan"}}), 200u);
    settings.hosts = {"box.lan"};
    EXPECT_EQ(status_of(settings, {{"host", "box.lan:8080"}}), 200u);
    EXPECT_EQ(status_of(settings, {{"host", "other.lan"}}), 421u);
}

TEST(AccessControl, KeysAreComparedWhole) {
    ServerSettings settings;
    settings.keys = {"alpha", "beta"};
    for (const char* value : {"Bearer alpha", "bearer beta"})
        EXPECT_EQ(status_of(settings, {{"authorization", value}}), 200u) << value;
    for (const char* value :
         {"Bearer", "Bearer ", "Bearer alph", "Bearer alphaa", "Bearer gamma", "alpha", "Basic alpha"})
        EXPECT_EQ(status_of(settings, {{"authorization", value}}), 401u) << value;
    EXPECT_EQ(status_of(settings, {}, false), 200u);
}

TEST(AccessControl, ClientsAreToldApartByKeyElseByAddress) {
    ServerSettings settings;
    settings.keys = {"alpha", "beta"};
    const AccessControl access(settings);
    HttpRequest one, two;
    one.address = two.address = "10.0.0.1";
    one.headers = {{"authorization", "Bearer alpha"}};
    two.headers = {{"authorization", "Bearer beta"}};
    EXPECT_NE(access.sender_of(one).client, access.sender_of(two).client);
    EXPECT_NE(access.sender_of(one).space, access.sender_of(two).space);
    EXPECT_EQ(access.sender_of(one).client.find("alpha"), std::string::npos);
    ServerSettings open;
    const AccessControl free(open);
    EXPECT_EQ(free.sender_of(one).client, "10.0.0.1");
    EXPECT_EQ(free.sender_of(one).space, free.sender_of(two).space);
}

TEST(AccessControl, AKeyFileMustHoldKeys) {
    ServerSettings settings;
    settings.key_file = "/proc/nowhere/keys";
    EXPECT_THROW(AccessControl{settings}, Error);
}

TEST(AccessControl, KeysHaveLimitsAndStayTheSameClients) {
    const test::TemporaryFolder folder;
    const auto write = [&](const char* text) { folder.write("keys", text); };
    write("# of the team\nalpha running=1\nbeta waiting=3 running=none # no comment\n");
    ServerSettings settings;
    settings.key_file = folder.file("keys");
    settings.client_limits = parse_client_limits("running=2 tokens-per-minute=100");
    EXPECT_THROW(AccessControl{settings}, Error);
    write("alpha running=1\n  beta\trunning=none\n");
    AccessControl access(settings);
    const auto sender_of = [&](const char* key) {
        HttpRequest request;
        request.address = "10.0.0.1";
        request.headers = {{"x-api-key", key}};
        return access.sender_of(request);
    };
    EXPECT_EQ(sender_of("alpha").limits, parse_client_limits("running=1 tokens-per-minute=100"));
    EXPECT_EQ(sender_of("beta").limits, parse_client_limits("tokens-per-minute=100"));
    EXPECT_EQ(sender_of("gamma").limits, settings.client_limits);
    const std::string alpha = sender_of("alpha").space, beta = sender_of("beta").space;
    // A key in the place of another does not see what that has cached.
    write("gamma\nbeta\n");
    access.reload();
    EXPECT_EQ(sender_of("beta").space, beta);
    EXPECT_NE(sender_of("gamma").space, alpha);
    // What no client could send, and what could be meant in two ways.
    for (const char* wrong : {"gamma speed=9\n", "alpha\n\x01gamma\n", "alpha running=1\nbeta\nalpha running=2\n"}) {
        write(wrong);
        EXPECT_THROW(access.reload(), Error) << wrong;
    }
    write(
        "\xEF\xBB\xBF"
        "gamma\ngamma\n");
    access.reload();
    EXPECT_NE(sender_of("gamma").space, "") << "a byte order mark is no part of a key";
    write("alpha\n");
    access.reload();
    EXPECT_EQ(sender_of("alpha").space, alpha);
}

}  // namespace
}  // namespace tessera::server
