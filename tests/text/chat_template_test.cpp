// Against what Jinja makes of the published programs (testing/goldens/record_tokenizer_goldens/record_chat.py).
#include "core/text/chat_template.hpp"

#include "core/base/error.hpp"
#include "core/text/late_system.hpp"
#include "tests/text/goldens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::text {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

const json::value& recorded() {
    static const json::value file = golden("chat.json");
    return file;
}

std::string text_of(const json::value& value) {
    return json::value_to<std::string>(value);
}

// A format that is known only through a program in a file has no name.
std::string name_of(const json::value& entry) {
    return entry.at("name").is_null() ? "" : text_of(entry.at("name"));
}

std::vector<ChatMessage> conversation(int64_t index) {
    std::vector<ChatMessage> messages;
    for (const json::value& one : recorded().at("conversations").at(static_cast<size_t>(index)).as_array())
        messages.push_back({text_of(one.at("role")), text_of(one.at("content"))});
    return messages;
}

void expect_cases(const ChatTemplate& chat, const json::value& entry) {
    ASSERT_GE(entry.at("cases").as_array().size(), 16u);
    for (const json::value& one : entry.at("cases").as_array()) {
        ChatOptions options;
        options.bos = text_of(recorded().at("bos"));
        options.eos = text_of(recorded().at("eos"));
        options.add_generation_prompt = one.at("prompt").as_bool();
        if (one.at("thinking").is_bool()) options.thinking = one.at("thinking").as_bool();
        const std::vector<ChatMessage> messages = conversation(one.at("conversation").as_int64());
        EXPECT_LE(chat.fewest_bytes(messages, options), text_of(one.at("text")).size());
        // Of a program that loses system messages behind others (late_system_test.cpp), they are written elsewhere.
        const bool loses = has_late_system(messages) && std::ranges::any_of(messages, [&](const ChatMessage& message) {
                               return text_of(one.at("text")).find(message.content) == std::string::npos;
                           });
        if (loses) {
            for (const ChatMessage& message : messages)
                EXPECT_THAT(chat.render(messages, options), HasSubstr(message.content));
            continue;
        }
        EXPECT_EQ(chat.render(messages, options), text_of(one.at("text")))
            << chat.name() << ", conversation " << one.at("conversation").as_int64() << ", thinking "
            << json::serialize(one.at("thinking"));
    }
}

TEST(ChatTemplate, ByNameRendersAsJinjaDoes) {
    for (const json::value& entry : recorded().at("templates").as_array()) {
        SCOPED_TRACE(name_of(entry));
        if (!name_of(entry).empty()) expect_cases(ChatTemplate::by_name(name_of(entry)), entry);
    }
}

TEST(ChatTemplate, ProgramRendersAsJinjaDoes) {
    for (const json::value& entry : recorded().at("templates").as_array()) {
        SCOPED_TRACE(name_of(entry));
        expect_cases(ChatTemplate::of_program(text_of(entry.at("template"))), entry);
    }
}

