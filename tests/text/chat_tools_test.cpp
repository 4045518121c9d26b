// Tools, calls and their results in conversations, against what Jinja makes of the published programs
// (testing/goldens/record_tokenizer_goldens/record_chat_tools.py).
#include "core/base/error.hpp"
#include "core/text/chat_template.hpp"
#include "tests/text/goldens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    for (const json::value& one : entry.at("cases").as_array()) {
        const std::vector<ChatMessage> messages = conversation(one.at("conversation"));
        ASSERT_EQ(chat.render(messages, options_of(one)), text_of(one.at("text"))) << json::serialize(one);
        ASSERT_LE(chat.fewest_bytes(messages, options_of(one)), text_of(one.at("text")).size());
    }
}

TEST(ChatTools, ByNameRendersAsJinjaDoes) {
    for (const json::value& entry : recorded().at("templates").as_array()) {
        SCOPED_TRACE(text_of(entry.at("name")));
        if (entry.at("by_name").as_bool()) expect_cases(ChatTemplate::by_name(text_of(entry.at("name"))), entry);
    }
}

TEST(ChatTools, RecognisedProgramRendersAsJinjaDoes) {
    size_t count = 0;
    for (const json::value& entry : recorded().at("templates").as_array()) {
        SCOPED_TRACE(text_of(entry.at("name")));
        if (entry.at("template").is_null()) continue;
        const ChatTemplate chat = ChatTemplate::recognize(text_of(entry.at("template")));
        EXPECT_EQ(chat.name(), text_of(entry.at("name")));
        expect_cases(chat, entry);
        ++count;
    }
    EXPECT_GE(count, 9u);
}

