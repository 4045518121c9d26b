// Many requests over one engine: each gets the same answer as alone, and releases its cache.
#include "core/session/generate.hpp"

#include "core/base/error.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace tessera::session {
namespace {

EngineOptions options_with(uint32_t rows, uint32_t sequences, uint32_t context = 1024) {
    EngineOptions options;
    options.context = context;
    options.rows = rows;
    options.sequences = sequences;
    return options;
}

class GenerateTest : public testing::Test {
  protected:
    void load(const EngineOptions& options) {
        model_ = std::make_unique<test::LoadedModel>(TSR_TEST_MODEL, options, test::plugins_without({}));
        tokenizer_ = std::make_unique<text::Tokenizer>(text::vocabulary_from_gguf(model_->engine->file().metadata()));
    }
    Engine& engine() { return *model_->engine; }

    std::vector<Token> tokens(const std::string& prompt) {
        return tokenizer_->encode(prompt, {.add_special = true, .parse_special = true});
    }

    struct Result {
        std::string text;
        Answer answer;
    };

    Request request(const std::string& prompt, Result& result, uint32_t length = 24,
                    const std::vector<std::string>& stop = {}) {
        Request made;
        made.prompt = tokens(prompt);
        made.sampling.temperature = 0;
        made.stop = StopStrings(stop);
        made.max_new_tokens = length;
        made.on_text = [&result](std::string_view text) { result.text += text; };
        made.on_finish = [&result](const Answer& answer) { result.answer = answer; };
        return made;
    }

    Result alone(const std::string& prompt, uint32_t length = 24) {
        Result result;
        Generator generator(engine(), *tokenizer_);
        generator.add(request(prompt, result, length));
        generator.run();
        return result;
    }

