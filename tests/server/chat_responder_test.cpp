// What a client receives of an answer with reasoning and tool calls, whole and as a stream.
#include "apps/server/dialects/openai/chat_completion_responder.hpp"
#include "tests/server/received.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace tessera::server {
namespace {

namespace json = boost::json;

struct Played {
    std::shared_ptr<Received> received = std::make_shared<Received>();
    json::object message;   // of the answer that is not streamed
    json::object streamed;  // the same, put together from the stream's deltas
    std::string finish, streamed_finish;
};

void add(json::object& to, std::string_view key, std::string_view text) {
    json::value& value = to[json::string_view(key.data(), key.size())];
    if (!value.is_string()) value = "";
    value.as_string().append(json::string_view(text.data(), text.size()));
}

Played play(const text::ReplySyntax& syntax, const std::vector<std::string>& deltas, bool one_call = false,
            const std::set<std::string>& custom_tools = {}) {
    Played played;
    const auto model = std::make_shared<ServedModel>();
    for (const bool stream : {false, true}) {
        const auto received = stream ? played.received : std::make_shared<Received>();
        Delivery delivery;
        delivery.stream = stream;
        const auto answer = std::make_shared<ChatCompletionResponder>(
            received, model, delivery,
            ChatDelivery{.syntax = syntax, .one_call = one_call, .custom_tools = custom_tools});
        for (const std::string& delta : deltas) answer->on_token(0, {{}, delta}, {});
        session::Answer end;
        end.reason = session::FinishReason::kEndOfText;
        answer->on_finish(0, end);
        answer->on_end();
        if (!stream) {
            const json::value choice = json::parse(received->answer).at("choices").at(0);
            played.message = choice.at("message").as_object();
            played.finish = choice.at("finish_reason").as_string();
            continue;
        }
        EXPECT_EQ(received->begun, 1);
        EXPECT_TRUE(received->ended);
        EXPECT_EQ(received->events.back(), "data: [DONE]\n\n");
        for (size_t i = 0; i + 1 < received->events.size(); ++i) {
            const std::string& event = received->events[i];
            EXPECT_TRUE(event.starts_with("data: ") && event.ends_with("\n\n")) << event;
            const json::value choice = json::parse(event.substr(6)).at("choices").at(0);
            if (choice.at("finish_reason").is_string()) played.streamed_finish = choice.at("finish_reason").as_string();
            for (const auto& [key, value] : choice.at("delta").as_object()) {
                if (value.is_string() && key != "role") add(played.streamed, key, value.as_string());
                if (key != "tool_calls") continue;
                const json::object& call = value.at(0).as_object();
                const std::string name = "call " + std::to_string(call.at("index").as_int64());
                for (const char* type : {"function", "custom"}) {
                    for (const char* part : {"name", "arguments", "input"}) {
                        if (!call.contains(type)) continue;
                        if (const json::value* text = call.at(type).as_object().if_contains(part))
                            add(played.streamed, name + " " + part, text->as_string());
                    }
                }
            }
        }
    }
    return played;
}

TEST(ChatCompletionResponder, ContentAlone) {
    const Played played = play({}, {"Hel", "lo \"you\"\n"});
    EXPECT_EQ(played.message.at("content"), "Hello \"you\"\n");
    EXPECT_FALSE(played.message.contains("tool_calls"));
    EXPECT_EQ(played.streamed.at("content"), "Hello \"you\"\n");
    EXPECT_EQ(played.finish, "stop");
    EXPECT_EQ(played.streamed_finish, "stop");
}

TEST(ChatCompletionResponder, ReasoningIsApart) {
    text::ReplySyntax syntax;
    syntax.reasoning = syntax.begins_in_reasoning = true;
    const Played played = play(syntax, {"I thi", "nk.</th", "ink>Yes"});
    EXPECT_EQ(played.message.at("reasoning_content"), "I think.");
    EXPECT_EQ(played.message.at("content"), "Yes");
    EXPECT_EQ(played.streamed.at("reasoning_content"), "I think.");
    EXPECT_EQ(played.streamed.at("content"), "Yes");
}

TEST(ChatCompletionResponder, CallsHaveNamesArgumentsAndIds) {
    text::ReplySyntax syntax;
    syntax.tools = text::ToolSyntax::kHermes;
    const Played played =
        play(syntax, {"<tool_call>\n{\"name\": \"weather\", \"argu", "ments\": {\"city\": \"Ber",
                      "lin\"}}\n</tool_call>\n", "<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>"});
    const json::array& calls = played.message.at("tool_calls").as_array();
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].at("function").at("name"), "weather");
    EXPECT_EQ(json::parse(calls[0].at("function").at("arguments").as_string()), json::parse(R"({"city":"Berlin"})"));
    EXPECT_EQ(calls[1].at("function").at("name"), "time");
    EXPECT_NE(calls[0].at("id"), calls[1].at("id"));
    EXPECT_TRUE(played.message.at("content").is_null());
    EXPECT_EQ(played.finish, "tool_calls");
    EXPECT_EQ(played.streamed_finish, "tool_calls");
    EXPECT_EQ(played.streamed.at("call 0 name"), "weather");
    EXPECT_EQ(played.streamed.at("call 0 arguments"), calls[0].at("function").at("arguments"));
    EXPECT_EQ(played.streamed.at("call 1 name"), "time");
}

