// Answers of /completion in one piece: which fields they have, and on whose thread they are made.
#include "apps/tessera-server/plain_answer.hpp"

#include "tests/server/received.hpp"
#include "tests/server/small_model.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace tessera::server {
namespace {

namespace json = boost::json;

struct Played {
    std::string at_end;  // what the client has when the engine's thread is done
    uint64_t bytes = 0;
    json::value answer;
};

// Two answers of one prompt.
Played play(const std::string& fields, const std::string& first = "a") {
    auto model = std::make_shared<ServedModel>();
    static_cast<ModelText&>(*model) = small_model();
    PlainRequest read = read_plain_completion(R"({"prompt":"one \"two\"","n":2,"seed":7)" + fields + "}", *model);
    Played played;
    std::vector<std::function<void()>> waiting;
    const auto received = std::make_shared<Received>();
    const auto answer = std::make_shared<PlainAnswer>(received, model, read.form, std::move(read.plain));
    answer->make_whole_by([&](uint64_t bytes, std::function<void()> work) {
        played.bytes = bytes;
        waiting.push_back(std::move(work));
    });
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
    played.answer = json::parse(received->answer);
    return played;
}

TEST(PlainAnswer, LongOnesArePutTogetherOnAnotherThread) {
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

TEST(PlainAnswer, HasTheFieldsThatAreAsked) {
    const Played played = play(
        R"(,"response_fields":["content","timings/predicted_n","timings/x","content/x","generation_settings/top_k",)"
        R"("generation_settings/no","no","","content","stop/"])");
    const json::value wanted =
        json::parse(R"([{"content":"a","timings/predicted_n":1,"generation_settings/top_k":40,"stop/":true},)"
                    R"({"content":"b","timings/predicted_n":2,"generation_settings/top_k":40,"stop/":true}])");
    EXPECT_EQ(played.answer, wanted);
}

}  // namespace
}  // namespace tessera::server
