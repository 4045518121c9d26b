// The fuzzer's seeds and kept finds, run in every build.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/jinja_target.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tessera::fuzz {
namespace {

// The seeds of make_jinja_corpus.py on each conversation, also cut off, and what fuzzing added to them.
TEST(JinjaFuzz, Replay) {
    replay("jinja_corpus", [](std::string input) {
        ASSERT_FALSE(input.empty());
        EXPECT_NO_THROW(run_jinja(input));
        for (int choice = 0; choice < 256; choice += 7) {
            input[0] = static_cast<char>(choice);
            EXPECT_NO_THROW(run_jinja(input)) << choice;
        }
        for (size_t length = 1; length < input.size(); length += 3)
            EXPECT_NO_THROW(run_jinja(std::string_view(input).substr(0, length))) << length;
    });
}

}  // namespace
}  // namespace tessera::fuzz
