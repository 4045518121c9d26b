// The fuzzer's seeds and kept finds, run in every build.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/gguf_target.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

// The seeds of make_gguf_corpus.py and what fuzzing added to them: each name says what it is.
TEST(GgufFuzz, Replay) {
    replay("gguf_corpus", [](const std::string& input) {
        // Without the zero behind a string, so that sanitizers see what reads beyond the end.
        const auto bytes = std::as_bytes(std::span(input));
        EXPECT_NO_THROW(run_gguf(std::vector(bytes.begin(), bytes.end())));
    });
}

}  // namespace
}  // namespace tessera::fuzz
