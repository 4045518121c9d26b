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

TEST(ReplyForms, NothingAfterArgumentsVanishes) {
    ReplySyntax channels = syntax_with_tools(kChannels, true);
    channels.framing = ReplyFraming::kChannels;
    const auto message = [&](std::string_view text) {
        return read_every_way(channels,
                              "<|channel|>commentary to=functions.ping<|message|>" + std::string(text) + "<|call|>");
    };
    const Calls twice = {{"ping", R"({"n": 1})"}, {"ping", R"({"n": 2})"}};
    EXPECT_EQ(message(R"({"n": 1}{"n": 2})"), (ReadReply{"", "", twice}));
    EXPECT_EQ(message(R"({"n": 1}, {"n": 2})"), (ReadReply{"", "", twice}));
    EXPECT_EQ(message(R"({"n": 1}},])"), kPing);
    EXPECT_EQ(message("{\"n\": 1}\""), kPing);
    EXPECT_EQ(message(R"({"n": 1}and so on {"n": 2})"), with_content(R"(and so on {"n": 2})", kPing.calls));
    EXPECT_EQ(message(R"({"n": 1}}, then)"), with_content("}, then", kPing.calls));
    EXPECT_EQ(message(R"({"n": 1}{see above})"), with_content("{see above}", kPing.calls));
    EXPECT_EQ(message(R"({"n": 1}{)"), with_content("{", kPing.calls));
    EXPECT_EQ(message(R"({"n": 1}{})"), with_content("", {{"ping", R"({"n": 1})"}, {"ping", "{}"}}));
    EXPECT_EQ(message(R"("{\"n\": 1}")"), kPing);
    const std::string begin = "<｜tool▁call▁begin｜>", end = "<｜tool▁call▁end｜>";
    for (const auto& [after, expected] : std::vector<std::pair<std::string, ReadReply>>{
             {R"({"n": 2})", {"", "", twice}}, {"see", with_content("see", kPing.calls)}, {"}]", kPing}}) {
        expect_forms({
            {kDeepSeekV31, begin + "ping<｜tool▁sep｜>{\"n\": 1}" + after + end, expected},
            {kDeepSeekV3, begin + "function<｜tool▁sep｜>ping\n```json\n{\"n\": 1}" + after + "\n```" + end, expected},
            {kKimiK3,
             R"(<|open|>tools<|sep|><|open|>call tool="ping" index="1"<|sep|><|open|>json type="object"<|sep|>{"n": 1})" +
                 after + "<|close|>json<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
             expected},
        });
    }
    const ReadReply both{"", "", twice};
    expect_forms({
        {kKimi, R"(<|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>{"n": 1}{"n": 2}<|tool_call_end|>)",
         both},
        {kSolar, R"(<|tool_calls|><|tool_call:begin|>i<|tool_call:name|>ping<|tool_call:args|>{"n": 1}
{"n": 2}<|tool_call:end|><|calls|>)",
         both},
        {kFunctionary, R"(<function=ping>{"n": 1}{"n": 2}</function>)", both},
        {kRecipient, "ping\n{\"n\": 1}{\"n\": 2}", both},
        {kRecipient, "ping\n{\"n\": 1} and so on", with_content(" and so on", kPing.calls)},
        {kMistralNamed, R"([TOOL_CALLS]ping[ARGS]{"n": 1}{"n": 2})", with_content(R"({"n": 2})", kPing.calls)},
    });
    // A value's superfluous bracket does not end the arguments.
    expect_forms({{kDeepSeekV32,
                   "<｜DSML｜function_calls><｜DSML｜invoke name=\"ping\"><｜DSML｜parameter name=\"n\" "
                   "string=\"false\">{\"a\": 1}}</｜DSML｜parameter><｜DSML｜parameter name=\"m\" "
                   "string=\"false\">2</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>",
                   {"", "", {{"ping", R"({"n": {"a": 1}, "m": 2})"}}}}});
}

TEST(ReplyForms, Apertus) {
    const ReadReply empty{"", "", {{"ping", "{}"}}};
    expect_forms({
        {kApertus, R"([{"ping": {"n": 1}}, {"pong": {}}])", kBoth},
        {kApertus, R"([{"ping": {"n": 1}}]<|tools_suffix|>)", kPing},
        {kApertus, R"([{"other": {"n": 1}}])", with_content(R"([{"other": {"n": 1}}])", {})},
        {kApertus, R"(<|tools_prefix|>[{"ping": {"n": 1}}])", kPing},
        {kApertus, R"(<|tools_prefix|>[{"ping": {"n": 1}}<|tools_suffix|>)", kPing},
        {kApertus, R"(<|tools_prefix|>[{"ping": {"n": 1}<|tools_suffix|>)", kPing},
        {kApertus, R"(<|tools_prefix|>[{"ping": {"n": 1<|tools_suffix|>)", kPing},
        {kApertus, R"(<|tools_prefix|>{"ping": {"n": 1}}<|tools_suffix|>)", kPing},
        {kApertus, R"(<|tools_prefix|>[{"ping": {"n": 1}, "pong": {}}]<|tools_suffix|>)", kBoth},
        {kApertus,
         R"(<|tools_prefix|>[{"ping": {"n": 1}}]<|tools_suffix|><|tools_prefix|>[{"pong": {}}]<|tools_suffix|>)",
         kBoth},
        {kApertus, R"(<|tools_prefix|>[{"ping": null}]<|tools_suffix|>)", empty},
        {kApertus, R"(<|tools_prefix|>[{"ping": "{\"n\": 1}"}]<|tools_suffix|>)", kPing},
        {kApertus, R"(<|tools_prefix|>[{"ping": {'n': 1,}}]<|tools_suffix|>)", kPing},
        {kApertus, "<|tools_prefix|>nothing<|tools_suffix|>",
         with_content("<|tools_prefix|>nothing<|tools_suffix|>", {})},
    });
}

