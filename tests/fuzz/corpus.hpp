// Inputs that are kept beside the fuzzers.
#pragma once

#include "core/base/file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::fuzz {

// Calls `run(input)` with the content of each file of tests/fuzz/FOLDER; failures name the file. There must be more
// than 20 of them.
template <typename Run>
void replay(std::string_view folder, const Run& run) {
    size_t inputs = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(TSR_SOURCE_DIR) / "tests/fuzz" / folder)) {
        SCOPED_TRACE(entry.path());
        const File file(entry.path());
        std::string input(file.size(), '\0');
        file.pread_exact(0, std::as_writable_bytes(std::span(input)));
        run(std::move(input));
        ++inputs;
    }
    EXPECT_GT(inputs, 20u);
}

}  // namespace tessera::fuzz
