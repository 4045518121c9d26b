// Conversations that templates refuse, or of which they would leave calls out, are rewritten: what a model wrote can
// always be sent back.
#include "core/text/chat_history.hpp"

#include "core/base/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tessera::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ChatMessage calling(std::vector<ToolCall> calls, std::string content = "", std::string reasoning = "") {
    return {.role = "assistant",
            .content = std::move(content),
            .reasoning = std::move(reasoning),
            .tool_calls = std::move(calls)};
}
ChatMessage result(std::string content, std::string id) {
    return {.role = "tool", .content = std::move(content), .tool_call_id = std::move(id)};
}
const ChatMessage kQuestion = {"user", "q"};

std::vector<std::string> ids_of(const ChatHistory& history) {
    std::vector<std::string> ids;
    for (const ChatMessage& message : history.messages) {
        for (const ToolCall& call : message.tool_calls) ids.push_back(call.id);
        if (message.role == "tool") ids.push_back("-> " + message.tool_call_id);
    }
    return ids;
}

TEST(ChatHistory, ShortIdsAreNineLettersAndDigitsAndStayApart) {
    ChatHistory history{{kQuestion, calling({{"call_1", "f", "{}"}, {"abcdefgh9", "f", "{}"}, {"call_2", "f", "{}"}}),
                         result("1", "call_1"), result("2", "abcdefgh9"), result("3", "call_2")},
                        {}};
    ASSERT_TRUE(shorten_call_ids(history));
    const std::vector<std::string> ids = ids_of(history);
    ASSERT_EQ(ids.size(), 6u);
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_THAT(ids[i], testing::MatchesRegex("[a-zA-Z0-9]{9}"));
        EXPECT_EQ(ids[i + 3], "-> " + ids[i]);
    }
    EXPECT_EQ(ids[1], "abcdefgh9");
    EXPECT_NE(ids[0], ids[2]);
    // The next turn of the conversation gets the same ids: what is cached stays of use.
    ChatHistory longer = history;
    EXPECT_FALSE(shorten_call_ids(longer));
}

TEST(ChatHistory, CallsWithoutIdsGetSome) {
    ChatHistory history{{kQuestion, calling({{"", "f", "{}"}, {"", "f", "{}"}}), result("1", ""), result("2", "")}, {}};
    ASSERT_TRUE(shorten_call_ids(history));
    const std::vector<std::string> ids = ids_of(history);
    EXPECT_NE(ids[0], ids[1]);
    EXPECT_EQ(ids[2], "-> " + ids[0]);
    EXPECT_EQ(ids[3], "-> " + ids[1]);
}

TEST(ChatHistory, KimisIdsCountTheCallsOfTheConversation) {
    ChatHistory history{{calling({{"call_0", "f", "{}"}, {"x", "g", "{}"}}), result("1", "call_0"), result("2", "x"),
                         calling({{"call_0", "f", "{}"}, {"functions.h:7", "h", "{}"}}), result("3", "call_0")},
                        {}};
    ASSERT_TRUE(use_kimi_call_ids(history));
    EXPECT_THAT(ids_of(history), ElementsAre("functions.f:0", "functions.g:1", "-> functions.f:0", "-> functions.g:1",
                                             "functions.f:2", "functions.h:7", "-> functions.f:2"));
    // A number that an id has already is not given again.
    ChatHistory given{{calling({{"x", "f", "{}"}, {"functions.f:0", "f", "{}"}})}, {}};
    ASSERT_TRUE(use_kimi_call_ids(given));
    EXPECT_THAT(ids_of(given), ElementsAre("functions.f:1", "functions.f:0"));
}

TEST(ChatHistory, ResultsWhoseCallIsNotThereGetShortIdsToo) {
    ChatHistory history{{result("1", "call_0123456789"), kQuestion, calling({{"call_2", "f", "{}"}})}, {}};
    ASSERT_TRUE(shorten_call_ids(history));
    EXPECT_THAT(ids_of(history).front(), testing::MatchesRegex("-> [a-z0-9]{9}"));
}

