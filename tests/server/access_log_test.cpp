#include "apps/server/access_log.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

namespace tessera::server {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

bool soon(auto test) {
    for (int i = 0; i < 60'000; ++i) {
        if (test()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

// A limit of the file's size stands for a disk that is full in the middle of a line.
TEST(AccessLog, ALineThatWasCutIsLostAlone) {
    const fs::path path = fs::temp_directory_path() / ("access-" + std::to_string(getpid()));
    std::signal(SIGXFSZ, SIG_IGN);
    HttpRequest request;
    request.method = "GET";
    request.path = "/health";
    const Access access{&request, 200, 1, 0, nullptr};
    {
        AccessLog log(path);
        log.write(access);
        ASSERT_TRUE(soon([&] { return text_of(path).ends_with("}\n"); }));
        const size_t line = text_of(path).size();
        rlimit before{};
        ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
        const rlimit full{line + 20, before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
        log.write(access);
        const bool dropped = soon([&] { return log.dropped() == 1; });
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
        ASSERT_TRUE(dropped);
        EXPECT_EQ(text_of(path).size(), line + 20);
        log.write(access);
        ASSERT_TRUE(soon([&] { return text_of(path).size() > line + 21 && text_of(path).ends_with("}\n"); }));
        const std::string text = text_of(path);
        EXPECT_EQ(text[line + 20], '\n');
        EXPECT_EQ(text[line + 21], '{');
        EXPECT_EQ(log.dropped(), 1u);
    }
    fs::remove(path);
}

}  // namespace
}  // namespace tessera::server
