// The fuzzer's seeds and kept finds, run in every build, and changes of them that keep them JSON.
#include "core/base/file.hpp"
#include "tests/fuzz/json_mutator.hpp"
#include "tests/fuzz/request_target.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

namespace fs = std::filesystem;

TEST(RequestFuzz, Replay) {
    static constexpr std::string_view kNames[] = {"messages", "role", "content", "tools", "stop", "n", "5"};
    static constexpr std::string_view kTexts[] = {"user", "assistant", "</s>", "<think>", "\n", ""};
    constexpr size_t kChoices = 2;
    size_t inputs = 0, changed = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(TSR_SOURCE_DIR) / "tests/fuzz/request_corpus")) {
        SCOPED_TRACE(entry.path());
        const File file(entry.path());
        std::vector<std::byte> bytes(file.size());
        file.pread_exact(0, bytes);
        const std::string input(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        EXPECT_NO_THROW(run_request(input));
        ++inputs;
        std::string other = input;
        for (uint32_t seed = 0; seed < 8 && input.size() > kChoices; ++seed) {
            other.resize(2 * input.size() + 100);
            const size_t size =
                mutate_json(std::span(other).subspan(kChoices), input.size() - kChoices, seed, kNames, kTexts);
            if (size == 0) break;
            ++changed;
            EXPECT_NO_THROW(run_request(std::string_view(other).substr(0, kChoices + size))) << seed;
            other.replace(0, input.size(), input);
        }
    }
    EXPECT_GT(inputs, 20u);
    EXPECT_GT(changed, 100u);
}

}  // namespace
}  // namespace tessera::fuzz
