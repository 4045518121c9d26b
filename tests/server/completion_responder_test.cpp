// What a client receives of a completion with its prompt: scored once, however many answers there are.
#include "apps/server/dialects/openai/completion_responder.hpp"

#include "tests/server/received.hpp"
#include "tests/server/small_model.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tessera::server {
namespace {

namespace json = boost::json;

std::shared_ptr<const ServedModel> model() {
    static const std::shared_ptr<const ServedModel> one = [] {
        auto made = std::make_shared<ServedModel>();
        static_cast<ModelText&>(*made) = small_model();
        return made;
    }();
    return one;
}

struct Choice {
    std::string text;
    std::vector<std::string> tokens;
    std::vector<json::value> values;
    std::vector<int64_t> offsets;
    std::string finish;

    void add(const json::value& choice) {
        text += choice.at("text").as_string();
        const json::value& probabilities = choice.at("logprobs");
        for (const json::value& token : probabilities.at("tokens").as_array()) tokens.emplace_back(token.as_string());
        for (const json::value& value : probabilities.at("token_logprobs").as_array()) values.push_back(value);
        for (const json::value& offset : probabilities.at("text_offset").as_array())
            offsets.push_back(offset.to_number<int64_t>());
        if (choice.at("finish_reason").is_string()) finish = choice.at("finish_reason").as_string();
    }
};

class EchoedPrompt : public testing::TestWithParam<bool> {
  protected:
    // Two answers to each of two prompts of two words.
    EchoedPrompt() {
        Delivery delivery;
        delivery.stream = GetParam();
        delivery.choices = 2;
        CompletionDelivery completion;
        completion.probabilities = true;
        for (const char* prompt : {"one two", "six ten"}) {
            completion.echoes.emplace_back(prompt);
            completion.echoed.push_back({model()->tokenizer->encode(prompt, {.add_special = false}), false});
            sizes_.push_back(completion.echoed.back().tokens.size());
        }
        answer_ = std::make_shared<CompletionResponder>(received_, model(), delivery, completion);
    }

    void token(size_t choice, const std::string& text, float probability) {
        const session::TokenProbabilities known{5, probability, {}};
        answer_->on_token(choice, {5, text, &known}, {});
    }
    void score(size_t prompt) {
        // The first token follows none.
        for (size_t i = 1; i < sizes_[prompt]; ++i)
            answer_->on_prompt_probabilities(prompt, {5, -static_cast<float>(i), {}});
    }
    void finish(size_t choice) {
        session::Answer end;
        end.reason = session::FinishReason::kLength;
        answer_->on_finish(choice, end);
    }
    std::map<int64_t, Choice> choices() const {
        std::map<int64_t, Choice> found;
        const auto take = [&](const std::string& text) {
            const json::value parsed = json::parse(text);
            for (const json::value& choice : parsed.at("choices").as_array())
                found[choice.at("index").to_number<int64_t>()].add(choice);
        };
        if (!GetParam()) take(received_->answer);
        for (const std::string& event : received_->events) {
            if (event != "data: [DONE]\n\n") take(event.substr(6));
        }
        return found;
    }

    const std::shared_ptr<Received> received_ = std::make_shared<Received>();
    std::vector<size_t> sizes_;
    std::shared_ptr<CompletionResponder> answer_;
};

TEST_P(EchoedPrompt, IsThereForEachAnswerWheneverItIsScored) {
    // The second answer is complete before its prompt has been scored, and the fourth has begun.
    token(1, " b", -0.5f);
    finish(1);
    token(3, " d", -0.75f);
    EXPECT_TRUE(received_->events.empty()) << "what is sent waits for the prompt";
    score(0);
    score(1);
    token(0, " a", -0.25f);
    token(2, " c", -0.625f);
    for (const size_t choice : {0u, 3u, 2u}) finish(choice);
    answer_->on_end();
    const auto found = choices();
    ASSERT_EQ(found.size(), 4u);
    for (const auto& [index, choice] : found) {
        SCOPED_TRACE(index);
        const std::string prompt = index < 2 ? "one two" : "six ten";
        EXPECT_EQ(choice.text, prompt + " " + "abcd"[index]);
        const size_t size = sizes_[static_cast<size_t>(index) / 2];
        ASSERT_EQ(choice.tokens.size(), size + 1);
        std::string joined;
        for (size_t i = 0; i < choice.tokens.size(); ++i) {
            EXPECT_EQ(choice.offsets[i], static_cast<int64_t>(joined.size()));
            joined += choice.tokens[i];
        }
        EXPECT_EQ(joined, choice.text);
        EXPECT_TRUE(choice.values[0].is_null());
        for (size_t i = 1; i < size; ++i) EXPECT_EQ(choice.values[i].to_number<double>(), -static_cast<double>(i));
        const double own[] = {-0.25, -0.5, -0.625, -0.75};
        EXPECT_EQ(choice.values[size].to_number<double>(), own[index]);
        EXPECT_EQ(choice.finish, "length");
    }
}

TEST_P(EchoedPrompt, ThatIsNotScoredWhenItsAnswerEndsIsAnError) {
    token(1, " b", -0.5f);
    finish(1);
    answer_->on_prompt_probabilities(0, {5, -1, {}});
    ASSERT_GT(sizes_[1], 1u);
    finish(2);
    const std::string text = GetParam() ? received_->events.back().substr(6) : received_->answer;
    EXPECT_EQ(json::parse(text).at("error").at("code"), "step_failed");
    EXPECT_EQ(received_->ended, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Streams, EchoedPrompt, testing::Bool());

}  // namespace
}  // namespace tessera::server
