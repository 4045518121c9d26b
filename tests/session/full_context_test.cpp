// Conversations that fill their context: a request that fits an otherwise empty cache is served whatever the cache
// holds, up to the last token, and answers as with an empty cache.
#include "core/base/error.hpp"
#include "core/session/generate.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/session/page_store_of.hpp"
#include "tests/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tessera::session {
namespace {

constexpr uint32_t kContext = 4 * TSR_PAGE_TOKENS;
// Lengths of prompts that are tried end at the context and begin so far before it.
constexpr uint32_t kLast = 130;

struct Setting {
    const char* model;
    uint32_t sequences;
    uint32_t answers;  // requests for each prompt, with different seeds
    bool on_disk;      // prefixes are also kept in files
    uint32_t step;     // every so many lengths are tried: all take two minutes
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) {
    return out << setting.model << ", " << setting.sequences << " slots, n = " << setting.answers
               << (setting.on_disk ? ", on disk" : "");
}

class FullContext : public testing::TestWithParam<Setting> {
  protected:
    void SetUp() override {
        EngineOptions options;
        options.context = kContext;
        options.rows = 64 + GetParam().sequences;
        options.sequences = GetParam().sequences;
        const auto file = std::string(TSR_GOLDENS "/") + GetParam().model + ".gguf";
        model_ = std::make_unique<test::LoadedModel>(file, options, test::plugins_without({}));
        tokenizer_ = std::make_unique<text::Tokenizer>(text::vocabulary_from_gguf(engine().file().metadata()));
        restart();
    }
    Engine& engine() { return *model_->engine; }
    void restart() {
        generator_.reset();
        GeneratorOptions options;
        options.contain_errors = true;
        if (GetParam().on_disk) options.pages = test::page_store(*model_, folder_);
        generator_.emplace(engine(), *tokenizer_, options);
    }

    // Ordinary tokens only, none of which ends an answer.
    std::vector<Token> tokens(size_t count) {
        std::vector<Token> made(count);
        for (Token& token : made) token = static_cast<Token>(4 + random_() % 200);
        return made;
    }
    // As many answers to one prompt as the setting says, each as long as the context allows.
    std::vector<Answer> ask(const std::vector<Token>& prompt) {
        std::vector<Answer> answers(GetParam().answers);
        for (size_t i = 0; i < answers.size(); ++i) {
            Request request;
            request.prompt = prompt;
            request.sampling.temperature = 0;
            request.sampling.seed = static_cast<uint32_t>(i);
            request.max_new_tokens = kContext;
            for (const Token end : tokenizer_->generation_ends())
                request.sampling.logit_bias.emplace_back(end, -std::numeric_limits<float>::infinity());
            request.on_finish = [&answers, i](const Answer& answer) { answers[i] = answer; };
            generator_->add(std::move(request));
        }
        generator_->run();
        return answers;
    }
    void expect_full(const std::vector<Token>& prompt, const std::string& what) {
        for (const Answer& answer : ask(prompt)) {
            ASSERT_EQ(answer.reason, FinishReason::kContextFull) << what << ": " << answer.error;
            ASSERT_EQ(answer.tokens.size(), kContext + 1) << what;
        }
    }

    test::TemporaryFolder folder_;
    std::unique_ptr<test::LoadedModel> model_;
    std::unique_ptr<text::Tokenizer> tokenizer_;
    std::optional<Generator> generator_;
    std::mt19937 random_{1};
};

// Every length, each with beginnings that end anywhere in a page of a conversation that is cached.
TEST_P(FullContext, IsReachedWithAnyPrefix) {
    const std::vector<Token> conversation = tokens(kContext);
    expect_full({conversation.begin(), conversation.begin() + 3 * TSR_PAGE_TOKENS}, "the first");
    uint32_t offset = 0;
    for (uint32_t length = kContext - kLast; length <= kContext; length += GetParam().step) {
        // 37 has no divisor in common with a page's tokens, so that all offsets in a page occur.
        offset = (offset + 37) % length;
        std::vector<Token> prompt(conversation.begin(), conversation.begin() + offset);
        const std::vector<Token> rest = tokens(length - offset);
        prompt.insert(prompt.end(), rest.begin(), rest.end());
        expect_full(prompt, fmt::format("{} tokens, {} of them shared", length, offset));
        if (HasFatalFailure()) return;
        // The conversation goes on where it was: what it shares with the prompt before is cached.
        expect_full({conversation.begin(), conversation.begin() + length}, fmt::format("{} tokens again", length));
        if (HasFatalFailure()) return;
        if (GetParam().on_disk && length % 16 == 0) restart();
    }
}

// A prompt that ends inside a page of an older one, at each of its tokens.
TEST_P(FullContext, IsReachedFromWithinEachPage) {
    const std::vector<Token> conversation = tokens(kContext);
    for (uint32_t shared = 1; shared < kContext; shared += 3 * GetParam().step) {
        expect_full({conversation.begin(), conversation.begin() + std::min(kContext, shared + 5)}, "whole");
        std::vector<Token> prompt(conversation.begin(), conversation.begin() + shared);
        prompt.push_back((conversation[shared] - 4 + 1) % 200 + 4);
        expect_full(prompt, fmt::format("{} tokens shared", shared));
        if (HasFatalFailure()) return;
    }
}

TEST_P(FullContext, AnswersAsWithAnEmptyCache) {
    const std::vector<Token> conversation = tokens(kContext - 70);
    const std::vector<Token> expected = ask(conversation).front().tokens;
    for (const uint32_t shared : {1u, 63u, 64u, 65u, 100u, 127u, 128u, 150u}) {
        std::vector<Token> prompt(conversation.begin(), conversation.begin() + shared);
        const std::vector<Token> rest = tokens(kContext - 20 - shared);
        prompt.insert(prompt.end(), rest.begin(), rest.end());
        expect_full(prompt, "between");
        EXPECT_EQ(ask(conversation).front().tokens, expected) << shared;
    }
}

TEST_P(FullContext, RefusesLongerPromptsWithBothLengths) {
    for (const uint32_t length : {kContext + 1, kContext + 64, 10 * kContext}) {
        Request request;
        request.prompt = tokens(length);
        try {
            generator_->add(std::move(request));
            ADD_FAILURE() << length;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_DOES_NOT_FIT);
            EXPECT_THAT(error.what(), testing::HasSubstr(fmt::format("the prompt has {} tokens", length)));
            EXPECT_THAT(error.what(), testing::HasSubstr(fmt::format("the context holds {}", kContext)));
        }
    }
    expect_full(tokens(kContext), "after it");
}

INSTANTIATE_TEST_SUITE_P(Settings, FullContext,
                         testing::Values(Setting{"llama-plain", 1, 1, false, 1}, Setting{"llama-plain", 3, 2, false, 7},
                                         Setting{"llama-plain", 1, 1, true, 7}, Setting{"v2-plain", 1, 1, false, 7},
                                         Setting{"qwen3-window", 1, 1, false, 1},
                                         Setting{"qwen3-window", 2, 2, false, 7},
                                         Setting{"qwen3-window", 1, 1, true, 7}));

}  // namespace
}  // namespace tessera::session
