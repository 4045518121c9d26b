// The fuzzer's seeds and kept finds, run in every build.
#include "core/base/file.hpp"
#include "tests/fuzz/http_target.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace tessera::fuzz {
namespace {

namespace fs = std::filesystem;

// Each input cut into pieces of every size, and with each of its bytes left out.
TEST(HttpFuzz, Replay) {
    size_t inputs = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(TSR_SOURCE_DIR) / "tests/fuzz/http_corpus")) {
        SCOPED_TRACE(entry.path());
        const File file(entry.path());
        std::vector<std::byte> bytes(file.size());
        file.pread_exact(0, bytes);
        std::string input(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        for (int piece = 0; piece < 64 && !input.empty(); ++piece) {
            input[0] = static_cast<char>(piece);
            EXPECT_NO_THROW(run_http(input)) << piece;
        }
        for (size_t i = 1; i < input.size(); ++i) {
            std::string shorter = input;
            shorter.erase(i, 1);
            EXPECT_NO_THROW(run_http(shorter)) << i;
        }
        ++inputs;
    }
    EXPECT_GT(inputs, 20u);
}

}  // namespace
}  // namespace tessera::fuzz
