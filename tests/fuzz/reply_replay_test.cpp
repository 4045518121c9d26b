// The fuzzer's seeds and kept finds, run in every build.
#include "core/base/file.hpp"
#include "tests/fuzz/reply_target.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace tessera::fuzz {
namespace {

namespace fs = std::filesystem;

// The seeds of make_reply_corpus.py, each under every syntax and template, and what fuzzing added to them.
TEST(ReplyFuzz, Replay) {
    size_t inputs = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(TSR_SOURCE_DIR) / "tests/fuzz/reply_corpus")) {
        SCOPED_TRACE(entry.path());
        const File file(entry.path());
        std::vector<std::byte> bytes(file.size());
        file.pread_exact(0, bytes);
        std::string input(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        EXPECT_NO_THROW(run_reply(input));
        for (int choice = 0; choice < 256 && input.size() >= 2; choice += 5) {
            input[0] = static_cast<char>(choice);
            EXPECT_NO_THROW(run_reply(input)) << choice;
        }
        ++inputs;
    }
    EXPECT_GT(inputs, 20u);
}

}  // namespace
}  // namespace tessera::fuzz