TEST(ReplyForms, GigaChat31) {
    expect_forms({
        {kGigaChat31, R"({"name": "ping", "arguments": {"n": 1}})", kPing},
        {kGigaChat31, R"({"name": "other", "arguments": {}})",
         with_content(R"({"name": "other", "arguments": {}})", {})},
        {kGigaChat31, R"(<|function_call|>{"name": "ping", "arguments": {"n": 1})", kPing},
        {kGigaChat31, R"(<|function_call|>{"name": "ping", "arguments": null})", {"", "", {{"ping", "{}"}}}},
        {kGigaChat31, R"(<|function_call|>{"name": "ping", "arguments": "{\"n\": 1}"})", kPing},
        {kGigaChat31, R"(<|function_call|>{"name": "ping", "arguments": {"n": 1}}{"name": "pong", "arguments": {}})",
         kBoth},
        {kGigaChat31, R"(<|function_call|>[{"name": "ping", "arguments": {"n": 1}}, {"name": "pong"}])", kBoth},
        {kGigaChat31, R"(<|function_call|>{"name": "ping", "arguments": {"n": 1}}<|function_call|>{"name": "pong"})",
         kBoth},
        {kGigaChat31, "<|function_call|>ping", with_content("<|function_call|>ping", {})},
    });
}

TEST(ReplyForms, Functionary32) {
    const ReadReply empty{"", "", {{"ping", "{}"}}};
    expect_forms({
        {kRecipient, "ping\n{\"n\": 1}", kPing},
        {kRecipient, "ping\n{\"n\": 1", kPing},
        {kRecipient, "ping\n{\"n\": 1>>>pong\n{}", kBoth},
        {kRecipient, "ping\n{\"text\": \">>>pong\"}", {"", "", {{"ping", R"({"text": ">>>pong"})"}}}},
        {kRecipient, "ping\nnull", empty},
        {kRecipient, "ping\nnull\n>>>pong\n{}", {"", "", {{"ping", "{}"}, {"pong", "{}"}}}},
        {kRecipient, "ping\nnull is nothing", with_content("ping\nnull is nothing", {})},
        {kRecipient, "ping\n\"{\\\"n\\\": 1}\"", kPing},
        {kRecipient, "ping\nis a tool", with_content("ping\nis a tool", {})},
        {kRecipient, "Hm>>>ping\n{\"n\": 1}", with_content("Hm", kPing.calls)},
    });
}

