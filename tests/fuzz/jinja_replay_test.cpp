// The fuzzer's seeds and kept finds, run in every build.
#include "core/base/file.hpp"
#include "tests/fuzz/jinja_target.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace tessera::fuzz {
namespace {

namespace fs = std::filesystem;

// The seeds of make_jinja_corpus.py on each conversation, also cut off, and what fuzzing added to them.
TEST(JinjaFuzz, Replay) {
    size_t inputs = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(TSR_SOURCE_DIR) / "tests/fuzz/jinja_corpus")) {
        SCOPED_TRACE(entry.path());
        const File file(entry.path());
        std::vector<std::byte> bytes(file.size());
        file.pread_exact(0, bytes);
        std::string input(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        ASSERT_FALSE(input.empty());
        EXPECT_NO_THROW(run_jinja(input));
        for (int choice = 0; choice < 256; choice += 7) {
            input[0] = static_cast<char>(choice);
            EXPECT_NO_THROW(run_jinja(input)) << choice;
        }
        for (size_t length = 1; length < input.size(); length += 3)
            EXPECT_NO_THROW(run_jinja(std::string_view(input).substr(0, length))) << length;
        ++inputs;
    }
    EXPECT_GT(inputs, 20u);
}

}  // namespace
}  // namespace tessera::fuzz
