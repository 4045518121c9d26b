// The fuzzer's seeds and kept finds, run in every build.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/reply_target.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera::fuzz {
namespace {

// The seeds of make_reply_corpus.py, each under every syntax and template, and what fuzzing added to them.
TEST(ReplyFuzz, Replay) {
    replay("reply_corpus", [](std::string input) {
        EXPECT_NO_THROW(run_reply(input));
        for (int choice = 0; choice < 256 && input.size() >= 2; choice += 5) {
            input[0] = static_cast<char>(choice);
            EXPECT_NO_THROW(run_reply(input)) << choice;
        }
    });
}

}  // namespace
}  // namespace tessera::fuzz
