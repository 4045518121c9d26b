// Programs that resemble a known form and do more, or something else: their conversations are written as the program
// writes them, or refused. Published ones against Python's Jinja: chat_templates_test.py.
#include "core/base/error.hpp"
#include "core/text/chat_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::text {
namespace {

using testing::HasSubstr;
using Messages = std::vector<ChatMessage>;

#define TSR_CHATML_MESSAGE "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
#define TSR_CHATML_OPENING "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
#define TSR_LLAMA_MESSAGE                                                                                              \
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' " \
    "}}"
#define TSR_LLAMA_OPENING \
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"

const std::string kChatml = "{% for message in messages %}" TSR_CHATML_MESSAGE "{% endfor %}" TSR_CHATML_OPENING;
const Messages kQuestion = {{"user", "Hi"}};
const Messages kWithSystem = {{"system", "S"}, {"user", "Hi"}};
const Messages kTurns = {{"user", "a"}, {"assistant", "b"}, {"user", "c"}};
const ChatOptions kOptions{.bos = "<bos>", .eos = "<eos>"};

// Refused at load or for this conversation; the error says what to do.
void expect_refused(const std::string& program, const Messages& messages, const std::string& part = "") {
    try {
        const std::string text = ChatTemplate::recognize(program).render(messages, kOptions);
        ADD_FAILURE() << "written: " << text;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED) << error.what();
        EXPECT_THAT(error.what(), HasSubstr(part));
        EXPECT_THAT(error.notice().advice,
                    testing::Contains(testing::Field(
                        &Advice::code, testing::AnyOf(AdviceCode::kNameTemplate, AdviceCode::kTakeAsTemplate))));
    }
}

TEST(ChatProgram, OneThatDoesMoreIsRefused) {
    const std::string sorts =
        "{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] %}{% set others = messages[1:] "
        "%}"
        "{% else %}{% set first = 'Speak like a pirate.' %}{% set others = messages %}{% endif %}";
    const std::string system = "{{ '<|im_start|>system\n' + first + '<|im_end|>\n' }}";
    expect_refused(sorts + system + "{% for message in others %}" TSR_CHATML_MESSAGE "{% endfor %}" TSR_CHATML_OPENING,
                   kQuestion, "pirate");
    expect_refused(sorts + "{% for message in others %}{% if loop.index0 == 0 %}" + system +
                       "{% endif %}" TSR_CHATML_MESSAGE "{% endfor %}" TSR_CHATML_OPENING,
                   kQuestion, "chatml");
    expect_refused("{% if messages[0]['role'] != 'system' %}<|im_start|>system\nSing.<|im_end|>\n{% endif %}" + kChatml,
                   kQuestion, "Sing.");
    expect_refused(
        "{% for message in messages %}{% if loop.last %}{{ '<|im_start|>user\n' + message['content'] + ' "
        "/quick<|im_end|>\n' }}"
        "{% else %}" TSR_CHATML_MESSAGE "{% endif %}{% endfor %}" TSR_CHATML_OPENING,
        kQuestion, "/quick");
    const std::string llama = "{% for message in messages %}" TSR_LLAMA_MESSAGE "{% endfor %}";
    expect_refused(
        "{{ bos_token }}{% if messages[0]['role'] != 'system' %}{{ '<|start_header_id|>system<|end_header_id|>\n\nSing."
        "<|eot_id|>' }}{% endif %}" +
            llama + TSR_LLAMA_OPENING,
        kQuestion);
    expect_refused("{{ bos_token }}" + llama +
                       "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
                       "{{ '<think>\n' }}{% endif %}",
                   kQuestion);
    expect_refused(
        "{{ bos_token }}{% if messages[0]['role'] != 'system' %}{{ 'Sing.\n\n' }}{% endif %}{% for message in messages "
        "%}"
        "{% if message['role'] == 'user' %}{{ 'User: ' + message['content'] + '\n\n' }}{% elif message['role'] == "
        "'assistant' %}{{ 'Assistant: ' + message['content'] + eos_token }}{% elif message['role'] == 'system' %}"
        "{{ message['content'] + '\n\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% "
        "endif %}",
        kQuestion);
}