TEST(ChatCompletionResponder, CallsBehindTheFirstAreLeftOutWhereOneIsAsked) {
    text::ReplySyntax syntax;
    syntax.tools = text::ToolSyntax::kHermes;
    const Played played =
        play(syntax,
             {"<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Berlin\"}}\n</tool_call>\n",
              "<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>"},
             true);
    ASSERT_EQ(played.message.at("tool_calls").as_array().size(), 1u);
    EXPECT_EQ(played.message.at("tool_calls").at(0).at("function").at("name"), "weather");
    EXPECT_EQ(played.finish, "tool_calls");
    EXPECT_TRUE(played.streamed.contains("call 0 name"));
    EXPECT_FALSE(played.streamed.contains("call 1 name"));
}

TEST(ChatCompletionResponder, CustomToolsAreCalledWithTheirInput) {
    text::ReplySyntax syntax;
    syntax.tools = text::ToolSyntax::kHermes;
    const Played played = play(
        syntax,
        {"<tool_call>\n{\"name\": \"patch\", \"argu", "ments\": {\"input\": \"a\\", "nb\\u00e4\"}}\n</tool_call>\n",
         "<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"x\": 1}}\n</tool_call>\n",
         "<tool_call>\n{\"name\": \"time\", \"arguments\": {\"input\": \"c\"}}\n</tool_call>"},
        false, {"patch"});
    const json::array& calls = played.message.at("tool_calls").as_array();
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_EQ(calls[0].at("type"), "custom");
    EXPECT_FALSE(calls[0].as_object().contains("function"));
    EXPECT_EQ(calls[0].at("custom"), (json::value{{"name", "patch"}, {"input", "a\nb\u00e4"}}));
    // Arguments without an input are returned as the model wrote them.
    EXPECT_EQ(json::parse(calls[1].at("custom").at("input").as_string()), json::parse(R"({"x":1})"));
    EXPECT_EQ(calls[2].at("type"), "function");
    EXPECT_EQ(calls[2].at("function").at("name"), "time");
    EXPECT_EQ(played.streamed.at("call 0 name"), "patch");
    EXPECT_EQ(played.streamed.at("call 0 input"), "a\nb\u00e4");
    EXPECT_FALSE(played.streamed.contains("call 0 arguments"));
    EXPECT_EQ(played.streamed.at("call 1 input"), calls[1].at("custom").at("input"));
    EXPECT_EQ(played.streamed.at("call 2 arguments"), calls[2].at("function").at("arguments"));
    EXPECT_EQ(played.streamed_finish, "tool_calls");
}

TEST(ChatCompletionResponder, ABrokenCallIsContent) {
    text::ReplySyntax syntax;
    syntax.tools = text::ToolSyntax::kHermes;
    const Played played = play(syntax, {"<tool_call>\n{\"nam"});
    EXPECT_FALSE(played.message.contains("tool_calls"));
    EXPECT_EQ(played.message.at("content"), "<tool_call>\n{\"nam");
    EXPECT_EQ(played.finish, "stop");
}

}  // namespace
}  // namespace tessera::server
