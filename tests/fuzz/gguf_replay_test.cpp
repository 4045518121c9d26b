// The fuzzer's seeds and kept finds, run in every build.
#include "core/base/file.hpp"
#include "tests/fuzz/gguf_target.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace tessera::fuzz {
namespace {

namespace fs = std::filesystem;

// The seeds of make_gguf_corpus.py and what fuzzing added to them: each name says what it is.
TEST(GgufFuzz, Replay) {
    size_t inputs = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(TSR_SOURCE_DIR) / "tests/fuzz/gguf_corpus")) {
        SCOPED_TRACE(entry.path());
        const File file(entry.path());
        std::vector<std::byte> bytes(file.size());
        file.pread_exact(0, bytes);
        EXPECT_NO_THROW(run_gguf(bytes));
        ++inputs;
    }
    EXPECT_GT(inputs, 20u);
}

}  // namespace
}  // namespace tessera::fuzz