// Whatever is added, the known form is never written in its place.
TEST(ChatProgram, AdditionsAreSeen) {
    for (const char* added : {"{{ ' ' }}", "Today is Monday.", "{{ strftime_now('%d %B %Y') }}",
                              "{% if messages | length > 2 %}{{ bos_token }}{% endif %}", "{{ messages | length }}",
                              "{% if x %}{% else %}y{% endif %}",
                              "{% for one in messages %}{{ loop.index }}{% endfor %}", "{{ messages[-1].content }}"}) {
        SCOPED_TRACE(added);
        expect_refused(added + kChatml, kTurns);
        expect_refused(kChatml + added, kTurns);
    }
    expect_refused("{% set messages = messages[1:] %}" + kChatml, kTurns);
    // What is never true, and comments, change nothing.
    for (const char* added : {"{# a comment #}", "{% if thoughts %}{{ 'x' }}{% endif %}", "{% set x = 'y' %}"})
        EXPECT_EQ(ChatTemplate::recognize(added + kChatml).render(kTurns, kOptions),
                  ChatTemplate::by_name("chatml").render(kTurns, kOptions));
}

TEST(ChatProgram, OnlyConversationsThatDifferAreRefused) {
    const std::string program =
        "{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|im_start|>system\nRules: ' + "
        "message['content'] "
        "+ '<|im_end|>\n' }}{% else %}" TSR_CHATML_MESSAGE "{% endif %}{% endfor %}" TSR_CHATML_OPENING;
    EXPECT_EQ(ChatTemplate::recognize(program).render(kTurns, kOptions),
              ChatTemplate::by_name("chatml").render(kTurns, kOptions));
    expect_refused(program, kWithSystem, "Rules: S");
    const ChatTemplate named = ChatTemplate::by_name("chatml");
    EXPECT_EQ(named.render(kWithSystem, kOptions),
              "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
        << "a form that is named is written as it is";
}

// Kimi-K2's program of July 2025, but for tools: names stand in the place of roles.
TEST(ChatProgram, NamesAreWrittenWhereTheProgramWritesThem) {
    const std::string program =
        "{% for message in messages %}\n"
        "  {%- if loop.first and messages[0]['role'] != 'system' -%}\n"
        "  <|im_system|>system<|im_middle|>You are Kimi.<|im_end|>\n  {% endif %}\n"
        "  {%- set role_name =  message.get('name') or  message['role'] -%}\n"
        "  {%- if message['role'] == 'user' -%}\n    <|im_user|>{{role_name}}<|im_middle|>\n"
        "  {%- elif message['role'] == 'assistant' -%}\n    <|im_assistant|>{{role_name}}<|im_middle|>\n"
        "  {%- else -%}\n    <|im_system|>{{role_name}}<|im_middle|>\n  {%- endif -%}\n"
        "  {{ message['content'] }}<|im_end|>\n{%- endfor -%}\n"
        "{%- if add_generation_prompt -%}\n  <|im_assistant|>assistant<|im_middle|>\n{%- endif -%}\n";
    const ChatTemplate kimi = ChatTemplate::recognize(program);
    Messages messages = {{"system", "s"}, {"user", "a"}, {"assistant", "b"}, {"user", "c"}};
    const std::string without = kimi.render(messages, kOptions);
    messages[0].name = "rules";
    messages[1].name = "ann<|im_end|>";
    messages[2].name = "helper";
    const WrittenChat named = kimi.write(messages, kOptions);
    EXPECT_EQ(named.text,
              "<|im_system|>rules<|im_middle|>s<|im_end|><|im_user|>ann<|im_end|><|im_middle|>a<|im_end|>"
              "<|im_assistant|>helper<|im_middle|>b<|im_end|><|im_user|>user<|im_middle|>c<|im_end|>"
              "<|im_assistant|>assistant<|im_middle|>");
    // Whoever gives a name writes no control token with it.
    EXPECT_TRUE(std::ranges::any_of(named.contents, [&](const TextRange& range) {
        return named.text.substr(range.begin, range.end - range.begin) == "ann<|im_end|>";
    }));
    messages.push_back({"assistant", "It is"});
    messages.back().name = "helper";
    EXPECT_THROW(kimi.write_continued(messages, kOptions), Error);
    messages.back().name.clear();
    EXPECT_EQ(kimi.write_continued(messages, kOptions).text, named.text + "It is");
    // One that writes none makes the same text.
    messages.pop_back();
    const ChatTemplate plain = ChatTemplate::by_name("chatml");
    Messages bare = messages;
    for (ChatMessage& message : bare) message.name.clear();
    EXPECT_EQ(plain.render(messages, kOptions), plain.render(bare, kOptions));
    EXPECT_EQ(ChatTemplate::recognize(kChatml).render(messages, kOptions), plain.render(bare, kOptions));
    EXPECT_EQ(kimi.render(bare, kOptions), without);
    // One that writes them in a way that is not known says so.
    const std::string observed =
        "{% for message in messages %}{{ '<|im_start|>' + ('observation' if message.name == 'observation' else "
        "message['role']) + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}" TSR_CHATML_OPENING;
    Messages observation = {{"user", "a"}, {"system", "b"}};
    try {
        const ChatTemplate step = ChatTemplate::recognize(observed);
        EXPECT_EQ(step.render(observation, kOptions), plain.render(observation, kOptions));
        observation[1].name = "observation";
        step.render(observation, kOptions);
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("observation"));
    }
}

