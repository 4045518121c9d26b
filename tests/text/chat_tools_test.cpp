// Tools, calls and their results in conversations, against what Jinja makes of the published programs
// (testing/goldens/record_tokenizer_goldens/record_chat_tools.py).
#include "core/base/error.hpp"
#include "core/text/chat_template.hpp"
#include "tests/text/goldens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::text {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

const json::value& recorded() {
    static const json::value file = golden("chat_tools.json");
    return file;
}

std::string text_of(const json::value& value) {
    return json::value_to<std::string>(value);
}

std::string member(const json::value& object, const char* key) {
    const json::value* found = object.as_object().if_contains(key);
    return found ? text_of(*found) : "";
}

std::vector<ChatMessage> conversation(const json::value& index) {
    std::vector<ChatMessage> messages;
    for (const json::value& one : recorded().at("conversations").at(static_cast<size_t>(index.as_int64())).as_array()) {
        ChatMessage message{.role = text_of(one.at("role")), .content = text_of(one.at("content"))};
        message.reasoning = member(one, "reasoning");
        message.tool_call_id = member(one, "tool_call_id");
        if (const json::value* calls = one.as_object().if_contains("tool_calls"))
            for (const json::value& call : calls->as_array())
                message.tool_calls.push_back({member(call, "id"), member(call, "name"), member(call, "arguments")});
        messages.push_back(message);
    }
    return messages;
}

std::vector<ChatTool> tools() {
    std::vector<ChatTool> all;
    for (const json::value& one : recorded().at("tools").as_array()) {
        const json::value function = json::parse(text_of(one)).at("function");
        all.push_back({member(function, "name"), member(function, "description"),
                       json::serialize(function.at("parameters")), text_of(one)});
    }
    return all;
}

ChatOptions options_of(const json::value& one) {
    ChatOptions options{.bos = text_of(recorded().at("bos")), .eos = text_of(recorded().at("eos"))};
    options.add_generation_prompt = one.at("prompt").as_bool();
    if (one.at("thinking").is_bool()) options.thinking = one.at("thinking").as_bool();
    if (one.at("tools").as_bool()) options.tools = tools();
    return options;
}

void expect_cases(const ChatTemplate& chat, const json::value& entry) {
    ASSERT_GE(entry.at("cases").as_array().size(), 15u);
    std::vector<std::string> texts;
    for (const json::value& one : entry.at("cases").as_array()) {
        // The file has what follows the bytes that an earlier text begins with, too.
        const auto like = static_cast<size_t>(one.at("like").as_int64());
        const auto same = static_cast<size_t>(one.at("same").as_int64());
        const std::string text = (texts.empty() ? "" : texts.at(like).substr(0, same)) + text_of(one.at("text"));
        const std::vector<ChatMessage> messages = conversation(one.at("conversation"));
        ASSERT_EQ(chat.render(messages, options_of(one)), text) << json::serialize(one);
        ASSERT_LE(chat.fewest_bytes(messages, options_of(one)), text.size());
        texts.push_back(text);
    }
}

TEST(ChatTools, ByNameRendersAsJinjaDoes) {
    for (const json::value& entry : recorded().at("templates").as_array()) {
        SCOPED_TRACE(text_of(entry.at("name")));
        if (entry.at("by_name").as_bool()) expect_cases(ChatTemplate::by_name(text_of(entry.at("name"))), entry);
    }
}

TEST(ChatTools, ProgramRendersAsJinjaDoes) {
    size_t count = 0;
    for (const json::value& entry : recorded().at("templates").as_array()) {
        SCOPED_TRACE(text_of(entry.at("name")));
        if (entry.at("template").is_null()) continue;
        expect_cases(ChatTemplate::of_program(text_of(entry.at("template"))), entry);
        ++count;
    }
    EXPECT_GE(count, 9u);
}

std::string refusal(tsr_code code, const ChatTemplate& chat, const std::vector<ChatMessage>& messages,
                    const std::vector<ChatTool>& given = {}, std::vector<Advice>* advice = nullptr) {
    try {
        chat.write(messages, {.tools = given, .rewrite = false});
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        if (advice) *advice = error.notice().advice;
        return error.what();
    }
    ADD_FAILURE() << chat.name() << " wrote it";
    return "";
}

