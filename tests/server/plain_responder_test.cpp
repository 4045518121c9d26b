// Answers of /completion that are not streamed: which fields they have, and on whose thread they are made.
#include "apps/server/dialects/llama/plain_responder.hpp"

#include "apps/server/api_error.hpp"
#include "tests/server/received.hpp"
#include "tests/server/small_model.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

namespace tessera::server {
namespace {

namespace json = boost::json;

struct Played {
    std::string at_end;  // what the client has when the engine's thread is done
    uint64_t bytes = 0;
    json::value answer;
    uint64_t length = 0;  // of it
};

// Two answers of one prompt.
Played play(const std::string& fields, const std::string& first = "a", size_t tokens = 0) {
    auto model = std::make_shared<ServedModel>();
    static_cast<ModelText&>(*model) = small_model();
    PlainRequest read = read_plain_completion(R"({"prompt":"one \"two\"","n":2,"seed":7)" + fields + "}", *model);
    Played played;
    std::vector<std::function<void()>> waiting;
    const auto received = std::make_shared<Received>();
    const auto answer = std::make_shared<PlainResponder>(received, model, read.delivery, std::move(read.plain));
    answer->make_whole_by([&](uint64_t bytes, std::function<void()> work) {
        played.bytes = bytes;
        waiting.push_back(std::move(work));
    });
    for (size_t i = 0; i < tokens; ++i) answer->on_token(0, {11'111, {}}, {});
    for (const size_t choice : {1u, 0u}) {
        answer->on_token(choice, {{}, choice == 0 ? first : "b"}, {});
        session::Answer end;
        end.reason = session::FinishReason::kEndOfText;
        end.prompt_tokens = 3;
        end.new_tokens = static_cast<uint32_t>(choice) + 1;
        answer->on_finish(choice, end);
    }
    answer->on_end();
    played.at_end = received->answer;
    for (const auto& work : waiting) work();
    played.length = received->answer.size();
    played.answer = json::parse(received->answer);
    return played;
}

TEST(PlainResponder, LongOnesArePutTogetherOnAnotherThread) {
    const std::string text(100'000, 'a');
    const Played played = play("", text);
    EXPECT_EQ(played.at_end, "");
    EXPECT_GE(played.bytes, text.size());
    EXPECT_NE(play("").at_end, "");
    const json::array& list = played.answer.as_array();
    ASSERT_EQ(list.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(list[i].at("index"), i);
        EXPECT_EQ(list[i].at("content").as_string(), i == 0 ? text : "b");
        EXPECT_EQ(list[i].at("prompt"), "one \"two\"");
        EXPECT_EQ(list[i].at("stop"), true);
        EXPECT_EQ(list[i].at("stop_type"), "eos");
        EXPECT_EQ(list[i].at("tokens_predicted"), i + 1);
        EXPECT_EQ(list[i].at("generation_settings").at("top_k"), 40);
    }
}

TEST(PlainResponder, HasTheFieldsThatAreAsked) {
    const Played played = play(R"(,"response_fields":["content","timings/predicted_n","timings/cache_differs/cached",)"
                               R"("completion_probabilities","generation_settings/top_k","content","stop/"])");
    const json::value wanted =
        json::parse(R"([{"content":"a","timings/predicted_n":1,"generation_settings/top_k":40,"stop/":true},)"
                    R"({"content":"b","timings/predicted_n":2,"generation_settings/top_k":40,"stop/":true}])");
    EXPECT_EQ(played.answer, wanted);
    // The example of llama-server's documentation.
    EXPECT_EQ(play(R"(,"response_fields":["content","generation_settings/n_predict"])").answer.at(1),
              json::parse(R"({"content":"b","generation_settings/n_predict":-1})"));
}

TEST(PlainResponder, FieldsThatNoAnswerHasAreRefused) {
    for (const std::string name : {"", "/", "no", "tims", "timings/x", "timings/predicted_n/x", "content/x",
                                   "generation_settings/no", "generation_settings/top_k/x", "seed"}) {
        try {
            play(R"(,"response_fields":["content",")" + name + R"("])");
            ADD_FAILURE() << name;
        } catch (const ApiError& error) {
            EXPECT_EQ(error.status(), 400u);
            EXPECT_EQ(error.parameter(), "response_fields");
            EXPECT_THAT(error.what(), testing::HasSubstr("'" + name + "'"));
        }
    }
    try {
        play(R"(,"response_fields":["timngs"])");
    } catch (const ApiError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'timings'?"));
    }
}

// What every choice repeats counts, or many short texts would keep the engine's thread.
TEST(PlainResponder, SettingsCountAmongTheBytesOfAnAnswer) {
    std::string bias, stops;
    for (int i = 0; i < 4096; ++i) bias += fmt::format("{}[{},-{}.5]", i ? "," : "", i % 256, i);
    for (int i = 0; i < 120; ++i) stops += fmt::format(R"({}"{:0>100}")", i ? "," : "", i);
    const std::string fields = R"(,"logit_bias":[)" + bias + R"(],"stop":[)" + stops + "]";
    for (const char* asked : {"", R"(,"response_fields":["generation_settings"])",
                              R"(,"response_fields":["generation_settings/logit_bias"])"}) {
        const Played played = play(fields + asked);
        EXPECT_EQ(played.at_end, "") << asked;
        const uint64_t length = played.length;
        EXPECT_GT(length, 100'000u);
        EXPECT_GE(played.bytes + 100, length);
        EXPECT_LE(played.bytes, length + 8192);
    }
    EXPECT_NE(play(fields + R"(,"response_fields":["content"])").at_end, "");
}

TEST(PlainResponder, TokensCountAmongTheBytesOfAnAnswer) {
    const Played played = play(R"(,"return_tokens":true,"response_fields":["tokens"])", "", 20'000);
    EXPECT_EQ(played.at_end, "");
    EXPECT_GE(played.bytes, played.length);
    EXPECT_EQ(played.answer.at(0).at("tokens").as_array().size(), 20'000u);
}

}  // namespace
}  // namespace tessera::server