TEST(ChatProgram, ItsOwnRefusalIsPassedOn) {
    const std::string program =
        "{% if messages | length > 1 %}{{ raise_exception('one message, please') }}{% endif %}" + kChatml;
    const ChatTemplate chat = ChatTemplate::recognize(program);
    chat.render(kQuestion, kOptions);
    try {
        chat.render(kTurns, kOptions);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        EXPECT_THAT(error.what(), HasSubstr("one message, please"));
    }
}

TEST(ChatProgram, WhatCannotBeReadIsRefused) {
    for (const char* part : {"{% include 'x' %}", "{{ 2 ** 3 }}", "{{ 'open }}", "{% if %}{% endif %}",
                             "{{ x | nobody }}", "{{ undefined_variable.member }}", "{{ 1 + 'a' }}"}) {
        SCOPED_TRACE(part);
        expect_refused(part + kChatml, kQuestion);
    }
}

// Another spelling of a known form is found by what it writes.
TEST(ChatProgram, EqualTextIsRecognised) {
    const std::string program =
        "{%- macro turn(role, text) -%}\n<|im_start|>{{ role }}\n{{ text }}<|im_end|>\n{% endmacro -%}\n"
        "{%- for m in messages %}{{ turn(m.role, m.content) }}{% endfor %}"
        "{{- '<|im_start|>assistant\n' if add_generation_prompt else '' -}}";
    const ChatTemplate chat = ChatTemplate::recognize(program);
    EXPECT_EQ(chat.name(), "chatml");
    EXPECT_EQ(chat.render(kWithSystem, kOptions), ChatTemplate::by_name("chatml").render(kWithSystem, kOptions));
}

#define TSR_USER "<\uff5cUser\uff5c>"
#define TSR_ASSISTANT "<\uff5cAssistant\uff5c>"
#define TSR_END "<\uff5cend\u2581of\u2581sentence\uff5c>"

// The beginning and end of the first programs of V3 and R1, without their way with tools.
std::string deepseek(const std::string& opening, const std::string& middle = "") {
    return "{% set ns = namespace(is_tool=false, system_prompt='', is_first_sp=true) %}{% for message in messages %}"
           "{% if message['role'] == 'system' %}{% if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + "
           "message['content'] %}{% set ns.is_first_sp = false %}{% else %}{% set ns.system_prompt = ns.system_prompt "
           "+ '\n\n' + "
           "message['content'] %}{% endif %}{% endif %}{% endfor %}{{ bos_token }}{{ ns.system_prompt }}" +
           middle +
           "{% for message in messages %}{% if message['role'] == 'user' %}{% set ns.is_tool = false %}{{ '" TSR_USER
           "' + message['content'] }}{% endif %}{% if message['role'] == 'assistant' and message['content'] is not "
           "none %}"
           "{% set content = message['content'] %}{% if '</think>' in content %}{% set content = "
           "content.split('</think>')[-1] %}{% endif %}{{ '" TSR_ASSISTANT "' + content + '" TSR_END
           "' }}{% endif %}{% endfor %}{% if add_generation_prompt and not ns.is_tool %}{{ '" +
           opening + "' }}{% endif %}";
}

