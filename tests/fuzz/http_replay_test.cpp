// The fuzzer's seeds and kept finds, run in every build.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/http_target.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera::fuzz {
namespace {

// Each input cut into pieces of every size, and with each of its bytes left out.
TEST(HttpFuzz, Replay) {
    replay("http_corpus", [](std::string input) {
        for (int piece = 0; piece < 64 && !input.empty(); ++piece) {
            input[0] = static_cast<char>(piece);
            EXPECT_NO_THROW(run_http(input)) << piece;
        }
        for (size_t i = 1; i < input.size(); ++i) {
            std::string shorter = input;
            shorter.erase(i, 1);
            EXPECT_NO_THROW(run_http(shorter)) << i;
        }
    });
}

}  // namespace
}  // namespace tessera::fuzz