// 1,024 calls and 100,000 results take a moment, not minutes.
TEST(ChatHistory, ManyResultsAreSplitInLinearTime) {
    std::vector<ToolCall> calls;
    for (int i = 0; i < 1024; ++i) calls.push_back({"c" + std::to_string(i), "f", "{}"});
    ChatHistory history{{kQuestion, calling(calls)}, {}};
    for (int i = 0; i < 100'000; ++i) history.messages.push_back(result("", i % 3 ? "" : "c" + std::to_string(i)));
    ASSERT_TRUE(split_calls(history));
    EXPECT_EQ(history.messages.size(), 1 + 1024 + 100'000u);
}

TEST(ChatHistory, CallsAreSplitBeforeTheirResults) {
    ChatHistory history{{kQuestion,
                         calling({{"a", "f", "{}"}, {"b", "g", "{}"}, {"c", "h", "{}"}}, "text", "thought"),
                         result("of b", "b"),
                         result("of a", "a"),
                         result("of another", "z"),
                         {"user", "r"}},
                        {}};
    ASSERT_TRUE(split_calls(history));
    std::vector<std::string> parts;
    for (const ChatMessage& message : history.messages) {
        parts.push_back(message.tool_calls.empty()
                            ? message.content
                            : message.tool_calls.front().name + message.content + message.reasoning);
        EXPECT_LE(message.tool_calls.size(), 1u);
    }
    EXPECT_THAT(parts, ElementsAre("q", "ftextthought", "of a", "g", "of b", "h", "of another", "r"));
    EXPECT_FALSE(split_calls(history));
}

TEST(ChatHistory, ArgumentsThatAreNoObjectAreWrapped) {
    ChatHistory history{
        {calling({{"a", "f", "{\"x\": 1}"}, {"b", "f", "{\"x\": \"<"}, {"c", "f", "[1]"}, {"d", "f", ""}})}, {}};
    ASSERT_TRUE(wrap_arguments(history));
    std::vector<std::string> arguments;
    for (const ToolCall& call : history.messages.front().tool_calls) arguments.push_back(call.arguments);
    EXPECT_THAT(arguments, ElementsAre("{\"x\": 1}", R"({"arguments": "{\"x\": \"<"})", R"({"arguments": "[1]"})", ""));
}

TEST(ChatHistory, ToolsGetWhatTheyLack) {
    ChatHistory history{
        {kQuestion},
        {{"f", "", "", ""},
         {"g", "d", R"({"properties": {"a": {"enum": ["x"]}, "b": {"anyOf": [{"type": "integer"}]}, "c": {}}})", ""},
         {"h", "d", "", R"({"type": "function", "function": {"name": "h", "parameters": null}})"}}};
    ASSERT_TRUE(complete_tools(history));
    EXPECT_EQ(
        history.tools[0].whole,
        R"({"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}})");
    EXPECT_EQ(
        history.tools[2].whole,
        R"({"type": "function", "function": {"name": "h", "parameters": {"type": "object", "properties": {}}, "description": ""}})");
    ASSERT_TRUE(complete_properties(history));
    EXPECT_THAT(history.tools[1].whole, HasSubstr(R"("a": {"enum": ["x"], "type": "string", "description": ""})"));
    EXPECT_THAT(history.tools[1].whole,
                HasSubstr(R"("b": {"anyOf": [{"type": "integer"}], "type": "integer", "description": ""})"));
    EXPECT_THAT(history.tools[1].whole, HasSubstr(R"("c": {"type": "string", "description": ""})"));
    EXPECT_FALSE(complete_tools(history));
    EXPECT_FALSE(complete_properties(history));
}

// Writes calls as {id name arguments}, one after the other, where `condition` does not refuse the message.
ChatTemplate template_of(const std::string& condition, const std::string& tools = "{{ tools | tojson }}") {
    return ChatTemplate::of_program(
        "{% if tools %}" + tools + "{% endif %}{% for m in messages %}{% if m.tool_calls %}{% if " + condition +
        " %}{{ raise_exception('refused') }}{% endif %}[{{ m.content }}|{{ m.thinking }}"
        "{% for c in m.tool_calls %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ "
        "c.function.arguments | tojson }}}\n</tool_call>{{ c.id }}{% endfor %}]"
        "{% else %}{% if m.role == 'assistant' and not m.content and not m.thinking %}{{ raise_exception('empty') }}{% "
        "endif %}{{ m.role }}:{{ m.content }}{% if m.thinking %}<think>{{ m.thinking }}</think>{% endif %};{% endif "
        "%}{% endfor %}");
}

std::string write(const ChatTemplate& chat, const std::vector<ChatMessage>& messages,
                  std::vector<ChatTool> tools = {}) {
    return chat.write(messages, {.add_generation_prompt = false, .tools = std::move(tools)}).text;
}

TEST(ChatHistory, IdsThatATemplateRefusesAreShortened) {
    const std::string text =
        write(template_of("m.tool_calls[0].id | length != 9"),
              {kQuestion, calling({{"call_0123456789", "f", "{}"}}), result("r", "call_0123456789")});
    EXPECT_THAT(text, testing::ContainsRegex("</tool_call>[a-z0-9]{9}\\]"));
}

TEST(ChatHistory, SeveralCallsAreSplitWhereATemplateTakesOneOrLosesTheOthers) {
    const ChatTemplate losing = ChatTemplate::of_program(
        "{% for m in messages %}{% if m.tool_calls %}{\"name\": \"{{ m.tool_calls[0].function.name }}\", "
        "\"parameters\": {{ m.tool_calls[0].function.arguments | tojson }}}"
        "{% else %}{{ m.content }};{% endif %}{% endfor %}");
    for (const ChatTemplate& chat : {template_of("m.tool_calls | length != 1"), losing}) {
        const std::string text =
            write(chat, {kQuestion, calling({{"a", "f", R"({"x": "one"})"}, {"b", "g", R"({"x": "two"})"}}),
                         result("RESULT1", "a"), result("RESULT2", "b")});
        EXPECT_THAT(text, testing::ContainsRegex("one.*RESULT1.*two.*RESULT2"));
    }
}

TEST(ChatHistory, ContentNextToReasoningAndCallsJoinsIt) {
    const std::vector<ChatMessage> messages = {kQuestion, calling({{"a", "f", "{}"}}, "I look.", "hm")};
    EXPECT_THAT(write(template_of("m.content and m.thinking"), messages), HasSubstr("[|hm\n\nI look.<tool_call>"));
    EXPECT_THAT(write(template_of("m.thinking"), messages), HasSubstr("[hm\n\nI look.|<tool_call>"));
    EXPECT_THAT(write(template_of("m.thinking or m.content"), messages), HasSubstr("[|<tool_call>"));
    EXPECT_THAT(write(template_of("false"), messages), HasSubstr("[I look.|hm<tool_call>"));
}

TEST(ChatHistory, SeveralReasonsToRefuseAreTakenAway) {
    const std::string text =
        write(template_of("m.tool_calls | length != 1 or m.thinking or m.tool_calls[0].function.arguments is string"),
              {kQuestion, calling({{"a", "f", "{"}, {"b", "f", "{}"}}, "I look.", "hm")});
    EXPECT_THAT(text, HasSubstr(R"([hm

I look.|<tool_call>
{"name": "f", "arguments": {"arguments": "{"}})"));
}

TEST(ChatHistory, ToolsThatATemplateCannotDescribeAreCompleted) {
    const ChatTemplate chat = template_of(
        "false",
        "{% for t in tools %}{{ t.function.name + ': ' + t.function.description }}"
        "{% for k, v in t.function.parameters.properties.items() %}{{ k + v.type }}{% endfor %};{% endfor %}");
    EXPECT_THAT(write(chat, {kQuestion}, {{"f", "", "", ""}, {"g", "d", R"({"properties": {"x": {}}})", ""}}),
                HasSubstr("f: ;g: dxstring;"));
    // One that can is given them as they are.
    EXPECT_THAT(write(template_of("false"), {kQuestion}, {{"f", "", "", ""}}), Not(HasSubstr("description")));
}

// Text is left out only if nothing else helps.
TEST(ChatHistory, AnEmptyAnswerCostsNoContent) {
    const std::string text = write(template_of("m.tool_calls[0].function.arguments is string"),
                                   {kQuestion,
                                    calling({{"a", "f", "{bad"}}, "I look.", "hm"),
                                    result("r", "a"),
                                    {"assistant", ""},
                                    {"user", "again"}});
    EXPECT_THAT(text, HasSubstr("[I look.|hm<tool_call>"));
}

TEST(ChatHistory, EmptyAnswersAreLeftOutWhereTheyAreRefused) {
    EXPECT_THAT(write(template_of("false"), {kQuestion, {"assistant", ""}, {"user", "again"}}),
                HasSubstr("user:q;user:again;"));
}

TEST(ChatHistory, WhatIsRefusedInEveryWayKeepsItsReason) {
    const ChatTemplate chat = template_of("m.tool_calls[0].function.name == 'bad'");
    try {
        write(chat, {kQuestion, calling({{"a", "bad", "{"}}, "I look.", "hm")});
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        EXPECT_THAT(error.what(), HasSubstr("refused"));
    }
}

}  // namespace
}  // namespace tessera::text