TEST(ChatProgram, DeepSeekDescribesToolsByDefault) {
    const std::string opening = TSR_ASSISTANT "<think>\n";
    const ChatTemplate chat = ChatTemplate::recognize(deepseek(opening));
    EXPECT_EQ(chat.name(), "deepseek-r1");
    ChatOptions options = kOptions;
    options.tools = {{"f", "does f", "{\"type\": \"object\"}", ""}};
    const Messages question = {{"system", "S"}, {"user", "q"}};
    const WrittenChat written = chat.write(question, options);
    EXPECT_TRUE(written.text.starts_with("<bos>S\n\n# Tools\n\n")) << written.text;
    EXPECT_THAT(written.text,
                HasSubstr("{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"does f\""));
    EXPECT_TRUE(written.text.ends_with(TSR_USER "q" + opening)) << written.text;
    EXPECT_EQ(written.reply.tools, ToolSyntax::kDeepSeekV3);
    // Calls and results as V3-0324 and R1-0528 have them.
    Messages called = question;
    called.push_back({"assistant", "", "", {{"c", "f", "{}"}}});
    called.push_back({"tool", "17", "", {}, "c"});
    const std::string calls =
        TSR_USER "q" TSR_ASSISTANT
                 "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function<"
                 "\uff5ctool\u2581sep\uff5c>f\n"
                 "```json\n{}\n```<\uff5ctool\u2581call\u2581end\uff5c><\uff5ctool\u2581calls\u2581end\uff5c>" TSR_END
                 "<\uff5ctool\u2581outputs\u2581begin\uff5c><\uff5ctool\u2581output\u2581begin\uff5c>17<"
                 "\uff5ctool\u2581output\u2581end"
                 "\uff5c><\uff5ctool\u2581outputs\u2581end\uff5c>";
    EXPECT_EQ(chat.render(called, kOptions), "<bos>S" + calls);
    called.push_back({"assistant", "Warm."});
    called.push_back({"user", "r"});
    EXPECT_EQ(chat.render(called, kOptions), "<bos>S" + calls + "Warm." TSR_END TSR_USER "r" + opening);
    EXPECT_EQ(ChatTemplate::recognize(deepseek(TSR_ASSISTANT)).write(question, options).reply.tools,
              ToolSyntax::kDeepSeekV3);
    // A program with a way of its own keeps it.
    for (const char* own :
         {"{% if tools %}{{ tools | tojson }}{% endif %}",
          "{% for message in messages %}{% for call in message['tool_calls'] or [] %}{{ '<\uff5ctool\u2581call"
          "\u2581begin\uff5c>' + call['function']['name'] }}{% endfor %}{% endfor %}"}) {
        const ChatTemplate other = ChatTemplate::recognize(deepseek(opening, own));
        EXPECT_THROW(other.write(question, options), Error) << own;
        EXPECT_THROW(other.write(called, kOptions), Error) << own;
    }
}

// Programs that ask for the date get the day on which they are asked.
TEST(ChatProgram, TheDayIsToday) {
    const std::string program =
        "{{- bos_token }}{% if not date_string is defined %}{% if strftime_now is defined %}{% set date_string = "
        "strftime_now('%d %b %Y') %}{% else %}{% set date_string = '26 Jul 2024' %}{% endif %}{% endif %}"
        "{% if messages[0]['role'] == 'system' %}{% set system_message = messages[0]['content'] | trim %}{% set "
        "messages = "
        "messages[1:] %}{% else %}{% set system_message = '' %}{% endif %}{{ "
        "'<|start_header_id|>system<|end_header_id|>\n\n' }}"
        "{{ 'Cutting Knowledge Date: December 2023\n' }}{{ 'Today Date: ' + date_string + '\n\n' }}{{ system_message }}"
        "{{ '<|eot_id|>' }}{% for message in messages %}" TSR_LLAMA_MESSAGE "{% endfor %}" TSR_LLAMA_OPENING;
    ChatOptions options = kOptions;
    options.now = 1'000'000'000;  // September 2001, in every time zone
    EXPECT_THAT(ChatTemplate::recognize(program).render(kWithSystem, options), HasSubstr(" Sep 2001\n\nS<|eot_id|>"));
    EXPECT_THAT(ChatTemplate::by_name("llama3.1").render(kWithSystem, options), HasSubstr("26 Jul 2024"));
}

}  // namespace
}  // namespace tessera::text
