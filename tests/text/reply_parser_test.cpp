#include "core/text/reply_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace tessera::text {
namespace {

using Events = std::vector<ReplyEvent>;
using testing::ElementsAre;

constexpr auto kReasoning = ReplyKind::kReasoning;
constexpr auto kContent = ReplyKind::kContent;
constexpr auto kToolCall = ReplyKind::kToolCall;
constexpr auto kArguments = ReplyKind::kToolArguments;

#define TSR_DSML "\uff5cDSML\uff5c"
#define TSR_CALLS "<\uff5ctool\u2581calls\u2581begin\uff5c>"
#define TSR_CALLS_END "<\uff5ctool\u2581calls\u2581end\uff5c>"
#define TSR_CALL "<\uff5ctool\u2581call\u2581begin\uff5c>"
#define TSR_CALL_END "<\uff5ctool\u2581call\u2581end\uff5c>"
#define TSR_SEP "<\uff5ctool\u2581sep\uff5c>"

// Events of the same kind, one after the other, as one.
Events joined(const Events& events) {
    Events all;
    for (const ReplyEvent& one : events) {
        if (!all.empty() && one.kind != kToolCall && all.back().kind == one.kind && all.back().call == one.call) {
            all.back().text += one.text;
        } else {
            all.push_back(one);
        }
    }
    return all;
}

Events parse(const ReplySyntax& syntax, const std::vector<std::string_view>& cuts) {
    ReplyParser made(syntax);
    ReplyParser parser(std::move(made));
    Events events;
    for (const std::string_view cut : cuts) {
        parser.push(cut, events);
        for (const ReplyEvent& one : events) EXPECT_FALSE(one.text.empty());
    }
    parser.finish(events);
    return joined(events);
}

struct Sample {
    std::string name;
    ReplySyntax syntax;
    std::string text;
    Events expected;
};

ReplySyntax thinks(ToolSyntax tools = ToolSyntax::kNone) {
    return {.reasoning = true, .tools = tools};
}
ReplySyntax begins_thinking(ToolSyntax tools = ToolSyntax::kNone) {
    return {.reasoning = true, .begins_in_reasoning = true, .tools = tools};
}
ReplySyntax calls(ToolSyntax tools) {
    return {.tools = tools};
}
ReplySyntax channels() {
    return {.framing = ReplyFraming::kChannels, .reasoning = true, .tools = ToolSyntax::kChannels};
}

const std::vector<Sample>& samples() {
    using enum ToolSyntax;
    static const std::vector<Sample> all = {
        // Reasoning.
        {"plain", {}, " <think>a</think>b ", {{kContent, " <think>a</think>b "}}},
        {"reasoning", thinks(), "\n <think>\n\na\n\nb\n</think>\n\nc\n", {{kReasoning, "a\n\nb"}, {kContent, "c\n"}}},
        {"none", thinks(), " a <think>b</think>", {{kContent, " a <think>b</think>"}}},
        {"empty", thinks(), "<think>\n\n</think>\n\nc", {{kContent, "c"}}},
        {"only once",
         thinks(),
         "<think>a</think>b<think>c</think>",
         {{kReasoning, "a"}, {kContent, "b<think>c</think>"}}},
        {"cut marker", thinks(), "<thin", {{kContent, "<thin"}}},
        {"cut spaces", thinks(), " \n", {{kContent, " \n"}}},
        {"begun", begins_thinking(), "a <b>\n</think>c</think>", {{kReasoning, "a <b>"}, {kContent, "c</think>"}}},
        {"begun twice", begins_thinking(), "<think>\na</think>c", {{kReasoning, "a"}, {kContent, "c"}}},
        {"begun, not ended", begins_thinking(), "\na\n</thin", {{kReasoning, "a\n</thin"}}},
        {"begun, newlines at the end", begins_thinking(), "a\n\n", {{kReasoning, "a\n\n"}}},
        {"other marks",
         {.reasoning = true, .reasoning_begin = "[T]", .reasoning_end = "[/T]"},
         "[T]a[/[/T]b",
         {{kReasoning, "a[/"}, {kContent, "b"}}},
        // Calls between two markers.
        {"kimi",
         calls(kKimi),
         "Let me see.<|tool_calls_section_begin|><|tool_call_begin|>functions.a_b:0<|tool_call_argument_begin|>{\"x\": "
         "[1]}<|tool_call_end|><|tool_call_begin|>functions.c:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_"
         "calls_"
         "section_end|> ok",
         {{kContent, "Let me see."},
          {kToolCall, "a_b", 0},
          {kArguments, "{\"x\": [1]}", 0},
          {kToolCall, "c", 1},
          {kArguments, "{}", 1},
          {kContent, " ok"}}},
        {"kimi cut",
         calls(kKimi),
         "<|tool_calls_section_begin|><|tool_call_be",
         {{kContent, "<|tool_calls_section_begin|><|tool_call_be"}}},
        {"glm",
         calls(kGlm),
         "\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x "
         "y</arg_value>\n<arg_key>n</arg_key>\n<arg_value>7</arg_value>\n"
         "<arg_key>l</arg_key>\n<arg_value>[1, {\"z\": true}]</arg_value>\n</tool_call>\n<tool_call>g</tool_call>",
         {{kToolCall, "f", 0},
          {kArguments, "{\"a\": \"x y\", \"n\": 7, \"l\": [1, {\"z\": true}]}", 0},
          {kToolCall, "g", 1},
          {kArguments, "{}", 1}}},
        {"glm of text",
         {.tools = kGlm, .texts = std::make_shared<TextParameters>(TextParameters{{"f", "a"}})},
         "<tool_call>f<arg_key>a</arg_key><arg_value>7</arg_value></tool_call>",
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"7\"}"}}},
        {"glm that is none",
         calls(kGlm),
         "a <tool_call>f g {} </tool_call> b<tool_call>",
         {{kContent, "a <tool_call>f g {} </tool_call> b<tool_call>"}}},
        {"xml",
         calls(kQwenXml),
         "Hm.\n\n<tool_call>\n<function=f>\n<parameter=a>\nx\n\ny\n</parameter>\n<parameter=n>\n1.50\n</parameter>\n</"
         "function>\n"
         "</tool_call>",
         {{kContent, "Hm."}, {kToolCall, "f"}, {kArguments, "{\"a\": \"x\\n\\ny\", \"n\": 1.50}"}}},
        {"xml cut in a value",
         calls(kQwenXml),
         "<tool_call>\n<function=f>\n<parameter=a>\nx",
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"x\"}"}}},
        {"xml cut in a list",
         calls(kQwenXml),
         "<tool_call>\n<function=f>\n<parameter=a>\n[1, <",
         {{kToolCall, "f"}, {kArguments, "{\"a\": [1, \"<\"]}"}}},
        {"xml cut in a name", calls(kQwenXml), "<tool_call>\n<function=f", {{kContent, "<tool_call>\n<function=f"}}},
        {"xml of values",
         calls(kQwenXml),
         "<tool_call>\n<function=f>\n<parameter=a>\n2024-05-06\n</parameter>\n<parameter=b>\n-1e3\n</parameter>\n"
         "<parameter=c>\nTrue\n</parameter>\n<parameter=d>\ntruer\n</parameter>\n<parameter=e>\n\n</parameter>\n"
         "<parameter=f>\n\"q\"\n</parameter>\n<parameter=g>\n[not it\n</parameter>\n<parameter=h>\n{'a': "
         "None}\n</parameter></function></tool_call>",
         {{kToolCall, "f"},
          {kArguments,
           "{\"a\": \"2024-05-06\", \"b\": -1e3, \"c\": true, \"d\": \"truer\", \"e\": \"\", \"f\": "
           "\"\\\"q\\\"\", \"g\": \"[not it\", \"h\": {\"a\": null}}"}}},
        {"xml with forgotten ends",
         calls(kQwenXml),
         "<tool_call>\n<function=f>\n<parameter=a>x</parameter>\n<function=g>\n</tool_call>b",
         {{kToolCall, "f", 0},
          {kArguments, "{\"a\": \"x\"}", 0},
          {kToolCall, "g", 1},
          {kArguments, "{}", 1},
          {kContent, "b"}}},
        {"xml without its end",
         calls(kQwenXml),
         "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n",
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"x\"}"}}},
        {"glm with text between",
         calls(kGlm),
         "<tool_call>f<arg_key>a</arg_key>oops</tool_call>",
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"oops\"}"}}},
        {"seed",
         calls(kSeedXml),
         "<seed:tool_call>\n<function=f>\n<parameter=l>[1, {'z': True}]</parameter>\n</function>\n</seed:tool_call>",
         {{kToolCall, "f"}, {kArguments, "{\"l\": [1, {\"z\": true}]}"}}},
        {"minimax",
         calls(kMiniMax),
         "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">x</parameter>\n</invoke>\n<invoke "
         "name=\"g\">\n</invoke>\n</minimax:tool_call>",
         {{kToolCall, "f", 0}, {kArguments, "{\"a\": \"x\"}", 0}, {kToolCall, "g", 1}, {kArguments, "{}", 1}}},
        {"functionary",
         calls(kFunctionary),
         "<function=f>{\"a\": \"</\"}</function><function=g>{}</function>",
         {{kToolCall, "f", 0}, {kArguments, "{\"a\": \"</\"}", 0}, {kToolCall, "g", 1}, {kArguments, "{}", 1}}},
        {"functionary in prose",
         calls(kFunctionary),
         "<function=f>x</function> <function=f g>{}",
         {{kContent, "<function=f>x</function> <function=f g>{}"}}},
        {"functionary with forgotten braces",
         calls(kFunctionary),
         "<function=f>{\"a\": [1</function><function=g></function>",
         {{kToolCall, "f", 0}, {kArguments, "{\"a\": [1]}", 0}, {kToolCall, "g", 1}, {kArguments, "{}", 1}}},
        {"kimi in reasoning",
         begins_thinking(kKimi),
         "so <|tool_call_begin|>f:0<|tool_call_argument_begin|> {}<|tool_calls_section_end|>",
         {{kReasoning, "so "}, {kToolCall, "f"}, {kArguments, "{}"}}},
        {"mistral named as a list",
         calls(kMistralNamed),
         "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}]",
         {{kToolCall, "f"}, {kArguments, "{\"a\": 1}"}}},
        {"mistral named without mark",
         calls(kMistralNamed),
         "[TOOL_CALLS]f{\"a\": 1}",
         {{kToolCall, "f"}, {kArguments, "{\"a\": 1}"}}},
        {"mistral cut",
         calls(kMistral),
         "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": [",
         {{kToolCall, "f"}, {kArguments, "{\"a\": []}"}}},
        {"mistral that is none",
         calls(kMistral),
         "[TOOL_CALLS] [] [TOOL_CALLS][1]",
         {{kContent, "[TOOL_CALLS] [] [TOOL_CALLS][1]"}}},
        {"mistral",
         calls(kMistral),
         "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": \"]\"}, \"id\": \"123456789\"}, {\"name\": \"g\", "
         "\"arguments\": {}}]",
         {{kToolCall, "f", 0}, {kArguments, "{\"a\": \"]\"}", 0}, {kToolCall, "g", 1}, {kArguments, "{}", 1}}},
        {"mistral named",
         calls(kMistralNamed),
         "[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{\"a\": {\"b\": \"}\"}}[TOOL_CALLS]g[ARGS]{}",
         {{kToolCall, "f", 0}, {kArguments, "{\"a\": {\"b\": \"}\"}}", 0}, {kToolCall, "g", 1}, {kArguments, "{}", 1}}},
        {"granite",
         calls(kGranite),
         "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]",
         {{kToolCall, "f"}, {kArguments, "{\"a\": 1}"}}},
        {"arguments as text",
         calls(kGranite),
         "<|tool_call|>[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{\\\"a\\\": "
         "\\\"\\ud83d\\ude00\\\\n\\\"}\"}, \"id\": \"{\"}, {\"name\": \"g\", \"arguments\": \"x\"}]",
         {{kToolCall, "f", 0},
          {kArguments, "{\"a\": \"\U0001f600\\n\"}", 0},
          {kToolCall, "g", 1},
          {kArguments, "\"x\"", 1}}},
        {"firefunction in prose",
         calls(kFireFunction),
         "functools is a module; functools[{\"name\": \"f\", \"arguments\": {}}]",
         {{kContent, "functools is a module; "}, {kToolCall, "f"}, {kArguments, "{}"}}},
        {"apriel",
         calls(kApriel),
         "<tool_calls>[{\"name\": \"f\", \"arguments\": {}}</tool_calls>b",
         {{kToolCall, "f"}, {kArguments, "{}"}, {kContent, "b"}}},
        {"gigachat",
         calls(kGigaChat),
         "Hm<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
         {{kContent, "Hm"}, {kToolCall, "f"}, {kArguments, "{\"a\": 1}"}}},
        {"gemma that is none",
         calls(kGemma),
         "<|tool_call>call:f(x)<tool_call|>",
         {{kContent, "<|tool_call>call:f(x)<tool_call|>"}}},
        {"gemma cut",
         calls(kGemma),
         "<|tool_call>call:f{a:<|\"|>x<|",
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"x<|\"}"}}},
        {"gemma broken",
         calls(kGemma),
         "<|tool_call>call:f{a:oops}<tool_call|>",
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"oops\"}"}}},
        {"gemma",
         calls(kGemma),
         "<|tool_call>call:f{a:<|\"|>x, "
         "\"y\"}<|\"|>,l:[1,{z:true}],n:-7.5}<tool_call|><|tool_call>call:g{}<tool_call|>",
         {{kToolCall, "f", 0},
          {kArguments, "{\"a\": \"x, \\\"y\\\"}\", \"l\": [1, {\"z\": true}], \"n\": -7.5}", 0},
          {kToolCall, "g", 1},
          {kArguments, "{}", 1}}},
        {"lfm2",
         calls(kLfm2),
         "<|tool_call_start|>[f(a=\"x\\n'\", n=3, l=[1, None], d={'k': True}), g()]<|tool_call_end|>Done.",
         {{kToolCall, "f", 0},
          {kArguments, "{\"a\": \"x\\n'\", \"n\": 3, \"l\": [1, null], \"d\": {\"k\": true}}", 0},
          {kToolCall, "g", 1},
          {kArguments, "{}", 1},
          {kContent, "Done."}}},
        {"lfm2 escapes",
         calls(kLfm2),
         "<|tool_call_start|>[f(a='\\x41\\u00e9\\ud83d\\ude00\\d\\\n', b=(1, 'x',), c=-2.5e3 d=[])]<|tool_call_end|>",
         {{kToolCall, "f"},
          {kArguments, "{\"a\": \"A\u00e9\\ud83d\\ude00\\\\d\", \"b\": [1, \"x\"], \"c\": -2.5e3, \"d\": []}"}}},
        {"lfm2 as json",
         calls(kLfm2),
         "<|tool_call_start|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]<|tool_call_end|>b",
         {{kToolCall, "f"}, {kArguments, "{\"a\": 1}"}, {kContent, "b"}}},
        {"lfm2 that is none",
         calls(kLfm2),
         "<|tool_call_start|>[]<|tool_call_end|><|tool_call_start|>[f]",
         {{kContent, "<|tool_call_start|>[]<|tool_call_end|><|tool_call_start|>[f]"}}},
        {"lfm2 without the bracket", calls(kLfm2), "<|tool_call_start|>[f()", {{kToolCall, "f"}, {kArguments, "{}"}}},
        {"nemotron",
         calls(kNemotron),
         "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {}}]</TOOLCALL>",
         {{kToolCall, "f"}, {kArguments, "{}"}}},
        {"command r",
         calls(kCommandR),
         "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {\"a\": "
         "1}}\n]<|END_ACTION|>",
         {{kToolCall, "f"}, {kArguments, "{\"a\": 1}"}}},
        {"actions",
         calls(kActions),
         "I look.\nAction:\n```json\n[\n    {\n        \"tool_name\": \"f\",\n        \"parameters\": {}\n    "
         "},\n{\"tool_name\": \"g\"}\n]```\n",
         {{kContent, "I look."},
          {kToolCall, "f", 0},
          {kArguments, "{}", 0},
          {kToolCall, "g", 1},
          {kArguments, "{}", 1}}},
        {"dsml v4",
         calls(kDeepSeekV4),
         "\n\n<\uff5cDSML\uff5ctool_calls>\n<\uff5cDSML\uff5cinvoke "
         "name=\"f\">\n</\uff5cDSML\uff5cinvoke>\n</\uff5cDSML\uff5ctool_calls>",
         {{kToolCall, "f"}, {kArguments, "{}"}}},
        // gpt-oss.
        {"channels",
         channels(),
         "<|channel|>analysis<|message|>Hm\n<|end|><|start|>assistant<|channel|>commentary to=functions.f "
         "<|constrain|>json<|message|>{\"a\": 1}<|call|>",
         {{kReasoning, "Hm"}, {kToolCall, "f"}, {kArguments, "{\"a\": 1}"}}},
        {"channels with an answer",
         channels(),
         "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>So < it "
         "<|is|>.<|return|>",
         {{kReasoning, "Hm"}, {kContent, "So < it <|is|>."}}},
        {"channels with the call in front",
         channels(),
         " to=functions.f<|channel|>commentary json<|message|><|call|>",
         {{kToolCall, "f"}, {kArguments, "{}"}}},
        {"channels that are none", channels(), "Hello <|there", {{kContent, "Hello <|there"}}},
        {"channels with an end inside of a string",
         channels(),
         "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": \"\\\"<|call|>\"}<|call|>",
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"\\\"<|call|>\"}"}}},
        {"channels cut", channels(), "<|channel|>fin", {{kContent, "<|channel|>fin"}}},
        // DeepSeek V3.
        {"v3",
         calls(kDeepSeekV3),
         "Let me see." TSR_CALLS TSR_CALL "function" TSR_SEP
         "add\n```json\n{\"a\": 1, \"b\": \"`\\n```\"}\n```" TSR_CALL_END "\n" TSR_CALL "function" TSR_SEP
         "now\n```json\n{}\n```" TSR_CALL_END TSR_CALLS_END " Done.",
         {{kContent, "Let me see."},
          {kToolCall, "add", 0},
          {kArguments, "{\"a\": 1, \"b\": \"`\\n```\"}", 0},
          {kToolCall, "now", 1},
          {kArguments, "{}", 1},
          {kContent, " Done."}}},
        {"v3 without the first marker",
         calls(kDeepSeekV3),
         TSR_CALL "function" TSR_SEP "add\n```json\n{}```" TSR_CALLS_END,
         {{kToolCall, "add"}, {kArguments, "{}"}}},
        {"v3 cut",
         calls(kDeepSeekV3),
         TSR_CALLS TSR_CALL "function" TSR_SEP "add\n```json\n{\"a\n``",
         {{kToolCall, "add"}, {kArguments, "{}"}}},
        {"v3 cut after the fence",
         calls(kDeepSeekV3),
         TSR_CALLS TSR_CALL "function" TSR_SEP "add\n```json\n{}\n```",
         {{kToolCall, "add"}, {kArguments, "{}"}}},
        {"v3 cut before the arguments",
         calls(kDeepSeekV3),
         "a" TSR_CALLS TSR_CALL "function" TSR_SEP "add\n```json",
         {{kContent, "a" TSR_CALLS TSR_CALL "function" TSR_SEP "add\n```json"}}},
        {"v3 no name",
         calls(kDeepSeekV3),
         TSR_CALLS TSR_CALL "function" TSR_SEP " \n```json\n{}\n```" TSR_CALL_END TSR_CALLS_END,
         {{kContent, TSR_CALLS TSR_CALL "function" TSR_SEP " \n```json\n{}\n```" TSR_CALL_END TSR_CALLS_END}}},
        {"v3 no call", calls(kDeepSeekV3), TSR_CALLS TSR_CALLS_END "a", {{kContent, TSR_CALLS TSR_CALLS_END "a"}}},
        {"v3 bad, then good",
         calls(kDeepSeekV3),
         TSR_CALLS "x" TSR_CALLS TSR_CALL "function" TSR_SEP "f\n```json\n{}\n```" TSR_CALL_END "\ny",
         {{kContent, TSR_CALLS "x"}, {kToolCall, "f"}, {kArguments, "{}"}, {kContent, "\ny"}}},
        {"v3 good, then bad",
         calls(kDeepSeekV3),
         TSR_CALL "function" TSR_SEP "f\n```json\n{}\n```" TSR_CALL_END "\n" TSR_CALL "other" TSR_SEP "g",
         {{kToolCall, "f"}, {kArguments, "{}"}, {kContent, "\n" TSR_CALL "other" TSR_SEP "g"}}},
        {"r1 calls in reasoning",
         begins_thinking(kDeepSeekV3),
         "so\n" TSR_CALLS TSR_CALL "function" TSR_SEP "f\n```json\n{}\n```" TSR_CALL_END TSR_CALLS_END "a",
         {{kReasoning, "so"}, {kToolCall, "f"}, {kArguments, "{}"}, {kContent, "a"}}},
        {"r1 no call in reasoning",
         begins_thinking(kDeepSeekV3),
         "so\n" TSR_CALLS "\n</think>a",
         {{kReasoning, "so\n" TSR_CALLS}, {kContent, "a"}}},
        // DeepSeek V3.1.
        {"v3.1",
         thinks(kDeepSeekV31),
         "<think>r</think>c" TSR_CALLS TSR_CALL "f" TSR_SEP "{\"a\": [1]}" TSR_CALL_END TSR_CALL "g" TSR_SEP
         "{}" TSR_CALL_END TSR_CALLS_END,
         {{kReasoning, "r"},
          {kContent, "c"},
          {kToolCall, "f", 0},
          {kArguments, "{\"a\": [1]}", 0},
          {kToolCall, "g", 1},
          {kArguments, "{}", 1}}},
        {"v3.1 an end inside of a string",
         calls(kDeepSeekV31),
         TSR_CALLS TSR_CALL "f" TSR_SEP "{\"a\": \"\\\"" TSR_CALL_END TSR_CALLS_END "\"}" TSR_CALL_END TSR_CALLS_END,
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"\\\"" TSR_CALL_END TSR_CALLS_END "\"}"}}},
        {"v3.1 no name",
         calls(kDeepSeekV31),
         TSR_CALLS TSR_CALL TSR_SEP "{}" TSR_CALL_END,
         {{kContent, TSR_CALLS TSR_CALL TSR_SEP "{}" TSR_CALL_END}}},
        {"v3.1 bad arguments",
         calls(kDeepSeekV31),
         TSR_CALLS TSR_CALL "f" TSR_SEP "{\"a\": <" TSR_CALL_END TSR_CALLS_END,
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"<\"}"}}},
        // DeepSeek V3.2.
        {"v3.2",
         calls(kDeepSeekV32),
         "c\n\n<" TSR_DSML "function_calls>\n<" TSR_DSML "invoke name=\"f\">\n<" TSR_DSML
         "parameter name=\"a\" string=\"true\">x\n\"<y>\"</" TSR_DSML "parameter>\n<" TSR_DSML
         "parameter name=\"b\" string=\"false\">[1, 2]</" TSR_DSML "parameter>\n</" TSR_DSML "invoke>\n<" TSR_DSML
         "invoke name=\"g\">\n</" TSR_DSML "invoke>\n</" TSR_DSML "function_calls>",
         {{kContent, "c"},
          {kToolCall, "f", 0},
          {kArguments, "{\"a\": \"x\\n\\\"<y>\\\"\", \"b\": [1, 2]}", 0},
          {kToolCall, "g", 1},
          {kArguments, "{}", 1}}},
        {"v3.2 no name",
         calls(kDeepSeekV32),
         "<" TSR_DSML "function_calls>\n<" TSR_DSML "invoke name=\"\">\n",
         {{kContent, "<" TSR_DSML "function_calls>\n<" TSR_DSML "invoke name=\"\">\n"}}},
        {"v3.2 broken parameter",
         calls(kDeepSeekV32),
         "\n<" TSR_DSML "function_calls><" TSR_DSML "invoke name=\"f\"> <" TSR_DSML "parameter name=\"a\">1</" TSR_DSML
         "parameter>",
         {{kToolCall, "f"},
          {kArguments, "{}"},
          {kContent, " <" TSR_DSML "parameter name=\"a\">1</" TSR_DSML "parameter>"}}},
        {"v3.2 cut",
         calls(kDeepSeekV32),
         "<" TSR_DSML "function_calls><" TSR_DSML "invoke name=\"f\"><" TSR_DSML
         "parameter name=\"a\" string=\"true\">x</" TSR_DSML,
         {{kToolCall, "f"}, {kArguments, "{\"a\": \"x</" TSR_DSML "\"}"}}},
        {"v3.2 cut after a value",
         calls(kDeepSeekV32),
         "<" TSR_DSML "function_calls><" TSR_DSML "invoke name=\"f\"><" TSR_DSML
         "parameter name=\"a\" string=\"false\">[1]</" TSR_DSML "parameter>",
         {{kToolCall, "f"}, {kArguments, "{\"a\": [1]}"}}},
        // Hermes.
        {"hermes",
         thinks(kHermes),
         "<think>\nr\n</think>\n\nc\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
         "\"}</tool_call>\\\"{\"}}\n</tool_call>\n<tool_call>"
         "{\"arguments\": [1, {}], \"name\": \"g\\u00e4\"}</tool_call>\n",
         {{kReasoning, "r"},
          {kContent, "c"},
          {kToolCall, "f", 0},
          {kArguments, "{\"a\": \"}</tool_call>\\\"{\"}", 0},
          {kToolCall, "g\u00e4", 1},
          {kArguments, "[1, {}]", 1}}},
        {"hermes no arguments",
         calls(kHermes),
         "<tool_call>{\"name\": \"f\"}</tool_call>a",
         {{kToolCall, "f"}, {kArguments, "{}"}, {kContent, "a"}}},
        {"hermes no name",
         calls(kHermes),
         "<tool_call>{\"arguments\": {}}</tool_call>",
         {{kContent, "<tool_call>{\"arguments\": {}}</tool_call>"}}},
        {"hermes empty name",
         calls(kHermes),
         "<tool_call>{\"name\": \"\"}",
         {{kContent, "<tool_call>{\"name\": \"\"}"}}},
        {"hermes brace forgotten",
         calls(kHermes),
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}\n</tool_call>b",
         {{kToolCall, "f"}, {kArguments, "{\"a\": 1}"}, {kContent, "b"}}},
        {"hermes braces forgotten",
         calls(kHermes),
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>b",
         {{kToolCall, "f"}, {kArguments, "{\"a\": 1}"}, {kContent, "b"}}},
        {"hermes brace too many",
         calls(kHermes),
         "<tool_call>{\"name\": \"f\", \"arguments\": 7}}</tool_call>",
         {{kToolCall, "f"}, {kArguments, "7"}}},
        {"hermes cut",
         calls(kHermes),
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"a",
         {{kToolCall, "f"}, {kArguments, "{}"}}},
        {"hermes bad arguments",
         calls(kHermes),
         "<tool_call>{\"name\": \"f\", \"arguments\": \x01}</tool_call>",
         {{kContent, "<tool_call>{\"name\": \"f\", \"arguments\": \x01}</tool_call>"}}},
        {"hermes bad member after the arguments",
         calls(kHermes),
         "<tool_call>{\"name\": \"f\", \"arguments\": 7, \"arguments\":/x</tool_call>",
         {{kToolCall, "f"}, {kArguments, "7"}, {kContent, "/x</tool_call>"}}},
        {"hermes cut early",
         calls(kHermes),
         "a\n<tool_call>\n{\"name\": \"f\"",
         {{kContent, "a\n<tool_call>\n{\"name\": \"f\""}}},
        {"hermes in prose",
         calls(kHermes),
         "Write <tool_call> and <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
         {{kContent, "Write <tool_call> and "}, {kToolCall, "f"}, {kArguments, "{}"}}},
        {"hermes call after a bad one",
         calls(kHermes),
         "<tool_call>{\"name\":\"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
         {{kContent, "<tool_call>{\"name\":\""}, {kToolCall, "f"}, {kArguments, "{}"}}},
        {"hermes in reasoning",
         begins_thinking(kHermes),
         "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call></think>",
         {{kReasoning, "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"}}},
        {"hermes ends reasoning",
         begins_thinking(kHermes),
         "a<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
         {{kReasoning, "a"}, {kToolCall, "f"}, {kArguments, "{}"}}},
        // Llama.
        {"llama",
         calls(kLlama3),
         "{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"a\": {}}}",
         {{kToolCall, "f"}, {kArguments, "{\"a\": {}}"}}},
        {"llama several",
         calls(kLlama3),
         "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {\"b\": 1}}\n",
         {{kToolCall, "f", 0}, {kArguments, "{}", 0}, {kToolCall, "g", 1}, {kArguments, "{\"b\": 1}", 1}}},
        {"llama tag",
         calls(kLlama3),
         "a <|python_tag|>{\"name\": \"f\", \"parameters\": {}}",
         {{kContent, "a "}, {kToolCall, "f"}, {kArguments, "{}"}}},
        {"llama code", calls(kLlama3), "<|python_tag|>print(1)", {{kContent, "<|python_tag|>print(1)"}}},
        {"llama json answer",
         calls(kLlama3),
         "{\"name\": \"Bob\", \"age\": 3}",
         {{kContent, "{\"name\": \"Bob\", \"age\": 3}"}}},
        {"llama json answer with a name alone",
         calls(kLlama3),
         "{\"name\": \"Bob\"}",
         {{kContent, "{\"name\": \"Bob\"}"}}},
        {"llama call not at the start",
         calls(kLlama3),
         "a {\"name\": \"f\", \"parameters\": {}}",
         {{kContent, "a {\"name\": \"f\", \"parameters\": {}}"}}},
        {"llama goes on with an object",
         {.content_begun = true, .tools = kLlama3},
         "{\"name\": \"f\", \"parameters\": {}}",
         {{kContent, "{\"name\": \"f\", \"parameters\": {}}"}}},
        {"llama goes on with a tag",
         {.content_begun = true, .tools = kLlama3},
         "{<|python_tag|>{\"name\": \"f\", \"parameters\": {}}",
         {{kContent, "{"}, {kToolCall, "f"}, {kArguments, "{}"}}},
        {"a form's text that spells a call",
         {.content_or_calls = true, .tools = kHermes},
         "\n{\"a\": \"<tool_call>\\n{\\\"name\\\": 1}\"}<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
         {{kContent,
           "\n{\"a\": \"<tool_call>\\n{\\\"name\\\": 1}\"}<tool_call>{\"name\": \"f\", \"arguments\": "
           "{}}</tool_call>"}}},
        {"several calls in place of a form's text",
         {.content_or_calls = true, .tools = kHermes},
         "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": \"g\", \"arguments\": "
         "{}}</tool_call>",
         {{kToolCall, "f"}, {kArguments, "{}"}, {kToolCall, "g", 1}, {kArguments, "{}", 1}}},
        {"llama text after",
         calls(kLlama3),
         "\n{\"name\": \"f\", \"parameters\": {}}; or",
         {{kContent, "\n"}, {kToolCall, "f"}, {kArguments, "{}"}, {kContent, "; or"}}},
        {"llama text for arguments",
         calls(kLlama3),
         "{\"name\": \"f\", \"parameters\": \"x\"}",
         {{kContent, "{\"name\": \"f\", \"parameters\": \"x\"}"}}},
    };
    return all;
}

