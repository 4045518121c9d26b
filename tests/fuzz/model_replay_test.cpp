// The fuzzer's seeds and kept finds, run in every build.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/model_target.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera::fuzz {
namespace {

// The seeds of make_model_corpus.py and what fuzzing added to them: each name says what it is.
TEST(ModelFuzz, Replay) {
    size_t built = 0;
    replay("model_corpus", [&](const std::string& input) { EXPECT_NO_THROW(built += run_model(input)); });
    // Golden models, but for those whose attention is an op of a plugin.
    EXPECT_GT(built, 25u);
}

}  // namespace
}  // namespace tessera::fuzz
