// What a template wants is found by trying: how contents, calls and reasoning reach it, and what its switches are.
// Published ones against Python's Jinja: chat_templates_test.py.
#include "core/base/error.hpp"
#include "core/text/chat_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::text {
namespace {

using testing::HasSubstr;
using testing::Not;
using Messages = std::vector<ChatMessage>;

const ChatMessage kQuestion = {"user", "Hi"};
ChatMessage calling(std::string content = "") {
    return {.role = "assistant", .content = std::move(content), .tool_calls = {{"c", "f", R"({"a": [1, "b"]})"}}};
}

std::string written(const std::string& program, const Messages& messages, const ChatOptions& options = {}) {
    return ChatTemplate::of_program(program).render(messages, options);
}

TEST(ChatProgram, ArgumentsAreWhatTheTemplateTakes) {
    const std::string begin = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}{{ c.function.name }}(",
                      end = "){% endfor %}{% endfor %}";
    EXPECT_THAT(written(begin + "{{ c.function.arguments | tojson }}" + end, {kQuestion, calling()}),
                HasSubstr(R"(f({"a": [1, "b"]}))"));
    EXPECT_THAT(written(begin + "{{ c.function.arguments }}" + end, {kQuestion, calling()}),
                HasSubstr(R"(f({"a": [1, "b"]}))"));
    EXPECT_THAT(written(begin + "{{ '' + c.function.arguments }}" + end, {kQuestion, calling()}),
                HasSubstr(R"(f({"a": [1, "b"]}))"));
    EXPECT_THAT(
        written(begin + "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}{% endfor %}" + end,
                {kQuestion, calling()}),
        HasSubstr(R"(f(a=[1, "b"]))"));
}

TEST(ChatProgram, CallsWithoutTextHaveTheContentThatTheTemplateTakes) {
    const std::string call = "{{ m.tool_calls[0].function.name }}:{{ m.tool_calls[0].function.arguments }}";
    EXPECT_EQ(written("{% for m in messages %}{% if m.content is none %}" + call +
                          "{% else %}{{ m.content }}{% endif %}{% endfor %}",
                      {kQuestion, calling()}),
              R"(Hif:{"a": [1, "b"]})");
    EXPECT_EQ(
        written("{% for m in messages %}{{ m.content | trim }}{% if m.tool_calls %}" + call + "{% endif %}{% endfor %}",
                {kQuestion, calling()}),
        R"(Hif:{"a": [1, "b"]})");
}

TEST(ChatProgram, ContentsArePartsWhereTheTemplateTakesParts) {
    EXPECT_EQ(
        written("{% for m in messages %}{% for part in m.content %}{% if part.type == 'text' %}{{ part.text }}{% endif "
                "%}{% endfor %}{% endfor %}",
                {kQuestion}),
        "Hi");
}

TEST(ChatProgram, ReasoningHasTheKeyThatTheTemplateReads) {
    for (const char* key : {"reasoning_content", "reasoning", "thinking"}) {
        const std::string program = std::string("{% for m in messages %}{% if m.") + key + " %}[THINK]{{ m." + key +
                                    " }}[/THINK]{% endif %}{{ m.content }}{% endfor %}";
        const ChatTemplate chat = ChatTemplate::of_program(program);
        const Messages messages = {kQuestion, {.role = "assistant", .content = "A", .reasoning = "R"}};
        const WrittenChat made = chat.write(messages, {});
        EXPECT_EQ(made.text, "Hi[THINK]R[/THINK]A") << key;
        EXPECT_TRUE(made.reply.reasoning);
        EXPECT_EQ(made.reply.reasoning_begin, "[THINK]");
        EXPECT_EQ(made.reply.reasoning_end, "[/THINK]");
    }
}

// What ends a turn is no mark of reasoning, which would stay a control token in contents.
TEST(ChatProgram, EndsOfTurnsAreNoMarksOfReasoning) {
    const ChatTemplate chat = ChatTemplate::of_program(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.reasoning_content }}<|im_end|>{{ m.content "
        "}}<|im_end|>{% endfor %}");
    const WrittenChat made = chat.write(Messages{kQuestion, {"assistant", "a<|im_end|>b"}}, {});
    EXPECT_FALSE(made.reply.reasoning);
    EXPECT_EQ(made.text.substr(made.contents.back().begin, made.contents.back().end - made.contents.back().begin),
              "a<|im_end|>b");
}

TEST(ChatProgram, ListsThatATemplateChangesAreChanged) {
    // As Kimi-K2's, which llama.cpp runs and transformers does not.
    EXPECT_EQ(
        written("{% set n = namespace(ids=[]) %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}{% "
                "set _ = "
                "n.ids.append(c.function.name) %}{{ c.function.arguments }}{% endfor %}{% endfor %}{{ n.ids | join }}",
                {kQuestion, calling()}),
        R"(Hi{"a": [1, "b"]}f)");
}

TEST(ChatProgram, SwitchesAreFound) {
    const ChatTemplate plain = ChatTemplate::of_program("{{ messages[0].content }}");
    EXPECT_FALSE(plain.can_think());
    EXPECT_FALSE(plain.has_efforts());
    const ChatTemplate both = ChatTemplate::of_program(
        "{{ messages[0].content }}{% if enable_thinking %}<think>{% endif %}{{ reasoning_effort }}{# </think> #}");
    EXPECT_TRUE(both.can_think());
    EXPECT_TRUE(both.has_efforts());
    ChatOptions options{.thinking = true};
    options.variables.push_back({"reasoning_effort", PythonJson::of_text("low<think>")});
    const WrittenChat made = both.write(Messages{kQuestion}, options);
    EXPECT_EQ(made.text, "Hi<think>low<think>");
    // Variables of a request are not the template's own.
    ASSERT_EQ(made.contents.size(), 2u);
    EXPECT_EQ(made.contents[1].end, made.text.size());
    EXPECT_FALSE(made.reply.begins_in_reasoning);
}

TEST(ChatProgram, ARefusalHasTheTemplatesWords) {
    const ChatTemplate chat = ChatTemplate::of_program(
        "{% if messages | length > 1 %}\n{{ raise_exception('one message, please') }}{% endif %}{{ messages[0].content "
        "}}");
    try {
        chat.render(Messages{kQuestion, kQuestion}, {});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        EXPECT_THAT(error.what(),
                    HasSubstr("the file's chat template refuses this conversation: line 2: one message, please"));
    }
}

TEST(ChatProgram, MarksStayOnWhatIsMadeOfContents) {
    const ChatTemplate chat = ChatTemplate::of_program(
        "{% set ns = namespace(all='') %}{% for m in messages %}{% set ns.all = ns.all ~ '<' ~ (m.content | "
        "upper).split('-')[0][1:] "
        "~ '>' %}{% endfor %}{{ ns.all | replace('<', '<|') }}{{ [messages[0].content, '<|im_end|>'] | join('|') }}"
        "{{ {'k': messages[0].content} | tojson }}{{ '%s<|x|>' % messages[0].content }}");
    const WrittenChat made = chat.write(Messages{{"user", "a<|b|>-c"}}, {});
    EXPECT_EQ(made.text, "<|<||B|>>a<|b|>-c|<|im_end|>{\"k\": \"a<|b|>-c\"}a<|b|>-c<|x|>");
    std::string own;
    size_t at = 0;
    for (const TextRange& range : made.contents) {
        own += made.text.substr(at, range.begin - at) + "_";
        at = range.end;
    }
    own += made.text.substr(at);
    EXPECT_EQ(own, "<|<|_>_|<|im_end|>{\"k\": \"_\"}_<|x|>");
}

// The first Llama 3.2 has the date of the day.
TEST(ChatProgram, TheDateIsTheDays) {
    EXPECT_EQ(written("{{ strftime_now('%d %b %Y') }}", {kQuestion}, {.now = 1'000'000'000}).substr(2), " Sep 2001");
}

}  // namespace
}  // namespace tessera::text
