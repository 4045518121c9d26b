// The fuzzer's seeds and kept finds, run in every build, and changes of them that keep them JSON.
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/json_mutator.hpp"
#include "tests/fuzz/request_target.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

namespace tessera::fuzz {
namespace {

TEST(RequestFuzz, Replay) {
    static constexpr std::string_view kNames[] = {"messages", "role", "content", "tools", "stop", "n", "5"};
    static constexpr std::string_view kTexts[] = {"user", "assistant", "</s>", "<think>", "\n", ""};
    constexpr size_t kChoices = 2;
    size_t changed = 0;
    replay("request_corpus", [&](const std::string& input) {
        EXPECT_NO_THROW(run_request(input));
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
    });
    EXPECT_GT(changed, 100u);
}

}  // namespace
}  // namespace tessera::fuzz