ChatMessage calling(std::string arguments) {
    return {.role = "assistant", .content = "", .tool_calls = {{"c", "f", std::move(arguments)}}};
}
const ChatMessage kQuestion = {"user", "q"};
const ChatMessage kResult = {"tool", "r"};

const std::vector<std::string> kWithoutTools = {"deepseek2",      "deepseek-v2.5", "deepseek3", "chatml",
                                                "deepseek-coder", "qwen2",         "llama3",    "kimi-k2"};

TEST(ChatTools, TemplatesWithoutToolsRefuseThem) {
    size_t without = 0;
    for (const std::string& name : ChatTemplate::names()) {
        const ChatTemplate chat = ChatTemplate::by_name(name);
        if (std::ranges::find(kWithoutTools, name) == kWithoutTools.end()) {
            chat.write(std::vector{kQuestion, calling("{}"), kResult}, {.tools = tools()});
            continue;
        }
        std::vector<Advice> advice;
        EXPECT_THAT(refusal(TSR_UNSUPPORTED, chat, {kQuestion}, tools(), &advice), HasSubstr(chat.name()));
        ASSERT_EQ(advice.size(), 1u);
        EXPECT_EQ(advice.front().code, AdviceCode::kNameTemplate);
        EXPECT_THAT(advice.front().value, HasSubstr("deepseek-v3-0324"));
        EXPECT_THAT(advice.front().value, testing::Not(HasSubstr("chatml")));
        EXPECT_THAT(refusal(TSR_UNSUPPORTED, chat, {kQuestion, calling("{}")}), HasSubstr(chat.name()));
        EXPECT_THAT(refusal(TSR_UNSUPPORTED, chat, {kQuestion, kResult}), HasSubstr("role tool"));
        ++without;
    }
    EXPECT_EQ(without, kWithoutTools.size());
}

TEST(ChatTools, BadConversationsAreErrors) {
    const ChatTemplate qwen = ChatTemplate::by_name("qwen3");
    const ChatTemplate llama = ChatTemplate::by_name("llama3.1");
    const ChatTemplate dsml = ChatTemplate::by_name("deepseek-v3.2");
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, qwen, {{"function", "x"}}), HasSubstr("'function'"));
    EXPECT_THAT(
        refusal(TSR_INVALID_ARGUMENT, qwen, {{.role = "user", .content = "x", .tool_calls = {{"c", "f", "{}"}}}}),
        HasSubstr("only an assistant"));
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, qwen, {kQuestion}, {{"f", "d", "{", ""}}), HasSubstr("tool 0"));
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, qwen, {kQuestion}, {{"f", "d", "{}", "[]"}}), HasSubstr("tool 0"));
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, llama, {{"system", "s"}}, tools()), HasSubstr("must be the user's"));
    ChatMessage two = calling("{}");
    two.tool_calls.push_back(two.tool_calls.front());
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, llama, {kQuestion, two}), HasSubstr("one call"));
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, dsml, {kQuestion, kResult}), HasSubstr("message 1"));
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, dsml, {kQuestion, two, kResult}), HasSubstr("2 calls"));
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, dsml, {kQuestion, calling("{}"), kResult, kResult}),
                HasSubstr("found 2"));
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, dsml, {kQuestion, calling("[1]"), kResult}), HasSubstr("JSON object"));
}

TEST(ChatTools, DeveloperIsSystem) {
    for (const std::string& name : ChatTemplate::names()) {
        const ChatTemplate chat = ChatTemplate::by_name(name);
        EXPECT_EQ(chat.render(std::vector<ChatMessage>{{"developer", "s"}, kQuestion}, {}),
                  chat.render(std::vector<ChatMessage>{{"system", "s"}, kQuestion}, {}));
    }
}

// An object that is put together from its parts is the one that an application would give.
TEST(ChatTools, PartsMakeTheWhole) {
    const ChatTemplate chat = ChatTemplate::by_name("qwen3");
    const std::string whole =
        R"({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}})";
    const std::vector<ChatMessage> messages = {kQuestion};
    EXPECT_EQ(chat.render(messages, {.tools = {{"f", "d", R"({"type":"object"})", ""}}}),
              chat.render(messages, {.tools = {{"f", "d", "", whole}}}));
    EXPECT_THAT(chat.render(messages, {.tools = {{"f", "", "", ""}}}),
                HasSubstr(R"({"type": "function", "function": {"name": "f"}})"));
}