TEST(ChatTools, LongCallsAndToolsAreKnownBeforeTheyAreWritten) {
    std::string escapes, spaced = "{\"a\": [";
    for (int i = 0; i < 10'000; ++i) {
        escapes += "\\u0061";
        spaced += "  1 ,\n 2,";
    }
    spaced += "3]}";
    const std::string lists = "{\"a\": [" + spaced + "]}", quoted = "{\"a\": \"" + escapes + "\"}";
    for (const json::value& entry : recorded().at("templates").as_array()) {
        if (!entry.at("by_name").as_bool()) continue;
        const ChatTemplate chat = ChatTemplate::by_name(text_of(entry.at("name")));
        for (const std::string& value : {lists, quoted}) {
            const std::vector<ChatMessage> calls = {
                {"user", "q"}, {.role = "assistant", .content = "", .tool_calls = {{"id", "f", value}}}};
            EXPECT_GE(chat.fewest_bytes(calls, {}), 10'000u) << chat.name();
            EXPECT_LE(chat.fewest_bytes(calls, {}), chat.render(calls, {}).size()) << chat.name();
            const std::vector<ChatMessage> question = {{"user", "q"}};
            const ChatOptions options{
                .tools = {
                    {"f", "d", value,
                     R"({"type":"function","function":{"name":"f","description":"d","parameters":)" + value + "}}"}}};
            EXPECT_GE(chat.fewest_bytes(question, options), 10'000u) << chat.name();
            try {
                EXPECT_LE(chat.fewest_bytes(question, options), chat.render(question, options).size()) << chat.name();
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
            }
        }
    }
}

// What decides how calls are written, changed by a letter: the program is refused, or its tools are.
TEST(ChatTools, DamagedProgramsDoNotKeepTheirTools) {
    for (const json::value& entry : recorded().at("templates").as_array()) {
        if (entry.at("template").is_null()) continue;
        SCOPED_TRACE(text_of(entry.at("name")));
        const std::string program = text_of(entry.at("template"));
        size_t changed = 0;
        for (const char* part : {"tool_call>\\n{", "u2581call", "\u2581call\u2581", "tool_call.name", "<tool_response>",
                                 "You may call", "best answers", "\"parameters\\\": '", "ipython<", "function_results>",
                                 "<result>", "invoke name=\\\"' +", "\u2581output\u2581", "intools"}) {
            const size_t at = program.rfind(part);
            if (at == std::string::npos) continue;
            std::string other = program;
            other[at + 2] = other[at + 2] == 'x' ? 'y' : 'x';
            const auto format = recognize_chat_format(other);
            ++changed;
            EXPECT_TRUE(!format || format->tools.syntax == ToolSyntax::kNone) << part;
        }
        EXPECT_GE(changed, 2u);
    }
}

TEST(ChatTools, ToolsOfAnotherDescriptionAreRefused) {
    for (const json::value& entry : recorded().at("templates").as_array()) {
        if (entry.at("template").is_null() || entry.at("described").as_bool()) continue;
        std::string program = text_of(entry.at("template"));
        const size_t at = program.rfind("{% if add_generation_prompt");
        const size_t place = at == std::string::npos ? program.rfind("{%- if add_generation_prompt") : at;
        program.insert(place, "{% for tool in tools %}{{ tool | tojson }}{% endfor %}");
        const auto format = recognize_chat_format(program);
        EXPECT_TRUE(!format || format->tools.describe == ChatFormat::Tools::Describe::kNot)
            << text_of(entry.at("name"));
    }
}

std::string refusal(tsr_code code, const ChatTemplate& chat, const std::vector<ChatMessage>& messages,
                    const std::vector<ChatTool>& given = {}, std::vector<Advice>* advice = nullptr) {
    try {
        chat.write(messages, {.tools = given});
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

TEST(ChatTools, FormsWithoutToolsRefuseThem) {
    size_t without = 0, undescribed = 0;
    for (const NamedChatFormat& one : known_chat_formats()) {
        const ChatTemplate chat(one.format);
        if (one.format.tools.describe == ChatFormat::Tools::Describe::kNot) {
            std::vector<Advice> advice;
            EXPECT_THAT(refusal(TSR_UNSUPPORTED, chat, {kQuestion}, tools(), &advice), HasSubstr(chat.name()));
            ASSERT_EQ(advice.size(), 1u);
            EXPECT_EQ(advice.front().code, AdviceCode::kNameTemplate);
            EXPECT_THAT(advice.front().value, HasSubstr("deepseek-v3-0324"));
            ++undescribed;
        }
        if (one.format.tools.syntax == ToolSyntax::kNone) {
            EXPECT_THAT(refusal(TSR_UNSUPPORTED, chat, {kQuestion, calling("{}")}), HasSubstr(chat.name()));
            EXPECT_THAT(refusal(TSR_UNSUPPORTED, chat, {kQuestion, kResult}), HasSubstr("role tool"));
            ++without;
        } else {
            chat.write(std::vector{kQuestion, calling("{}"), kResult}, {});
        }
    }
    EXPECT_GE(without, 8u);
    EXPECT_EQ(undescribed, without);
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
    EXPECT_THAT(refusal(TSR_INVALID_ARGUMENT, llama, {{"system", "s"}}, tools()), HasSubstr("message 1"));
    ChatMessage two = calling("{}");
    two.tool_calls.push_back(two.tool_calls.front());
    EXPECT_THAT(refusal(TSR_UNSUPPORTED, llama, {kQuestion, two}), HasSubstr("one call"));
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
        bool describes = true, calls = true;
        for (const NamedChatFormat& one : known_chat_formats()) {
            if (one.format.name != name) continue;
            describes = one.format.tools.describe != ChatFormat::Tools::Describe::kNot;
            calls = one.format.tools.syntax != ToolSyntax::kNone;
        }
        if (!calls) continue;
        ChatOptions options{.bos = "<bos>", .eos = "<eos>"};
        if (describes) options.tools = {{spy, spy, "{\"" + spy + "\": " + quoted + "}", ""}};
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
        EXPECT_GE(found, describes ? 8u : 6u) << name;
    }
}

// What a form writes of an answer is what the parser takes apart.
TEST(ChatTools, AnswersAreParsedAsTheyAreWritten) {
    const std::string first = R"({"city": "M\u00fcnchen", "n": [1, 2.5, {"a": null}], "text": "</tool_call>\n```"})";
    size_t forms = 0;
    for (const NamedChatFormat& one : known_chat_formats()) {
        const ChatFormat::Tools& form = one.format.tools;
        if (form.syntax == ToolSyntax::kNone) continue;
        const ChatTemplate chat(one.format);
        ChatMessage answer{
            .role = "assistant", .content = form.one_call ? "" : "Both.", .tool_calls = {{"c", "weather", first}}};
        if (!form.one_call) answer.tool_calls.push_back({"d", "now", "{}"});
        ChatOptions options{.eos = "<eos>", .thinking = false};
        std::string before = chat.render(std::vector{kQuestion}, options);
        // Earlier answers have lost their thoughts.
        if (const std::string_view opened = "<think>\n"; before.ends_with(opened))
            before.resize(before.size() - opened.size());
        options.add_generation_prompt = false;
        const std::string after = chat.render(std::vector{kQuestion, answer}, options);
        ASSERT_TRUE(after.starts_with(before) && after.ends_with(one.format.assistant.after)) << chat.name();
        const std::string_view text = std::string_view(after).substr(
            before.size(), after.size() - before.size() - one.format.assistant.after.size());
        ReplySyntax syntax = chat.reply_syntax(options);
        syntax.tools = form.syntax;
        ReplyParser parser(syntax);
        std::vector<ReplyEvent> events;
        parser.push(text, events);
        parser.finish(events);
        std::string content, names;
        std::vector<std::string> arguments(2);
        for (const ReplyEvent& event : events) {
            if (event.part == ReplyPart::kContent) content += event.text;
            if (event.part == ReplyPart::kToolCall) names += event.text + " ";
            if (event.part == ReplyPart::kToolArguments) arguments.at(event.call) += event.text;
        }
        EXPECT_EQ(content, answer.content) << chat.name();
        EXPECT_EQ(names, form.one_call ? "weather " : "weather now ") << chat.name();
        EXPECT_EQ(json::parse(arguments[0]), json::parse(first)) << chat.name();
        if (!form.one_call) {
            EXPECT_EQ(arguments[1], "{}") << chat.name();
        }
        ++forms;
    }
    EXPECT_GE(forms, 9u);
}

TEST(ChatTools, SaysHowTheModelAnswers) {
    const std::vector<ChatMessage> question = {kQuestion};
    const std::vector<ChatMessage> after_result = {kQuestion, calling("{}"), kResult};
    const auto reply = [](const char* name, const std::vector<ChatMessage>& messages, std::optional<bool> thinking = {},
                          bool with_tools = true) {
        return ChatTemplate::by_name(name)
            .write(messages, {.thinking = thinking, .tools = with_tools ? tools() : std::vector<ChatTool>()})
            .reply;
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
    const ChatTemplate plain(ChatFormat{.name = "plain"});
    EXPECT_EQ(plain.write(std::vector<ChatMessage>{{"user", "a<think>"}}, {}).reply, ReplySyntax());
}

}  // namespace
}  // namespace tessera::text
