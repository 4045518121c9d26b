// The fuzzer's seeds and kept finds, run in every build.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/page_target.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

TEST(PageFuzz, Replay) {
    replay("page_corpus", [](const std::string& input) {
        // Without the zero behind a string, so that sanitizers see what reads beyond the end.
        const auto bytes = std::as_bytes(std::span(input));
        EXPECT_NO_THROW(run_page(std::vector(bytes.begin(), bytes.end())));
    });
}

}  // namespace
}  // namespace tessera::fuzz