    std::unique_ptr<test::LoadedModel> model_;
    std::unique_ptr<text::Tokenizer> tokenizer_;
};

// Long enough for several pages, and not of whole pages.
std::string preamble() {
    std::string text = "<｜User｜>";
    for (int i = 0; i < 40; ++i)
        text += "The key of box " + std::to_string(i) + " is " + std::to_string(i * 37 % 100) + ". ";
    return text;
}

TEST_F(GenerateTest, SeveralAtOnceGetWhatEachGetsAlone) {
    load(options_with(48, 3));
    const std::vector<std::string> prompts = {"<｜User｜>Count from 1 to 5 in German.<｜Assistant｜>",
                                              "<｜User｜>What is 3 plus 4?<｜Assistant｜>",
                                              "<｜User｜>Count from 1 to 10 in French. Then say hello, and tell me "
                                              "what the capital of France is, please.<｜Assistant｜>",
                                              "<｜User｜>hi<｜Assistant｜>", "one two three"};
    std::vector<Result> expected;
    for (const std::string& prompt : prompts) expected.push_back(alone(prompt));
    std::vector<Result> found(prompts.size());
    Generator generator(engine(), *tokenizer_);
    for (size_t i = 0; i < prompts.size(); ++i) generator.add(request(prompts[i], found[i]));
    generator.run();
    for (size_t i = 0; i < prompts.size(); ++i) {
        SCOPED_TRACE(prompts[i]);
        EXPECT_EQ(found[i].text, expected[i].text);
        EXPECT_EQ(found[i].answer.tokens, expected[i].answer.tokens);
        EXPECT_EQ(found[i].answer.reason, expected[i].answer.reason);
        EXPECT_FALSE(found[i].text.empty());
    }
    EXPECT_EQ(engine().cache().free_pages() + generator.prefixes().size(), engine().cache().page_count());
}

TEST_F(GenerateTest, CommonPrefixesAreComputedOnce) {
    load(options_with(512, 3, 3072));
    const std::string common = preamble();
    const std::vector<std::string> prompts = {common + "What is the key of box 3?<｜Assistant｜>",
                                              common + "What is the key of box 31?<｜Assistant｜>",
                                              common + "Count from 1 to 5 in German.<｜Assistant｜>"};
    std::vector<Result> expected, found(prompts.size());
    for (const std::string& prompt : prompts) expected.push_back(alone(prompt, 12));
    ASSERT_GT(tokens(common).size(), size_t{2 * TSR_PAGE_TOKENS});
    const auto shared = static_cast<uint32_t>((tokens(common).size() - 4) / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS);
    Generator generator(engine(), *tokenizer_);
    for (size_t i = 0; i < prompts.size(); ++i) generator.add(request(prompts[i], found[i], 12));
    generator.run();
    EXPECT_EQ(found[0].answer.reused_tokens, 0u);
    for (size_t i = 0; i < prompts.size(); ++i) {
        SCOPED_TRACE(prompts[i]);
        EXPECT_EQ(found[i].text, expected[i].text);
        if (i > 0) {
            EXPECT_GE(found[i].answer.reused_tokens, shared);
        }
    }
    EXPECT_EQ(generator.timings().reused_tokens, found[1].answer.reused_tokens + found[2].answer.reused_tokens);
    EXPECT_EQ(engine().cache().free_pages() + generator.prefixes().size(), engine().cache().page_count());
}

TEST_F(GenerateTest, KeptSequencesAreGoneOnWith) {
    load(options_with(512, 1));
    const std::string first = "<｜User｜>Count from 1 to 5 in German.<｜Assistant｜>";
    Result one, two;
    {
        Generator generator(engine(), *tokenizer_);
        Request kept = request(first, one);
        generator.add(std::move(kept));
        generator.run();
        const std::vector<Token> said = one.answer.tokens;
        Request next = request(first, two);
        next.prompt = said;
        const std::vector<Token> more =
            tokenizer_->encode("<｜end▁of▁sentence｜><｜User｜>What is 3 plus 4?<｜Assistant｜>",
                               {.add_special = false, .parse_special = true});
        next.prompt.insert(next.prompt.end(), more.begin(), more.end());
        generator.add(std::move(next));
        generator.run();
        EXPECT_GE(two.answer.reused_tokens + 1, said.size());
    }
    EXPECT_EQ(engine().cache().free_pages(), engine().cache().page_count());
    // The same in one go, nothing cached.
    Result fresh;
    Generator generator(engine(), *tokenizer_);
    Request whole = request(first, fresh);
    whole.prompt.assign(two.answer.tokens.begin(), two.answer.tokens.begin() + two.answer.prompt_tokens);
    generator.add(std::move(whole));
    generator.run();
    EXPECT_EQ(fresh.answer.reused_tokens, 0u);
    EXPECT_EQ(fresh.text, two.text);
}

TEST_F(GenerateTest, ReasonsToEnd) {
    load(options_with(64, 2));
    const std::string prompt = "<｜User｜>Count from 1 to 10 in French.<｜Assistant｜>";
    const Result whole = alone(prompt, 200);
    EXPECT_EQ(whole.answer.reason, FinishReason::kEndOfText);
    EXPECT_EQ(whole.answer.new_tokens + whole.answer.prompt_tokens, whole.answer.tokens.size() + 1);

    const Result cut = alone(prompt, 3);
    EXPECT_EQ(cut.answer.reason, FinishReason::kLength);
    EXPECT_EQ(cut.answer.new_tokens, 3u);
    EXPECT_EQ(alone(prompt, 0).answer.new_tokens, 0u);

    ASSERT_GT(whole.text.size(), 6u);
    const std::string stop = whole.text.substr(3, 3);
    Result stopped, full, cancelled;
    Generator generator(engine(), *tokenizer_);
    generator.add(request(prompt, stopped, 200, {"never said at all", stop}));
    Request narrow = request(prompt, full, 200);
    narrow.context = static_cast<uint32_t>(narrow.prompt.size()) + 2;
    generator.add(std::move(narrow));
    generator.run();
    EXPECT_EQ(stopped.answer.reason, FinishReason::kStopString);
    EXPECT_EQ(stopped.answer.stop_string, 1);
    EXPECT_EQ(stopped.text, whole.text.substr(0, whole.text.find(stop)));
    EXPECT_EQ(full.answer.reason, FinishReason::kContextFull);
    EXPECT_EQ(full.answer.new_tokens, 3u);  // the last one needs no room

    std::atomic<bool> flag{true};
    generator.add(request(prompt, cancelled, 200));
    generator.run(&flag);
    EXPECT_EQ(cancelled.answer.reason, FinishReason::kCancelled);
    EXPECT_EQ(engine().cache().free_pages() + generator.prefixes().size(), engine().cache().page_count());
}

TEST_F(GenerateTest, WhatCannotBeIsRefused) {
    load(options_with(64, 1, 64));
    Result result;
    Generator generator(engine(), *tokenizer_);
    const auto code_of = [&](std::vector<Token> prompt) -> tsr_code {
        Request made = request("x", result);
        made.prompt = std::move(prompt);
        try {
            generator.add(std::move(made));
        } catch (const Error& error) {
            return error.code();
        }
        return TSR_OK;
    };
    EXPECT_EQ(code_of({}), TSR_INVALID_ARGUMENT);
    EXPECT_EQ(code_of({-1}), TSR_INVALID_ARGUMENT);
    EXPECT_EQ(code_of({1 << 20}), TSR_INVALID_ARGUMENT);
    EXPECT_EQ(code_of(std::vector<Token>(65, 5)), TSR_DOES_NOT_FIT);
    EXPECT_FALSE(generator.step());
    // A prompt that fills the context gets one token.
    EXPECT_EQ(code_of(std::vector<Token>(64, 5)), TSR_OK);
    generator.run();
    EXPECT_EQ(result.answer.reason, FinishReason::kContextFull);
    EXPECT_EQ(result.answer.new_tokens, 1u);
}

TEST_F(GenerateTest, RequestsWaitForPagesAndNoneFails) {
    // Room for about one and a half of them.
    load(options_with(64, 4, 192));
    std::vector<Result> found(5);
    Generator generator(engine(), *tokenizer_);
    for (Result& result : found) {
        Request made = request("<｜User｜>Count from 1 to 10 in French.<｜Assistant｜>", result, 100);
        generator.add(std::move(made));
    }
    generator.run();
    for (const Result& result : found) {
        EXPECT_EQ(result.text, found[0].text);
        EXPECT_NE(result.answer.reason, FinishReason::kCancelled);
        EXPECT_FALSE(result.text.empty());
    }
}

}  // namespace
}  // namespace tessera::session