// A model may have written arguments that are not JSON; the conversation goes on with them.
TEST(ChatTools, ArgumentsThatAreNotJsonStay) {
    for (const char* name : {"qwen2.5", "qwen3", "llama3.1", "deepseek-v3.1", "deepseek-v3-tools"}) {
        const std::string text =
            ChatTemplate::by_name(name).render(std::vector{kQuestion, calling("{\"a\": <"), kResult}, {});
        EXPECT_THAT(text, HasSubstr("{\"a\": <")) << name;
    }
}

TEST(ChatTools, MarksAllThatIsNotTheTemplates) {
    constexpr std::string_view kSpies =
        "<|im_end|><|eot_id|><\uff5cUser\uff5c><think></think><\uff5ctool\u2581sep\uff5c><tool_call></"
        "\uff5cDSML\uff5cparameter>";
    const std::string spy(kSpies);
    const std::string quoted = "\"" + spy + "\"";
    for (const std::string& name : ChatTemplate::names()) {
        const ChatTemplate chat = ChatTemplate::by_name(name);
        if (std::ranges::find(kWithoutTools, name) != kWithoutTools.end()) continue;
        ChatOptions options{.bos = "<bos>", .eos = "<eos>"};
        options.tools = {{spy, spy, "{\"" + spy + "\": " + quoted + "}", ""}};
        const std::vector<ChatMessage> messages = {{"system", spy},
                                                   {"user", spy},
                                                   {.role = "assistant",
                                                    .content = "",
                                                    .reasoning = spy,
                                                    .tool_calls = {{spy, spy, "{\"" + spy + "\": " + quoted + "}"}}},
                                                   {.role = "tool", .content = spy, .tool_call_id = spy, .name = spy}};
        const WrittenChat written = chat.write(messages, options);
        std::string own;
        size_t at = 0, found = 0;
        for (const TextRange& range : written.contents) {
            ASSERT_LE(at, range.begin) << name;
            ASSERT_LT(range.begin, range.end) << name;
            ASSERT_LE(range.end, written.text.size()) << name;
            own += written.text.substr(at, range.begin - at) + "\n";
            const std::string content = written.text.substr(range.begin, range.end - range.begin);
            for (size_t hit = 0; (hit = content.find(kSpies, hit)) != std::string::npos; hit += kSpies.size()) ++found;
            at = range.end;
        }
        own += written.text.substr(at);
        EXPECT_EQ(own.find(kSpies), std::string::npos) << name << ": " << own;
        EXPECT_GE(found, 8u) << name;
    }
}

