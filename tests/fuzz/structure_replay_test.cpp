// The fuzzer's seeds and kept finds, run in every build.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/structure_target.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tessera::fuzz {
namespace {

// The seeds of make_structure_corpus.py as what they are and as all else, also cut off, and what fuzzing added to them.
TEST(StructureFuzz, Replay) {
    replay("structure_corpus", [](std::string input) {
        ASSERT_FALSE(input.empty());
        EXPECT_NO_THROW(run_structure(input));
        for (int choice = 0; choice < 256; choice += 5) {
            input[0] = static_cast<char>(choice);
            EXPECT_NO_THROW(run_structure(input)) << choice;
        }
        for (size_t length = 1; length < input.size(); length += 7)
            EXPECT_NO_THROW(run_structure(std::string_view(input).substr(0, length))) << length;
    });
}

}  // namespace
}  // namespace tessera::fuzz
