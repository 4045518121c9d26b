// The fuzzer's seeds and kept finds, run in every build.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/tokenizer_target.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tessera::fuzz {
namespace {

// The seeds of make_tokenizer_corpus.py and what fuzzing added to them: each name says what it is.
TEST(TokenizerFuzz, Replay) {
    replay("tokenizer_corpus", [](const std::string& input) {
        // Without the zero behind a string, so that sanitizers see what reads beyond the end.
        const std::vector<char> bytes(input.begin(), input.end());
        EXPECT_NO_THROW(run_tokenizer(std::string_view(bytes.data(), bytes.size())));
    });
}

}  // namespace
}  // namespace tessera::fuzz