TEST(ReplyForms, KimiK3) {
    const std::string tools = "<|open|>tools<|sep|>", end = "<|close|>tools<|sep|>", call_end = "<|close|>call<|sep|>";
    const std::string ping = R"(<|open|>call tool="ping" index="1"<|sep|>)";
    const std::string pong = R"(<|open|>call tool="pong" index="2"<|sep|>)" + call_end;
    const std::string key = R"(<|open|>argument key="n" type="number"<|sep|>)", key_end = "<|close|>argument<|sep|>";
    const std::string json = R"(<|open|>json type="object"<|sep|>)", json_end = "<|close|>json<|sep|>";
    expect_forms({
        {kKimiK3, tools + ping + key + "1" + key_end + call_end + pong + end, kBoth},
        {kKimiK3, ping + key + "1" + key_end + call_end + end, kPing},
        {kKimiK3, tools + ping + key + "1" + key_end + call_end, kPing},
        {kKimiK3, tools + ping + key + "1" + key_end + end, kPing},
        {kKimiK3, tools + ping + key + "1" + key_end + pong + end, kBoth},
        {kKimiK3, tools + ping + key + "1" + call_end + end, kPing},
        {kKimiK3, tools + ping + key + "1", kPing},
        {kKimiK3, tools + ping + json + R"({"n": 1})" + json_end + call_end + end, kPing},
        {kKimiK3, tools + ping + json + "null" + json_end + call_end + end, {"", "", {{"ping", "{}"}}}},
        {kKimiK3, "Write " + ping + " here", with_content("Write " + ping + " here", {})},
        {kKimiK3, tools + "nothing" + end, with_content(tools + "nothing" + end, {})},
    });
    // Reasoning that a call ends.
    ReplySyntax syntax = syntax_with_tools(kKimiK3, true);
    syntax.begins_in_reasoning = true;
    syntax.reasoning_begin = "<|open|>think<|sep|>";
    syntax.reasoning_end = "<|close|>think<|sep|>";
    EXPECT_EQ(read_every_way(syntax, "Hm" + tools + ping + key + "1" + key_end + call_end + end),
              (ReadReply{"Hm", "", kPing.calls}));
}

TEST(ReplyForms, MiniMaxM1) {
    expect_forms({
        {kMiniMaxM1, "{\"name\": \"ping\", \"arguments\": {\"n\": 1}}\n</tool_calls>", kPing},
        {kMiniMaxM1, "<tool_calls>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}}", kPing},
        {kMiniMaxM1, "<tool_calls>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}\n</tool_calls>", kPing},
        {kMiniMaxM1,
         "<tool_calls>\n{\"name\": \"ping\", \"arguments\": {\"n\": 1}}\n{\"name\": \"pong\", \"arguments\": "
         "null}\n</tool_calls>",
         kBoth},
        {kMiniMaxM1, "<tool_calls>[{\"name\": \"ping\", \"arguments\": {\"n\": 1}}, {\"name\": \"pong\"}]</tool_calls>",
         kBoth},
        {kMiniMaxM1, "<tool_calls>\n{\"name\": \"ping\", \"arguments\": \"{\\\"n\\\": 1}\"}\n</tool_calls>", kPing},
        {kMiniMaxM1, "Use <tool_calls> here", with_content("Use <tool_calls> here", {})},
    });
}