class Samples : public testing::TestWithParam<Sample> {};

TEST_P(Samples, Whole) {
    EXPECT_EQ(parse(GetParam().syntax, {GetParam().text}), GetParam().expected);
}

TEST_P(Samples, EverySplit) {
    const std::string_view text = GetParam().text;
    for (size_t at = 0; at <= text.size(); ++at)
        ASSERT_EQ(parse(GetParam().syntax, {text.substr(0, at), text.substr(at)}), GetParam().expected)
            << "split at " << at;
}

TEST_P(Samples, EveryByteAlone) {
    std::vector<std::string_view> cuts;
    for (size_t at = 0; at < GetParam().text.size(); ++at)
        cuts.push_back(std::string_view(GetParam().text).substr(at, 1));
    EXPECT_EQ(parse(GetParam().syntax, cuts), GetParam().expected);
}

TEST_P(Samples, RandomSplits) {
    std::mt19937 random(7);
    const std::string_view text = GetParam().text;
    for (int i = 0; i < 100; ++i) {
        std::vector<std::string_view> cuts;
        for (size_t at = 0; at < text.size();) {
            const size_t length = random() % 9;
            cuts.push_back(text.substr(at, length));
            at += length;
        }
        ASSERT_EQ(parse(GetParam().syntax, cuts), GetParam().expected);
    }
}

