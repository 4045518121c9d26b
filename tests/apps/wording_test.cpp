// What the core says, in flags and commands that there are.
#include "apps/wording/wording.hpp"

#include "apps/tessera/command_words.hpp"
#include "apps/tessera/flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

namespace tessera::app {
namespace {

bool is_flag(std::string_view word) {
    return std::ranges::any_of(all_commands(), [&](const CommandInfo& info) {
        const Flag* flag = find_flag(word, info.command);
        return flag && flag->standing == Standing::kSupported;
    });
}

TEST(Wording, SettingsAreFlags) {
    for (size_t i = 0; i < kSettings; ++i) {
        const std::string_view flag = flag_of(static_cast<Setting>(i));
        EXPECT_TRUE(is_flag(flag)) << i << ": " << flag;
    }
}

TEST(Wording, AdviceNamesFlagsThatThereAre) {
    for (size_t i = 0; i < kAdviceCodes; ++i) {
        const std::string text = worded(Notice("it is so", {{static_cast<AdviceCode>(i), "1"}}));
        ASSERT_GT(text.size(), std::string_view("it is so; ").size()) << i;
        for (const std::string& part : split(text, ' ')) {
            std::string word = part;
            std::erase_if(word, [](char c) { return c == '\'' || c == ',' || c == '(' || c == ')'; });
            if (!word.starts_with('-') || word.starts_with("-D") || text.find("tools/setup") != std::string::npos ||
                text.find("ulimit") != std::string::npos)
                continue;
            EXPECT_TRUE(is_flag(word)) << word << " in: " << text;
        }
    }
}

TEST(Wording, IsOneSentence) {
    EXPECT_EQ(worded(Notice("all is well")), "all is well");
    EXPECT_EQ(worded(Notice("no", {{AdviceCode::kShorterPrompt, ""}, {AdviceCode::kLargerContext, ""}})),
              "no; shorten the prompt or allow more with a larger -c");
    Notice notice = Notice::on(Setting::kGpuLayers, "3", "no GPU", {{AdviceCode::kLeaveOut, ""}});
    notice.about.push_back(Setting::kTensorSplit);
    EXPECT_EQ(worded(notice), "-ngl, -ts 3: no GPU; leave it out");
    EXPECT_EQ(worded(prefixed("blk.0", Error(TSR_UNSUPPORTED, Notice("no", {{AdviceCode::kSmallerModel, ""}})))),
              "blk.0: no; take a smaller model");
}

}  // namespace
}  // namespace tessera::app
