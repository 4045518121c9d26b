#include "apps/tessera-server/access_control.hpp"

#include "core/base/error.hpp"

#include <gtest/gtest.h>

namespace tessera::server {
namespace {

unsigned status_of(const ServerSettings& settings, Headers headers, bool needs_key = true) {
    const AccessControl access(settings);
    HttpRequest request;
    request.headers = std::move(headers);
    const auto refusal = access.refusal(request, needs_key);
    return refusal ? refusal->status : 200;
}

TEST(AccessControl, NamesOfALoopbackServer) {
    const ServerSettings settings;
    for (const char* host : {"localhost", "LOCALHOST:99", "127.0.0.1:8080", "[::1]:8080", "127.3.2.1"})
        EXPECT_EQ(status_of(settings, {{"host", host}}), 200u) << host;
    for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1"})
        EXPECT_EQ(status_of(settings, {{"host", host}}), 421u) << host;
    EXPECT_EQ(status_of(settings, {}), 200u) << "HTTP/1.0 names none";
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
    EXPECT_NE(access.client_of(one), access.client_of(two));
    EXPECT_NE(access.space_of(one), access.space_of(two));
    EXPECT_EQ(access.client_of(one).find("alpha"), std::string::npos);
    ServerSettings open;
    const AccessControl free(open);
    EXPECT_EQ(free.client_of(one), "10.0.0.1");
    EXPECT_EQ(free.space_of(one), free.space_of(two));
}

TEST(AccessControl, AKeyFileMustHoldKeys) {
    ServerSettings settings;
    settings.key_file = "/nowhere/keys";
    EXPECT_THROW(AccessControl{settings}, Error);
}

}  // namespace
}  // namespace tessera::server
