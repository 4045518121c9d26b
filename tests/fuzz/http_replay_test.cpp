// The fuzzer's seeds and kept finds, run in every build.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/http_target.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera::fuzz {
namespace {

// Each input read in every size, and with each of its bytes left out.
TEST(HttpFuzz, Replay) {
    replay("http_corpus", [](std::string input) {
        for (int size = 0; size < 64 && !input.empty(); ++size) {
            input[0] = static_cast<char>(size);
            EXPECT_NO_THROW(run_http(input)) << size;
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