// As every syntax: what a text becomes does not depend on how it is cut, also where it is another family's.
TEST_P(Samples, EverySyntaxAndLengthWholeAsInBytes) {
    for (int tools = 0; tools <= static_cast<int>(ToolSyntax::kLast); ++tools) {
        for (const bool begun : {false, true}) {
            const ReplySyntax syntax = {
                .reasoning = begun, .begins_in_reasoning = begun, .tools = static_cast<ToolSyntax>(tools)};
            for (size_t length = 0; length <= GetParam().text.size(); length += 3) {
                const std::string_view text = std::string_view(GetParam().text).substr(0, length);
                std::vector<std::string_view> cuts;
                for (size_t at = 0; at < length; ++at) cuts.push_back(text.substr(at, 1));
                ASSERT_EQ(parse(syntax, {text}), parse(syntax, cuts)) << tools << " " << text;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(ReplyParser, Samples, testing::ValuesIn(samples()), [](const auto& sample) {
    std::string name = std::to_string(sample.index) + "_" + sample.param.name;
    for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
});

TEST(ReplyParser, PassesOnAtOnceWhatIsNoMarker) {
    ReplyParser parser(begins_thinking(ToolSyntax::kHermes));
    Events events;
    parser.push("ab<", events);
    EXPECT_THAT(events, ElementsAre(ReplyEvent{kReasoning, "ab"}));
    parser.push("c\n", events);
    EXPECT_THAT(events, ElementsAre(ReplyEvent{kReasoning, "ab"}, ReplyEvent{kReasoning, "<c"}));
    events.clear();
    parser.push("</think>x", events);
    EXPECT_THAT(events, ElementsAre(ReplyEvent{kContent, "x"}));
    events.clear();
    parser.push("<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"b", events);
    EXPECT_THAT(events, ElementsAre(ReplyEvent{kToolCall, "f"}, ReplyEvent{kArguments, "{\"a\":\"b"}));
    events.clear();
    parser.push("c", events);
    EXPECT_THAT(events, ElementsAre(ReplyEvent{kArguments, "c"}));
}

// A text in the arguments, of which each byte is passed on at once: in every syntax that has calls.
TEST(ReplyParser, ArgumentsArePassedOnWhileTheyAreWritten) {
    using enum ToolSyntax;
    const std::string json = "{\"name\": \"f\", \"arguments\": {\"a\": \"";
    const std::vector<std::pair<ToolSyntax, std::string>> begins = {
        {kDeepSeekV3, TSR_CALLS TSR_CALL "function" TSR_SEP "f\n```json\n{\"a\": \""},
        {kDeepSeekV31, TSR_CALLS TSR_CALL "f" TSR_SEP "{\"a\": \""},
        {kDeepSeekV32, "<" TSR_DSML "function_calls><" TSR_DSML "invoke name=\"f\"><" TSR_DSML
                       "parameter name=\"a\" string=\"true\">"},
        {kDeepSeekV4,
         "<" TSR_DSML "tool_calls><" TSR_DSML "invoke name=\"f\"><" TSR_DSML "parameter name=\"a\" string=\"true\">"},
        {kHermes, "<tool_call>" + json},
        {kLlama3, "{\"name\": \"f\", \"parameters\": {\"a\": \""},
        {kKimi, "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": \""},
        {kGlm, "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>"},
        {kQwenXml, "<tool_call>\n<function=f>\n<parameter=a>\n"},
        {kSeedXml, "<seed:tool_call>\n<function=f>\n<parameter=a>"},
        {kMiniMax, "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">"},
        {kFunctionary, "<function=f>{\"a\": \""},
        {kMistral, "[TOOL_CALLS][" + json},
        {kMistralNamed, "[TOOL_CALLS]f[ARGS]{\"a\": \""},
        {kGranite, "<|tool_call|>[" + json},
        {kGemma, "<|tool_call>call:f{a:<|\"|>"},
        {kLfm2, "<|tool_call_start|>[f(a=\""},
        {kNemotron, "<TOOLCALL>[" + json},
        {kApriel, "<tool_calls>[" + json},
        {kCommandR, "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {\"a\": \""},
        {kGigaChat, "<|message_sep|>\n\nfunction call<|role_sep|>\n" + json},
        {kFireFunction, "functools[" + json},
        {kActions, "Action:\n```json\n[\n{\"tool_name\": \"f\", \"parameters\": {\"a\": \""},
        {kChannels, "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": \""},
        {kApertus, "<|tools_prefix|>[{\"f\": {\"a\": \""},
        {kGigaChat31, "<|function_call|>" + json},
        {kRecipient, ">>>f\n{\"a\": \""},
        {kKimiK3,
         "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"a\" "
         "type=\"string\"<|sep|>"},
        {kMiniMaxM1, "<tool_calls>\n" + json},
        {kMiniMaxM3, "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<a>"},
        {kMuse, " to=f<|message|><atem:function_calls>\n<atem:invoke name=\"f\">\n<atem:parameter name=\"a\">"},
        {kMiniCpm, "<function name=\"f\"><param name=\"a\">"},
        {kHunyuan, "<tool_calls>\n<tool_call>f<tool_sep>\n<arg_key>a</arg_key>\n<arg_value>"},
        {kHunyuanOpen,
         "<tool_call:opensource>f<tool_sep:opensource>\n<arg_key:opensource>a</arg_key:opensource>\n"
         "<arg_value:opensource>"},
        {kSolar, "<|tool_calls|><|tool_call:begin|>i<|tool_call:name|>f<|tool_call:args|>{\"a\": \""}};
    EXPECT_EQ(begins.size(), static_cast<size_t>(kLast));
    for (const auto& [tools, begin] : begins) {
        SCOPED_TRACE(begin);
        const bool tags = tools == kGlm || tools == kQwenXml || tools == kSeedXml || tools == kMiniMax ||
                          tools == kMuse || tools == kMiniCpm || tools == kHunyuan || tools == kHunyuanOpen;
        const auto texts = std::make_shared<TextParameters>(TextParameters{{"f", "a"}});
        for (const bool known : {false, true}) {
            // A value between MiniMax-M3's tags may hold others.
            if (tools == kMiniMaxM3 && !known) continue;
            ReplySyntax syntax = tools == kChannels ? channels() : calls(tools);
            if (tools == kMuse) syntax.framing = ReplyFraming::kRecipients;
            if (known) syntax.texts = texts;
            ReplyParser parser(syntax);
            Events events;
            parser.push(begin, events);
            // 7 is a text where the schema says so, and 7x is one without it.
            if (tags && !known) parser.push("7", events);
            for (const char c : tags&& known ? std::string("7xyz") : std::string("xyz")) {
                events.clear();
                parser.push(std::string(1, c), events);
                ASSERT_FALSE(events.empty()) << c;
                EXPECT_EQ(events.back().kind, kArguments);
                EXPECT_TRUE(events.back().text.ends_with(c));
            }
        }
    }
}

// What is never decided, a byte at a time: quadratic work would take minutes.
TEST(ReplyParser, IsLinear) {
    constexpr size_t kBytes = 400'000;
    for (const auto& [tools, begin, cut] : std::vector<std::tuple<ToolSyntax, std::string, std::string>>{
             {ToolSyntax::kHermes, "<tool_call>{\"arguments\": [", "\"x\", "},
             {ToolSyntax::kHermes, "<tool_call>{\"name\": \"", "x"},
             {ToolSyntax::kHermes, "<tool_call>", "\n"},
             {ToolSyntax::kHermes, "", "<tool_call>{\"name\":\""},
             {ToolSyntax::kHermes, "", "<tool_call>{\"arguments\": ["},
             {ToolSyntax::kGranite, "", "<|tool_call|>[{\"a\":{\"b\":["},
             {ToolSyntax::kKimi, "<|tool_call_begin|>", "x"},
             {ToolSyntax::kMistralNamed, "", "[TOOL_CALLS]f[CALL_ID]"},
             {ToolSyntax::kQwenXml, "<tool_call><function=f><parameter=a>", "[1, "},
             {ToolSyntax::kQwenXml, "<tool_call><function=f><parameter=a>", "7"},
             {ToolSyntax::kQwenXml, "<tool_call><function=f><parameter=a>", "\n"},
             {ToolSyntax::kQwenXml, "", "<tool_call><function="},
             {ToolSyntax::kGlm, "<tool_call>", "f"},
             {ToolSyntax::kGemma, "<|tool_call>call:f{a:", "["},
             {ToolSyntax::kLfm2, "<|tool_call_start|>[f(a=", "7"},
             {ToolSyntax::kLfm2, "<|tool_call_start|>", "["},
             {ToolSyntax::kLlama3, "{\"parameters\": {\"a\": \"", "{"},
             {ToolSyntax::kDeepSeekV3, TSR_CALLS TSR_CALL "function" TSR_SEP, "x"},
             {ToolSyntax::kDeepSeekV31, "", TSR_CALLS TSR_CALL},
             {ToolSyntax::kDeepSeekV31, TSR_CALLS TSR_CALL "f" TSR_SEP, "<"},
             {ToolSyntax::kDeepSeekV32, "", "\n"},
             {ToolSyntax::kDeepSeekV32, "<" TSR_DSML "function_calls><" TSR_DSML "invoke name=\"", "x"}}) {
        SCOPED_TRACE(begin + cut);
        std::string text = begin;
        while (text.size() < kBytes) text += cut;
        std::vector<std::string_view> cuts;
        for (size_t at = 0; at < text.size(); ++at) cuts.push_back(std::string_view(text).substr(at, 1));
        ReplyParser parser(calls(tools));
        Events events;
        for (const std::string_view one : cuts) parser.push(one, events);
        parser.finish(events);
        size_t bytes = 0;
        for (const ReplyEvent& one : events) bytes += one.text.size();
        // Brackets that were not closed are.
        EXPECT_LE(bytes, 2 * text.size());
        // Of a value that is only white space nothing is certain: its key is dropped.
        const bool nothing = tools == ToolSyntax::kQwenXml && cut == "\n";
        if (!nothing) EXPECT_GT(bytes, text.size() - 100);
    }
}

}  // namespace
}  // namespace tessera::text