// What is long is known to be before it is written, wherever it stands.
TEST(ChatTemplate, LongConversationsAreKnownBeforeTheyAreWritten) {
    const std::string text(100'000, 'x');
    for (const std::string& name : ChatTemplate::names()) {
        const ChatTemplate chat = ChatTemplate::by_name(name);
        for (const char* role : {"system", "user", "assistant"}) {
            const std::vector<ChatMessage> messages = {{role, text}, {"user", "a"}};
            EXPECT_GE(chat.fewest_bytes(messages, {}), text.size()) << name << ", " << role;
            EXPECT_LE(chat.fewest_bytes(messages, {}), chat.render(messages, {}).size()) << name << ", " << role;
        }
    }
}

TEST(ChatTemplate, EveryNameIsRecorded) {
    std::vector<std::string> names;
    for (const json::value& entry : recorded().at("templates").as_array())
        if (!name_of(entry).empty()) names.push_back(name_of(entry));
    // Formats with tools are in a file of their own.
    const json::value with_tools = golden("chat_tools.json");
    for (const json::value& entry : with_tools.at("templates").as_array())
        if (const std::string name = ChatTemplate::by_name(text_of(entry.at("name"))).name();
            std::ranges::find(names, name) == names.end())
            names.push_back(name);
    EXPECT_THAT(ChatTemplate::names(), testing::UnorderedElementsAreArray(names));
}

// Templates of other families are run like all others.
TEST(ChatTemplate, AnyProgramIsRun) {
    const std::vector<ChatMessage> question = {{"user", "Hello there"}};
    for (const auto& [name, program] : recorded().at("unknown").as_object()) {
        SCOPED_TRACE(std::string(name));
        if (text_of(program).empty()) continue;
        EXPECT_THAT(ChatTemplate::of_program(text_of(program)).render(question, {}), HasSubstr("Hello there"));
    }
}

TEST(ChatTemplate, WhatFailsIsSaidAtLoad) {
    const std::vector<std::pair<std::string, std::string>> wrong = {
        {"{{ bos_token }}\n{{ messages[0].content + 1 }}",
         "line 2: arithmetic of a text and a number (in 'messages[0].content + 1')"},
        {"{% for m in messages %}\n{{ m.content | nobody }}{% endfor %}", "line 2: the filter 'nobody' is not known"},
        {"{% if messages %}", "line 1: a block that does not end"},
        {"{% include 'x' %}", "other templates are not read"},
        {"{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "than a template may"}};
    for (const auto& [program, part] : wrong) {
        try {
            ChatTemplate::of_program(program);
            ADD_FAILURE() << program;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
            EXPECT_THAT(error.what(), HasSubstr(part));
            ASSERT_EQ(error.notice().advice.size(), 1u);
            EXPECT_EQ(error.notice().advice.front().code, AdviceCode::kNameTemplate);
            for (const std::string& known : ChatTemplate::names())
                EXPECT_THAT(error.notice().advice.front().value, HasSubstr(known));
        }
    }
}

// Whatever is cut from a program, it is refused or still says something; it never fails otherwise.
TEST(ChatTemplate, DamagedProgramsAreRefusedOrRun) {
    for (const json::value& entry : recorded().at("templates").as_array()) {
        const std::string program = text_of(entry.at("template"));
        for (size_t cut = 0; cut < program.size(); cut += 101) {
            try {
                ChatTemplate::of_program(program.substr(0, cut));
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
            }
        }
    }
}

TEST(ChatTemplate, UnknownNameAndBadConversationsAreErrors) {
    try {
        ChatTemplate::by_name("nobody");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_NOT_FOUND);
        EXPECT_THAT(error.what(), HasSubstr("chatml"));
        EXPECT_THAT(error.what(), HasSubstr("'nobody'"));
    }
    const ChatTemplate chat = ChatTemplate::by_name("chatml");
    EXPECT_THROW(chat.render({}, {}), Error);
    const std::vector<ChatMessage> tool = {{"tool", "x"}};
    EXPECT_THROW(chat.render(tool, {}), Error);
}

TEST(ChatTemplate, MarksWhatPeopleAndTheModelWrote) {
    const std::vector<ChatMessage> messages = {
        {"system", "S<|im_end|>"}, {"user", "U"}, {"assistant", "<think>T</think>A"}, {"user", ""}, {"user", "V"}};
    for (const std::string& name : ChatTemplate::names()) {
        const ChatTemplate chat = ChatTemplate::by_name(name);
        const WrittenChat written = chat.write(messages, {.bos = "<bos>", .eos = "<eos>"});
        EXPECT_EQ(written.text, chat.render(messages, {.bos = "<bos>", .eos = "<eos>"}));
        std::string own, contents;
        size_t at = 0;
        for (const TextRange& range : written.contents) {
            ASSERT_LE(at, range.begin) << name;
            ASSERT_LT(range.begin, range.end) << name;
            own += written.text.substr(at, range.begin - at);
            contents += written.text.substr(range.begin, range.end - range.begin) + "|";
            at = range.end;
        }
        own += written.text.substr(at);
        EXPECT_THAT(contents, HasSubstr("S<|im_end|>|U|")) << name;
        EXPECT_TRUE(contents.ends_with("A|V|")) << name << ": " << contents;
        EXPECT_THAT(contents, testing::Not(HasSubstr("think"))) << name;
        EXPECT_THAT(own, testing::Not(HasSubstr("S<|im_end|>"))) << name;
    }
}

TEST(ChatTemplate, TrimsAsPythonDoes) {
    const ChatTemplate chat = ChatTemplate::by_name("llama3");
    const std::vector<ChatMessage> messages = {{"user",
                                                "\u3000\u00a0 \x1f"
                                                "a \u00e4\u200b\u2028\n"}};
    EXPECT_THAT(chat.render(messages, {}), HasSubstr("\n\na \u00e4\u200b<|eot_id|>"));
    const std::vector<ChatMessage> blank = {{"user", " \n"}};
    EXPECT_THAT(chat.render(blank, {}), HasSubstr("\n\n<|eot_id|>"));
    const std::vector<ChatMessage> broken = {{"user", "\xA0x\x85"}};
    EXPECT_THAT(chat.render(broken, {}), HasSubstr("\xA0x\x85"));
}

TEST(ChatTemplate, ContinuesAnAnswerWhereItStopped) {
    const std::vector<ChatMessage> question = {{"system", "s"}, {"user", "q"}};
    const ChatOptions options{.bos = "<bos>", .eos = "<eos>"};
    for (const std::string& name : ChatTemplate::names()) {
        SCOPED_TRACE(name);
        const ChatTemplate chat = ChatTemplate::by_name(name);
        std::vector<ChatMessage> messages = question;
        messages.push_back({"assistant", "It is <eos> "});
        const WrittenChat opened = chat.write(question, options);
        const WrittenChat written = chat.write_continued(messages, options);
        EXPECT_TRUE(written.text.starts_with(opened.text));
        EXPECT_TRUE(written.text.ends_with("It is <eos> ")) << "no end, nothing trimmed";
        ASSERT_FALSE(written.contents.empty());
        EXPECT_EQ(written.contents.back().end, written.text.size()) << "the answer is not the template's own";
        EXPECT_FALSE(written.reply.reasoning);
        EXPECT_FALSE(written.reply.begins_in_reasoning);
        EXPECT_TRUE(written.reply.content_begun);
        // An answer that has not begun is begun.
        messages.back().content.clear();
        EXPECT_EQ(chat.write_continued(messages, options).text, opened.text);
        EXPECT_EQ(chat.write_continued(messages, options).reply, opened.reply);
        // Reasoning goes on where the model reasons.
        messages.back().reasoning = "Let me";
        if (!opened.reply.reasoning) {
            EXPECT_THROW(chat.write_continued(messages, options), Error);
            continue;
        }
        const WrittenChat thinking = chat.write_continued(messages, options);
        EXPECT_TRUE(thinking.text.ends_with("Let me"));
        EXPECT_NE(thinking.text.find("<think>"), std::string::npos);
        EXPECT_TRUE(thinking.reply.begins_in_reasoning);
        EXPECT_FALSE(thinking.reply.content_begun);
        messages.back().content = "So";
        const WrittenChat answering = chat.write_continued(messages, options);
        EXPECT_TRUE(answering.text.starts_with(thinking.text));
        EXPECT_TRUE(answering.text.ends_with("So"));
        EXPECT_NE(answering.text.find("</think>", thinking.text.size()), std::string::npos);
        EXPECT_FALSE(answering.reply.reasoning);
    }
}

TEST(ChatTemplate, ContinuesOnlyAnswers) {
    const ChatTemplate chat = ChatTemplate::by_name("qwen3");
    const ChatMessage user{"user", "q"}, answer{"assistant", "a"};
    ChatMessage calling = answer;
    calling.tool_calls.push_back({"", "f", "{}"});
    const std::vector<std::vector<ChatMessage>> wrong = {{}, {answer}, {user}, {user, answer, user}, {user, calling}};
    for (const std::vector<ChatMessage>& messages : wrong) EXPECT_THROW(chat.write_continued(messages, {}), Error);
    // Reasoning within the content may be open.
    const auto reply = [&](const char* content) {
        return chat.write_continued(std::vector<ChatMessage>{user, {"assistant", content}}, {}).reply;
    };
    EXPECT_TRUE(reply("<think>\nhm").begins_in_reasoning);
    EXPECT_FALSE(reply("<think>\nhm</think>so").begins_in_reasoning);
    EXPECT_FALSE(reply("<think>\nhm").content_begun);
    EXPECT_FALSE(reply("\n ").content_begun);
}

}  // namespace
}  // namespace tessera::text
