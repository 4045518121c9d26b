// The rows of endpoints.
#include "apps/server/endpoint.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace tessera::server {
namespace {

TEST(Endpoints, EachHasOneWayToAnswer) {
    std::set<std::string> seen;
    for (const std::span<const Endpoint> file : endpoints()) {
        for (const Endpoint& endpoint : file) {
            SCOPED_TRACE(endpoint.paths);
            const int ways = (endpoint.look ? 1 : 0) + (endpoint.work ? 1 : 0) + (endpoint.generate ? 1 : 0) +
                             (endpoint.refusal.empty() ? 0 : 1);
            EXPECT_EQ(ways, 1);
            for (const std::string& path : app::split(endpoint.paths, ' ')) {
                EXPECT_TRUE(path.starts_with('/')) << path;
                EXPECT_TRUE(seen.insert(std::string(endpoint.method) + " " + path).second) << path;
            }
        }
    }
    EXPECT_GT(seen.size(), 20u);
}

TEST(Endpoints, AreInTheDescriptionOfTheApi) {
    std::ostringstream text;
    text << std::ifstream(TSR_SOURCE_DIR "/apps/server/openapi.yaml").rdbuf();
    for (const std::span<const Endpoint> file : endpoints()) {
        for (const Endpoint& endpoint : file) {
            if (!endpoint.refusal.empty()) continue;
            bool found = false;
            for (const std::string& path : app::split(endpoint.paths, ' '))
                found = found || text.str().find("\n  " + path + ":\n") != std::string::npos;
            EXPECT_TRUE(found) << endpoint.paths;
        }
    }
}

}  // namespace
}  // namespace tessera::server
