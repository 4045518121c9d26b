// What models write instead of their format of calls: forms that public reports show, made up anew.
#include "tests/text/replies.hpp"

#include <memory>

namespace tessera::text {
namespace {

using enum ToolSyntax;
using Calls = std::vector<std::pair<std::string, std::string>>;

ReplySyntax syntax_with_tools(ToolSyntax tools, bool reasoning = false) {
    ReplySyntax syntax{.reasoning = reasoning, .tools = tools};
    syntax.names = std::make_shared<const ToolNames>(ToolNames{"ping", "pong"});
    syntax.texts = std::make_shared<const TextParameters>(TextParameters{{"ping", "text"}});
    return syntax;
}

struct Form {
    ToolSyntax syntax;
    std::string_view text;
    ReadReply expected;
};

void expect_forms(const std::vector<Form>& forms) {
    for (const Form& form : forms) {
        EXPECT_EQ(read_every_way(syntax_with_tools(form.syntax), form.text), form.expected)
            << name_of(form.syntax) << ": " << form.text;
        // Where a grammar holds the answer to its syntax nothing is guessed: only what is read then may have calls.
        ReplySyntax exact = syntax_with_tools(form.syntax);
        exact.exact = true;
        read_every_way(exact, form.text);
    }
}

const ReadReply kPing{"", "", {{"ping", R"({"n": 1})"}}};
const ReadReply kBoth{"", "", {{"ping", R"({"n": 1})"}, {"pong", "{}"}}};

ReadReply with_content(std::string content, Calls calls) {
    return {"", std::move(content), std::move(calls)};
}

TEST(ReplyForms, CallsWithoutTheirMark) {
    expect_forms({
        {kQwenXml, "<function=ping>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>", kPing},
        {kQwenXml, "I will look.\n\n<function=ping>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
         with_content("I will look.", kPing.calls)},
        {kQwenXml, "<function=ping>\n<parameter=n>\n1\n</parameter>\n</function>\n<function=pong>\n</function>", kBoth},
        {kQwenXml,
         "<function=ping>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>\n<function=pong>\n</function>",
         kBoth},
        {kQwenXml, "Use <function=other> <function=ping", with_content("Use <function=other> <function=ping", {})},
        {kSeedXml, "<function=ping><parameter=n>1</parameter></function></seed:tool_call>", kPing},
        {kHermes, R"({"name": "ping", "arguments": {"n": 1}})", kPing},
        {kHermes, "{\"name\": \"ping\", \"arguments\": {\"n\": 1}}\n</tool_call>", kPing},
        {kHermes, "<tools>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}}\n</tools>", kPing},
        {kHermes, R"({"name": "Bob", "arguments": {"n": 1}})",
         with_content(R"({"name": "Bob", "arguments": {"n": 1}})", {})},
        {kHermes, R"({"name": "ping", "age": 1})", with_content(R"({"name": "ping", "age": 1})", {})},
        {kMistral, R"([{"name": "ping", "arguments": {"n": 1}}, {"name": "pong", "arguments": {}}])", kBoth},
        {kMistralNamed, R"(ping[ARGS]{"n": 1})", kPing},
        {kMistralNamed, R"(other[ARGS]{"n": 1})", with_content(R"(other[ARGS]{"n": 1})", {})},
        {kGranite, R"(<tool_call>[{"name": "ping", "arguments": {"n": 1}}])", kPing},
        {kGranite, R"([{"name": "ping", "arguments": {"n": 1}}])", kPing},
        {kMiniMax, "<invoke name=\"ping\">\n<parameter name=\"n\">1</parameter>\n</invoke>\n</minimax:tool_call>",
         kPing},
        {kMiniMax,
         "<tool_calls>\n<invoke name=\"ping\">\n<parameter name=\"n\">1</parameter>\n</invoke>\n</tool_calls>", kPing},
        {kGemma, "call:ping{n:1}<tool_call|>", kPing},
        {kLfm2, "[ping(n=1), pong()]", kBoth},
        {kLfm2, "[other(n=1)]", with_content("[other(n=1)]", {})},
        {kGlm, "ping\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", kPing},
        {kKimi,
         "<|tool_call_section_begin|><|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>{\"n\": 1}"
         "<|tool_call_end|>",
         kPing},
        {kLlama3, R"(<function=ping>{"n": 1}</function>)", kPing},
        {kLlama3, R"({"name": "ping", "parameters": null})", {"", "", {{"ping", "{}"}}}},
    });
}

TEST(ReplyForms, CallsThatAreOnlyMentioned) {
    for (const std::string_view text :
         {"The syntax `<function=ping>` is dangerous.", "<function=ping> is dangerous.", "Write\n<function=ping>\nhere",
          "So <function=ping>\n<parameter=n>\n1\n</parameter>\n</function> is a call.", "Hm\n<function=ping>\n"}) {
        for (const ToolSyntax tools : {kQwenXml, kHermes})
            expect_forms({{tools, text, with_content(std::string(text), {})}});
    }
    for (const std::string_view text :
         {"The syntax `<invoke name=\"ping\">` is dangerous.", "<invoke name=\"ping\"> is dangerous.",
          "So <invoke name=\"ping\">\n</invoke> is a call."})
        expect_forms({{kMiniMax, text, with_content(std::string(text), {})}});
    expect_forms({
        {kQwenXml, "Hm\n<function=ping>\n<parameter=n>\n1\n</parameter>\n</function>", with_content("Hm", kPing.calls)},
        {kMiniMax, "Hm\n<invoke name=\"pong\">\n</invoke>", with_content("Hm", {{"pong", "{}"}})},
    });
}

TEST(ReplyForms, OnlyKnownRecipientsAreCalled) {
    expect_forms({
        {kRecipient, ">>>a\n>>>b\n", with_content(">>>a\n>>>b\n", {})},
        {kRecipient, ">>>ping\n{\"n\": 1}>>>pong\n", kBoth},
        {kRecipient, ">>>ping\n>>>pong\n", with_content(">>>ping\n", {{"pong", "{}"}})},
    });
}

TEST(ReplyForms, MarksThatAreMissingAtTheEnd) {
    expect_forms({
        {kQwenXml, "<tool_call>\n<function=ping>\n<parameter=n>\n1\n</parameter>\n</function>", kPing},
        {kQwenXml, "<tool_call>\n<function=ping>\n<parameter=n>\n1\n</parameter>\n</tool_call>", kPing},
        {kQwenXml, "<tool_call>\n<function=ping>\n<parameter=n>\n1\n</function>\n</tool_call>", kPing},
        {kQwenXml,
         "<tool_call>\n<function=ping>\n<parameter=text>\na\n</function>\n</tool_call>\n",
         {"", "", {{"ping", R"({"text": "a"})"}}}},
        {kQwenXml,
         "<tool_call>\n<function=ping>\n<parameter=text>\na\n</function>\n</tool_call>\nb\n</parameter>\n</function>",
         {"", "", {{"ping", R"({"text": "a\n</function>\n</tool_call>\nb"})"}}}},
        {kQwenXml,
         "<tool_call>\n<function=ping>\n<parameter=text>\nhalf of a te",
         {"", "", {{"ping", R"({"text": "half of a te"})"}}}},
        {kGlm, "<tool_call>ping<arg_key>n</arg_key><arg_value>1</tool_call>", kPing},
        {kHermes, "<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}}", kPing},
        {kHermes, "<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}\n</tool_call>", kPing},
        {kHermes,
         "<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1\n</tool_call>",
         {"", "", {{"ping", "{\"n\": 1\n}"}}}},
        {kHermes, "<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}}}\n</tool_call>", kPing},
        {kMistral, R"([TOOL_CALLS][{"name": "ping", "arguments": {"n": 1}})", kPing},
        {kDeepSeekV31, "<｜tool▁call▁begin｜>ping<｜tool▁sep｜>{\"n\": 1<｜tool▁call▁end｜>", kPing},
    });
}

TEST(ReplyForms, SeveralInOneTag) {
    expect_forms({
        {kHermes,
         "<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}}\n{\"name\": \"pong\", \"arguments\": "
         "{}}\n</tool_call>",
         kBoth},
        {kHermes,
         "<tool_call>{\"name\": \"ping\", \"arguments\": {\"n\": 1}}, {\"name\": \"pong\", \"arguments\": "
         "{}}</tool_call>",
         kBoth},
        {kHermes, "<tool_call>[{\"name\": \"ping\", \"arguments\": {\"n\": 1}}, {\"name\": \"pong\"}]</tool_call>",
         kBoth},
    });
}

TEST(ReplyForms, ArgumentsThatAreNoObject) {
    const ReadReply empty{"", "", {{"ping", "{}"}}};
    expect_forms({
        {kHermes, "<tool_call>{\"name\": \"ping\", \"arguments\": null}</tool_call>", empty},
        {kHermes, "<tool_call>{\"name\": \"ping\", \"arguments\": \"\"}</tool_call>", empty},
        {kHermes, "<tool_call>{\"name\": \"ping\"}</tool_call>", empty},
        {kHermes, R"(<tool_call>{"name": "ping", "arguments": "{\"n\": 1}"}</tool_call>)", kPing},
        {kHermes, "<tool_call>{\"name\": \"ping\", \"arguments\": nothing}</tool_call>",
         with_content("<tool_call>{\"name\": \"ping\", \"arguments\": nothing}</tool_call>", {})},
        {kKimi, R"(<|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>"{\"n\": 1}"<|tool_call_end|>)",
         kPing},
        {kKimi, "<|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>null<|tool_call_end|>", empty},
        {kMistralNamed, R"([TOOL_CALLS]ping[ARGS]"{\"n\": 1}")", kPing},
        {kDeepSeekV31, "<｜tool▁call▁begin｜>ping<｜tool▁sep｜>null<｜tool▁call▁end｜>", empty},
        {kDeepSeekV31, "<｜tool▁call▁begin｜>ping<｜tool▁sep｜><｜tool▁call▁end｜>", empty},
    });
}

TEST(ReplyForms, ArgumentsAreMended) {
    expect_forms({
        {kHermes,
         "<tool_call>{\"name\": \"ping\", \"arguments\": {'n': 1, \"b\": True,}}</tool_call>",
         {"", "", {{"ping", R"({"n": 1, "b": true})"}}}},
        {kHermes,
         "<tool_call>{\"name\": \"ping\", \"arguments\": {\"text\": \"a\nb\"}}</tool_call>",
         {"", "", {{"ping", R"({"text": "a\nb"})"}}}},
        {kKimi, "<|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>{\"n\": 1,}<|tool_call_end|>", kPing},
    });
}

TEST(ReplyForms, OneFormatWithinAnother) {
    expect_forms({
        {kQwenXml, "<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}}\n</tool_call>", kPing},
        {kHermes, "<tool_call>\n<function=ping>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>", kPing},
        {kGlm, "<tool_call>ping<arg_key>n</arg_key></arg_key><arg_value>1</arg_value></tool_call>", kPing},
        {kGlm, "<tool_call>ping<arg_key><arg_key>n</arg_key><arg_value>1</arg_value></tool_call>", kPing},
        {kGlm, "<tool_call>ping<arg_key>n</arg_key>1</arg_value></tool_call>", kPing},
        {kGemma,
         "<|tool_call>call:ping{n=1,text='a b',c:New York}<tool_call|>",
         {"", "", {{"ping", R"({"n": 1, "text": "a b", "c": "New York"})"}}}},
        {kLfm2,
         "<|tool_call_start|>[ping(n=1, c=Paris)]<|tool_call_end|>",
         {"", "", {{"ping", R"({"n": 1, "c": "Paris"})"}}}},
    });
}

TEST(ReplyForms, RecipientsWithoutAnEnd) {
    ReplySyntax syntax = syntax_with_tools(kMuse, true);
    syntax.framing = ReplyFraming::kRecipients;
    const std::string call =
        "<atem:function_calls>\n<atem:invoke name=\"ping\">\n<atem:parameter name=\"n\">1</atem:parameter>\n"
        "</atem:invoke>\n</atem:function_calls>";
    EXPECT_EQ(read_every_way(syntax, " to=self<|message|>Hm to=ping<|message|>" + call + "<|eot|>"),
              (ReadReply{"Hm", "", kPing.calls}));
    EXPECT_EQ(read_every_way(syntax, "I look.\n" + call), (ReadReply{"", "I look.", kPing.calls}));
    EXPECT_EQ(read_every_way(syntax, " to=user<|message|>Write " + call), (ReadReply{"", "Write " + call, {}}));
}

TEST(ReplyForms, ReasoningWithoutItsMarks) {
    ReplySyntax syntax = syntax_with_tools(kHermes, true);
    // Only closed: empty.
    EXPECT_EQ(read_every_way(syntax, "</think>\n\nHi"), (ReadReply{"", "Hi", {}}));
    // Not opened: known when the answer is complete, else content.
    const std::string unopened = "Let me think.\n</think>\n\nHi";
    EXPECT_EQ(read_every_way(syntax, unopened), (ReadReply{"", unopened, {}}));
    syntax.whole = true;
    EXPECT_EQ(read_every_way(syntax, unopened), (ReadReply{"Let me think.", "Hi", {}}));
    EXPECT_EQ(read_every_way(syntax, "Hi"), (ReadReply{"", "Hi", {}}));
    EXPECT_EQ(read_every_way(syntax, "Let me think.</think>\nHi"), (ReadReply{"Let me think.", "Hi", {}}));
    const std::string close = "Close it with `</think>`.";
    EXPECT_EQ(read_every_way(syntax, close), (ReadReply{"", close, {}}));
    EXPECT_EQ(
        read_every_way(syntax, "<tool_call>{\"name\": \"ping\", \"arguments\": {\"text\": \"</think>\"}}</tool_call>"),
        (ReadReply{"", "", {{"ping", R"({"text": "</think>"})"}}}));
    // Not closed before a call that ends the answer.
    EXPECT_EQ(read_every_way(syntax,
                             "<think>Hm.\n<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}}\n</tool_call>"),
              (ReadReply{"Hm.", "", kPing.calls}));
    const std::string mentioned = "I could write <tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call> here";
    EXPECT_EQ(read_every_way(syntax, "<think>" + mentioned + ".</think>Hi"), (ReadReply{mentioned + ".", "Hi", {}}));
    EXPECT_EQ(read_every_way(syntax, "<think>" + mentioned), (ReadReply{mentioned, "", {}}));
}

TEST(ReplyForms, ChannelsWithoutTheirWords) {
    ReplySyntax syntax = syntax_with_tools(kChannels, true);
    syntax.framing = ReplyFraming::kChannels;
    EXPECT_EQ(read_every_way(syntax, "<|channel|>commentary to=ping <|constrain|>json<|message|>{\"n\": 1}<|call|>"),
              kPing);
    EXPECT_EQ(read_every_way(syntax, "<|channel|>commentary to=functions.ping<|message|>{\"n\": 1<|call|>"), kPing);
    EXPECT_EQ(read_every_way(syntax, "<|channel|>commentary to=functions.ping<|message|>I call ping.<|end|>"),
              (ReadReply{"", "I call ping.", {}}));
    EXPECT_EQ(read_every_way(syntax, "<|channel|>commentary to=functions.pingjson<|message|>{\"n\": 1}<|call|>"),
              kPing);
    EXPECT_EQ(read_every_way(syntax, "<|channel|>commentary to=functions.pong<|message|><|call|>"),
              (ReadReply{"", "", {{"pong", "{}"}}}));
    EXPECT_EQ(read_every_way(syntax, "<|channel|>analysis to=assistant<|message|>Hm<|end|>"),
              (ReadReply{"Hm", "", {}}));
}

}  // namespace
}  // namespace tessera::text