TEST(ReplyForms, MiniMaxM3) {
    const std::string mark = "]<]minimax[>[", call = mark + "<tool_call>\n", end = mark + "</tool_call>";
    const std::string ping = mark + "<invoke name=\"ping\">", pong = mark + "<invoke name=\"pong\">";
    const std::string invoke_end = mark + "</invoke>\n", one = mark + "<n>1" + mark + "</n>";
    expect_forms({
        {kMiniMaxM3, call + ping + one + invoke_end + pong + invoke_end + end, kBoth},
        {kMiniMaxM3, ping + one + invoke_end + end, kPing},
        {kMiniMaxM3, "Hm\n" + ping + one + invoke_end, with_content("Hm", kPing.calls)},
        {kMiniMaxM3, "Hm\n" + ping + "\n" + one + invoke_end, with_content("Hm", kPing.calls)},
        {kMiniMaxM3, "Hm\n" + pong + invoke_end, with_content("Hm", {{"pong", "{}"}})},
        {kMiniMaxM3, call + ping + one + invoke_end, kPing},
        {kMiniMaxM3, call + ping + one + end, kPing},
        {kMiniMaxM3, call + ping + one, kPing},
        {kMiniMaxM3, call + ping + mark + "<n>1" + invoke_end + end, kPing},
        {kMiniMaxM3, call + ping + mark + "<n>1", kPing},
        {kMiniMaxM3,
         call + ping + mark + "<n>1" + mark + "</m>" + mark + "<m>2" + mark + "</m>" + invoke_end + end,
         {"", "", {{"ping", R"({"n": 1, "m": 2})"}}}},
        {kMiniMaxM3,
         call + ping + mark + "<n>{\"a\": [1, \"x\"]}" + mark + "</n>" + invoke_end + end,
         {"", "", {{"ping", R"({"n": {"a": [1, "x"]}})"}}}},
        {kMiniMaxM3, call + "<invoke name=\"ping\">" + one + invoke_end + end, kPing},
    });
    for (const std::string& text : {"Write\n" + ping + "\nhere", "Write\n" + ping, ping + " is how",
                                    "Write\n" + mark + "<invoke name=\"other\">" + one, "Write " + call + "here"})
        expect_forms({{kMiniMaxM3, text, with_content(text, {})}});
    ReplySyntax syntax = syntax_with_tools(kMiniMaxM3, true);
    syntax.reasoning_begin = "<mm:think>";
    syntax.reasoning_end = "</mm:think>";
    EXPECT_EQ(read_every_way(syntax, "</mm:think>" + call + ping + one + invoke_end + end), kPing);
    EXPECT_EQ(read_every_way(syntax, "<mm:think>Hm" + call + ping + one + invoke_end + end),
              (ReadReply{"Hm", "", kPing.calls}));
    syntax.whole = true;
    EXPECT_EQ(read_every_way(syntax, "Hm</mm:think>\nHi"), (ReadReply{"Hm", "Hi", {}}));
}

TEST(ReplyForms, Muse) {
    ReplySyntax syntax = syntax_with_tools(kMuse, true);
    syntax.framing = ReplyFraming::kRecipients;
    const std::string ping = "<atem:invoke name=\"ping\">\n", pong = "<atem:invoke name=\"pong\">\n</atem:invoke>\n";
    const std::string one = "<atem:parameter name=\"n\">1</atem:parameter>\n", invoke_end = "</atem:invoke>\n";
    const std::string calls = "<atem:function_calls>\n", end = "</atem:function_calls>";
    const std::string to = " to=ping<|message|>";
    for (const std::string& text : {calls + ping + one + invoke_end + end, ping + one + invoke_end + end,
                                    calls + ping + one + invoke_end, calls + ping + one + end, calls + ping + one,
                                    calls + ping + "<atem:parameter name=\"n\">1" + invoke_end + end,
                                    calls + ping + "<atem:parameter name=\"n\">1"}) {
        EXPECT_EQ(read_every_way(syntax, to + text), kPing) << text;
        EXPECT_EQ(read_every_way(syntax, to + text + "<|eot|>"), kPing) << text;
        EXPECT_EQ(read_every_way(syntax, text), kPing) << text;
    }
    EXPECT_EQ(read_every_way(syntax, to + calls + ping + one + invoke_end + pong + end + "<|eot|>"), kBoth);
    EXPECT_EQ(read_every_way(syntax, to + calls + ping + one + invoke_end + end +
                                         "<|eom|><|start|>assistant to=pong"
                                         "<|message|>" +
                                         calls + pong + end + "<|eot|>"),
              kBoth);
    EXPECT_EQ(read_every_way(syntax, to + calls + ping + one + invoke_end + end + " and so on<|eot|>"),
              with_content(" and so on", kPing.calls));
    EXPECT_EQ(read_every_way(syntax, to + "nothing<|eot|>"), with_content("nothing", {}));
}