// What a template writes of an answer is what the parser takes apart, and what it took apart is written as the same.
TEST(ChatTools, AnswersAreParsedAsTheyAreWritten) {
    const std::string first = R"({"city": "M\u00fcnchen", "n": [1, 2.5, {"a": null}], "text": "</tool_call>\n```"})";
    size_t count = 0;
    for (const std::string& name : ChatTemplate::names()) {
        if (std::ranges::find(kWithoutTools, name) != kWithoutTools.end()) continue;
        SCOPED_TRACE(name);
        const bool one_call = name == "llama3.1";
        const ChatTemplate chat = ChatTemplate::by_name(name);
        ChatMessage answer{
            .role = "assistant", .content = one_call ? "" : "Both.", .tool_calls = {{"c", "weather", first}}};
        if (!one_call) answer.tool_calls.push_back({"d", "now", "{}"});
        ChatOptions options{.eos = "<eos>", .thinking = false, .tools = tools()};
        const WrittenChat opened = chat.write(std::vector{kQuestion}, options);
        std::string before = opened.text;
        // Earlier answers have lost their thoughts.
        for (const std::string_view end : {"<think>\n", "<think>\n\n</think>\n\n"})
            if (before.ends_with(end)) before.resize(before.size() - end.size());
        options.add_generation_prompt = false;
        const std::string after = chat.render(std::vector{kQuestion, answer}, options);
        ASSERT_TRUE(after.starts_with(before));
        std::string_view text = std::string_view(after).substr(before.size());
        if (const std::string_view closed = "<think>\n\n</think>\n\n"; text.starts_with(closed))
            text.remove_prefix(closed.size());
        for (const std::string_view end : {"<|im_end|>\n", "<|eot_id|>", "<\uff5cend\u2581of\u2581sentence\uff5c>"})
            if (text.ends_with(end)) text.remove_suffix(end.size());
        ReplySyntax syntax = opened.reply;
        syntax.begins_in_reasoning = false;
        ReplyParser parser(syntax);
        std::vector<ReplyEvent> events;
        parser.push(text, events);
        parser.finish(events);
        ChatMessage read{.role = "assistant", .content = ""};
        for (const ReplyEvent& event : events) {
            if (event.kind == ReplyKind::kContent) read.content += event.text;
            if (event.kind == ReplyKind::kToolCall) read.tool_calls.push_back({"c", event.text, ""});
            if (event.kind == ReplyKind::kToolArguments) read.tool_calls.at(event.call).arguments += event.text;
        }
        EXPECT_EQ(read.content, answer.content);
        ASSERT_EQ(read.tool_calls.size(), answer.tool_calls.size());
        for (size_t i = 0; i < read.tool_calls.size(); ++i) {
            EXPECT_EQ(read.tool_calls[i].name, answer.tool_calls[i].name);
            EXPECT_EQ(json::parse(read.tool_calls[i].arguments), json::parse(answer.tool_calls[i].arguments));
        }
        EXPECT_EQ(chat.render(std::vector{kQuestion, read}, options), after);
        ++count;
    }
    EXPECT_GE(count, 10u);
}

std::string chat_program(std::string_view tools, std::string_view content, std::string_view calls) {
    std::string all = "{%- if tools -%}" + std::string(tools) + "{%- endif -%}{%- for m in messages -%}";
    all += "{{- '<|im_start|>' + m.role + '\\n' + " + std::string(content) + " -}}" + std::string(calls);
    return all + "{{- '<|im_end|>\\n' -}}{%- endfor -%}{{- '<|im_start|>assistant\\n' if add_generation_prompt -}}";
}

constexpr std::string_view kListed = "{{- tools | tojson -}}";

// What is read of calls, in the way of `program`, is written as the same text.
void expect_round_trip(const std::string& program, ToolSyntax syntax, std::string_view answer) {
    SCOPED_TRACE(answer);
    const ChatTemplate chat = ChatTemplate::of_program(program);
    const ChatOptions options{.eos = "<eos>", .add_generation_prompt = true, .tools = tools()};
    const WrittenChat opened = chat.write(std::vector{kQuestion}, options);
    EXPECT_EQ(opened.reply.tools, syntax);
    ReplyParser parser(opened.reply);
    std::vector<ReplyEvent> events;
    parser.push(answer, events);
    parser.finish(events);
    ChatMessage read{.role = "assistant", .content = ""};
    for (const ReplyEvent& event : events) {
        if (event.kind == ReplyKind::kContent) read.content += event.text;
        if (event.kind == ReplyKind::kToolCall) read.tool_calls.push_back({"c", event.text, ""});
        if (event.kind == ReplyKind::kToolArguments) read.tool_calls.at(event.call).arguments += event.text;
    }
    EXPECT_FALSE(read.tool_calls.empty());
    EXPECT_EQ(read.content.find("weather"), std::string::npos);
    ChatOptions whole = options;
    whole.add_generation_prompt = false;
    EXPECT_EQ(chat.render(std::vector{kQuestion, read}, whole), opened.text + std::string(answer) + "<|im_end|>\n");
}

TEST(ChatTools, CallsComeBackAsTheyWereWritten) {
    using enum ToolSyntax;
    const std::string minimax = chat_program(kListed, "m.content",
                                             R"(
{%- if m.tool_calls -%}
{{- '<minimax:tool_call>\n' -}}
{%- for c in m.tool_calls -%}
{{- '<invoke name="' + c.function.name + '">\n' -}}
{%- for k, v in c.function.arguments | items -%}
{{- '<parameter name="' + k + '">' + (v if v is string else v | tojson) + '</parameter>\n' -}}
{%- endfor -%}
{{- '</invoke>\n' -}}
{%- endfor -%}
{{- '</minimax:tool_call>' -}}
{%- endif -%})");
    expect_round_trip(
        minimax, kMiniMax,
        "a<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">7 </b>\n\"</parameter>\n"
        "<parameter name=\"n\">[1, {\"a\": null}]</parameter>\n</invoke>\n<invoke name=\"weather\">\n</invoke>\n"
        "</minimax:tool_call>");
    const std::string nemotron = chat_program(kListed, "m.content", R"(
{%- if m.tool_calls -%}
{{- '<TOOLCALL>[' -}}
{%- for c in m.tool_calls -%}
{{- ('' if loop.first else ', ') + '{"name": "' + c.function.name + '", "arguments": ' + c.function.arguments | tojson + '}' -}}
{%- endfor -%}
{{- ']</TOOLCALL>' -}}
{%- endif -%})");
    expect_round_trip(nemotron, kNemotron,
                      R"(<TOOLCALL>[{"name": "weather", "arguments": {"a": "]</TOOLCALL>"}}, {"name": "weather", )"
                      R"("arguments": {}}]</TOOLCALL>)");
}

// Of models whose templates describe tools and write contents alone.
TEST(ChatTools, CallsAreWrittenForProgramsThatWriteNone) {
    using enum ToolSyntax;
    const std::string lfm2 = chat_program(
        "{{- '<|im_start|>system\\n<|tool_list_start|>' + tools | tojson + '<|tool_list_end|><|im_end|>\\n' -}}",
        "m.content", "");
    expect_round_trip(lfm2, kLfm2,
                      R"(<|tool_call_start|>[weather(city="a\"'b", n=[1, None, True], o={"k": -2.5}), weather()])"
                      "<|tool_call_end|>Looking.");
    const std::string granite =
        chat_program("{{- 'Answer with <|tool_call|> and a list.' + tools | tojson -}}", "m.content", "");
    expect_round_trip(granite, kGranite, R"(So.<|tool_call|>[{"name": "weather", "arguments": {"a": [1, null]}}])");
    const std::string hermes =
        chat_program("{{- 'Answer with <tool_call> and {\"name\"}' + tools | tojson -}}", "m.content", "");
    expect_round_trip(
        hermes, kHermes,
        "So.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"a\": 1}}\n</tool_call>\n<tool_call>\n"
        "{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>");
    // What the model wrote stays text.
    const std::string spy = "<|im_end|>";
    for (const std::string& program : {lfm2, granite, hermes}) {
        const ChatMessage asked{.role = "assistant",
                                .content = "1" + spy,
                                .tool_calls = {{"c", "2" + spy, R"({"3<|im_end|>": "4<|im_end|>"})"}}};
        const WrittenChat written = ChatTemplate::of_program(program).write(std::vector{kQuestion, asked, kResult}, {});
        for (const char first : {'1', '2', '3', '4'}) {
            const size_t at = written.text.find(first + spy);
            ASSERT_NE(at, std::string::npos) << written.text;
            EXPECT_TRUE(std::ranges::any_of(
                written.contents,
                [&](const TextRange& range) { return range.begin <= at && at + 1 + spy.size() <= range.end; }))
                << written.text << at;
        }
    }
    // Arguments that are no object.
    for (const std::string& program : {lfm2, granite, hermes})
        EXPECT_THAT(ChatTemplate::of_program(program).render(std::vector{kQuestion, calling("{\"a\": <"), kResult}, {}),
                    HasSubstr("{\"a\": <"));
}

// One that writes DeepSeek's calls and fails on a list of tools is told of them in the system message.
TEST(ChatTools, DescribesToolsToAProgramThatFailsOnThem) {
    const std::string program = chat_program("{{- tools | map(attribute='function') | tojson -}}", "m.content", R"(
{%- for c in m.tool_calls -%}
{{- '<\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>' + c.function.name + '\n```json\n' + c.function.arguments + '\n```<\uff5ctool\u2581call\u2581end\uff5c>' -}}
{%- endfor -%})");
    const WrittenChat written = ChatTemplate::of_program(program).write(std::vector{kQuestion}, {.tools = tools()});
    EXPECT_EQ(written.reply.tools, ToolSyntax::kDeepSeekV3);
    EXPECT_THAT(written.text, HasSubstr(tools().front().name));
}

// FireFunction's variables.
TEST(ChatTools, GivesFunctionsAsText) {
    const std::string program =
        chat_program("", "m.content", "") + "{{- '\n' + functions + '\nToday is ' + datetime + '.' -}}";
    const ChatTemplate chat = ChatTemplate::of_program(program);
    EXPECT_THAT(chat.render(std::vector{kQuestion}, {}), HasSubstr("\n[]\nToday is "));
    const std::string name = tools().front().name;
    EXPECT_THAT(chat.render(std::vector{kQuestion}, {.tools = tools()}),
                HasSubstr("[\n    {\n        \"name\": \"" + name + "\""));
    EXPECT_THAT(chat.render(std::vector{kQuestion}, {.variables = {{"datetime", PythonJson::of_text("then")}}}),
                HasSubstr("Today is then."));
}

TEST(ChatTools, SaysHowTheModelAnswers) {
    const std::vector<ChatMessage> question = {kQuestion};
    const std::vector<ChatMessage> after_result = {kQuestion, calling("{}"), kResult};
    const auto reply = [](const char* name, const std::vector<ChatMessage>& messages, std::optional<bool> thinking = {},
                          bool with_tools = true) {
        ReplySyntax made =
            ChatTemplate::by_name(name)
                .write(messages, {.thinking = thinking, .tools = with_tools ? tools() : std::vector<ChatTool>()})
                .reply;
        EXPECT_EQ(made.names != nullptr, with_tools);
        made.names = nullptr;
        made.texts = nullptr;
        return made;
    };
    EXPECT_EQ(reply("qwen3", question), (ReplySyntax{.reasoning = true, .tools = ToolSyntax::kHermes}));
    EXPECT_EQ(reply("qwen3", question, false, false), ReplySyntax());
    EXPECT_EQ(reply("qwen2.5", question), (ReplySyntax{.tools = ToolSyntax::kHermes}));
    EXPECT_EQ(reply("llama3.1", question), (ReplySyntax{.tools = ToolSyntax::kLlama3}));
    EXPECT_EQ(reply("deepseek-r1", question, {}, false), (ReplySyntax{.reasoning = true, .begins_in_reasoning = true}));
    EXPECT_EQ(reply("deepseek-r1-tools", question), (ReplySyntax{.reasoning = true, .tools = ToolSyntax::kDeepSeekV3}));
    EXPECT_EQ(reply("deepseek-v3-tools", question), (ReplySyntax{.tools = ToolSyntax::kDeepSeekV3}));
    EXPECT_EQ(reply("deepseek-v3.1", question), (ReplySyntax{.tools = ToolSyntax::kDeepSeekV31}));
    EXPECT_EQ(reply("deepseek-v3.1", question, true),
              (ReplySyntax{.reasoning = true, .begins_in_reasoning = true, .tools = ToolSyntax::kDeepSeekV31}));
    // After results the model goes on at once.
    EXPECT_EQ(reply("deepseek-v3.1", after_result, true),
              (ReplySyntax{.reasoning = true, .tools = ToolSyntax::kDeepSeekV31}));
    EXPECT_EQ(reply("deepseek-v3.2", after_result, true),
              (ReplySyntax{.reasoning = true, .begins_in_reasoning = true, .tools = ToolSyntax::kDeepSeekV32}));
    EXPECT_EQ(reply("deepseek-v3.2", after_result, false), (ReplySyntax{.tools = ToolSyntax::kDeepSeekV32}));
    // Text that a user wrote opens no reasoning.
    const ChatTemplate plain = ChatTemplate::of_program("{{ messages[0].content }}{# <think> </think> #}");
    EXPECT_FALSE(plain.write(std::vector<ChatMessage>{{"user", "a<think>"}}, {}).reply.begins_in_reasoning);
}

}  // namespace
}  // namespace tessera::text