TEST(ReplyForms, MiniCpm) {
    const std::string one = "<param name=\"n\">1</param>", end = "</function>";
    const std::string ping = "<function name=\"ping\">", pong = "<function name=\"pong\"></function>";
    expect_forms({
        {kMiniCpm, ping + one + end + "\n" + pong, kBoth},
        {kMiniCpm, "Hm\n" + ping + "\n" + one + "\n" + end, with_content("Hm", kPing.calls)},
        {kMiniCpm, ping + one, kPing},
        {kMiniCpm, ping + one + pong, kBoth},
        {kMiniCpm, ping + "<param name=\"n\">1" + end, kPing},
        {kMiniCpm, ping + "<param name=\"n\">1", kPing},
        {kMiniCpm,
         ping + "<param name=\"text\"><![CDATA[a </param> b]]></param>" + end,
         {"", "", {{"ping", R"({"text": "a </param> b"})"}}}},
        {kMiniCpm, ping + "<param name=\"text\"><![CDATA[a", {"", "", {{"ping", R"({"text": "a"})"}}}},
        {kMiniCpm, "Write " + ping + " here", with_content("Write " + ping + " here", {})},
    });
}

TEST(ReplyForms, Hunyuan) {
    for (const ToolSyntax syntax : {kHunyuan, kHunyuanOpen}) {
        const std::string kind = syntax == kHunyuan ? ">" : ":opensource>";
        const std::string section = "<tool_calls" + kind + "\n", section_end = "\n</tool_calls" + kind;
        const std::string call = "<tool_call" + kind, call_end = "</tool_call" + kind, sep = "<tool_sep" + kind + "\n";
        const std::string key = "<arg_key" + kind + "n</arg_key" + kind + "\n<arg_value" + kind;
        const std::string value_end = "</arg_value" + kind + "\n";
        const std::string pong = call + "pong" + sep + call_end;
        expect_forms({
            {syntax, section + call + "ping" + sep + key + "1" + value_end + call_end + "\n" + pong + section_end,
             kBoth},
            {syntax, call + "ping" + sep + key + "1" + value_end + call_end, kPing},
            {syntax, section + call + "ping" + sep + key + "1" + value_end + call_end, kPing},
            {syntax, section + call + "ping" + sep + key + "1" + value_end + section_end, kPing},
            {syntax, section + call + "ping" + sep + key + "1" + value_end, kPing},
            {syntax, section + call + "ping" + sep + key + "1" + call_end + section_end, kPing},
            {syntax, section + call + "ping" + sep + key + "1", kPing},
            {syntax, section + call + "ping\n" + key + "1" + value_end + call_end + section_end, kPing},
            {syntax, section + call + "pong" + call_end + section_end, {"", "", {{"pong", "{}"}}}},
            {syntax, section + "nothing", with_content(section + "nothing", {})},
        });
    }
}

TEST(ReplyForms, Solar) {
    const std::string calls = "<|tool_calls|>", calls_end = "<|calls|>",
                      call = "<|tool_call:begin|>i<|tool_call:name|>";
    const std::string args = "<|tool_call:args|>", end = "<|tool_call:end|>";
    expect_forms({
        {kSolar, calls + call + "ping" + args + R"({"n": 1})" + end + call + "pong" + args + "{}" + end + calls_end,
         kBoth},
        {kSolar, call + "ping" + args + R"({"n": 1})" + end, kPing},
        {kSolar, calls + call + "ping" + args + R"({"n": 1})" + calls_end, kPing},
        {kSolar, calls + call + "ping" + args + R"({"n": 1})", kPing},
        {kSolar, calls + call + "ping" + args + R"({"n": 1)" + end + calls_end, kPing},
        {kSolar, calls + call + "ping" + args + R"({"n": 1})" + call + "pong" + args + "{}" + end + calls_end, kBoth},
        {kSolar, calls + "<|tool_call:begin|>ping" + args + R"({"n": 1})" + end + calls_end, kPing},
        {kSolar, calls + call + "ping" + args + "null" + end + calls_end, {"", "", {{"ping", "{}"}}}},
        {kSolar, calls + call + "ping" + args + end + calls_end, {"", "", {{"ping", "{}"}}}},
        {kSolar, calls + call + "ping" + args + R"("{\"n\": 1}")" + end + calls_end, kPing},
        {kSolar, calls + call + "ping" + args + "nothing" + end + calls_end,
         with_content(calls + call + "ping" + args + "nothing" + end + calls_end, {})},
    });
}

}  // namespace
}  // namespace tessera::text
