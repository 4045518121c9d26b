// System messages behind others: written where the template has room for them, else folded into what stands before.
#include "core/text/late_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::text {
namespace {

using Messages = std::vector<ChatMessage>;
using testing::StartsWith;

constexpr const char* kTurns = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
// A system message first, and nowhere else.
const std::string kRaising = std::string(
                                 "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
                                 "{{ raise_exception('the system message comes first') }}{% endif %}{% endfor %}") +
                             kTurns;
// The same, and questions and answers take turns.
const std::string kAlternating =
    std::string(
        "{% set said = messages[1:] if messages[0].role == 'system' else messages %}{% for m in said %}"
        "{% if m.role != ('user' if loop.index0 % 2 == 0 else 'assistant') %}"
        "{{ raise_exception('roles must alternate') }}{% endif %}{% endfor %}") +
    kTurns;

std::string written(const std::string& program, const Messages& messages) {
    return ChatTemplate::of_program(program).render(messages, {});
}

TEST(LateSystem, StaysWhereTheTemplateWritesIt) {
    EXPECT_EQ(written(kTurns, {{"system", "s"}, {"user", "u"}, {"system", "t"}, {"user", "v"}}),
              "<system>s<user>u<system>t<user>v");
}

TEST(LateSystem, IsAParagraphOfTheMessageBefore) {
    for (const std::string& program : {kRaising, kAlternating}) {
        EXPECT_EQ(written(program, {{"user", "u"}, {"system", "s"}}), "<user>u\n\ns");
        EXPECT_EQ(written(program, {{"system", "s"}, {"user", "u"}, {"developer", "t"}, {"system", "x"}}),
                  "<system>s<user>u\n\nt\n\nx");
        EXPECT_EQ(written(program, {{"user", "u"}, {"system", "s"}, {"user", "v"}, {"assistant", "a"}}),
                  "<user>u\n\ns\n\nv<assistant>a");
    }
    const Messages results = {{"user", "u"},
                              {.role = "assistant", .content = "", .tool_calls = {{"i", "f", "{}"}}},
                              {"tool", "r"},
                              {"system", "s"},
                              {"user", "v"}};
    const Messages folded = fold_late_system(results);
    ASSERT_EQ(folded.size(), 4u);
    EXPECT_EQ(folded[2].content, "r\n\ns");
    EXPECT_EQ(folded[3].content, "v");
}

TEST(LateSystem, BehindAnAnswerIsTheUsers) {
    for (const std::string& program : {kRaising, kAlternating}) {
        const Messages begun = {{"user", "u"}, {"assistant", "a"}, {"system", "s"}};
        EXPECT_EQ(written(program, begun), "<user>u<assistant>a<user>s");
        Messages asked = begun;
        asked.push_back({"user", "v"});
        EXPECT_EQ(written(program, asked), "<user>u<assistant>a<user>s\n\nv");
        Messages answered = begun;
        answered.push_back({"assistant", "b"});
        EXPECT_EQ(written(program, answered), "<user>u<assistant>a<user>s<assistant>b");
    }
}

TEST(LateSystem, BehindCallsWaitsForTheirResults) {
    const Messages folded = fold_late_system(
        Messages{{"user", "u"},
                 {.role = "assistant", .content = "", .tool_calls = {{"i", "f", "{}"}, {"j", "f", "{}"}}},
                 {"system", "s"},
                 {"tool", "r"},
                 {"tool", "q"}});
    ASSERT_EQ(folded.size(), 4u);
    EXPECT_EQ(folded[2].content, "r\n\ns");
    EXPECT_EQ(folded[3].content, "q");
}

TEST(LateSystem, SeveralThatBeginAreOne) {
    EXPECT_EQ(written(kRaising, {{"system", "s"}, {"system", ""}, {"developer", "t"}, {"user", "u"}}),
              "<system>s\n\nt<user>u");
}

TEST(LateSystem, OneThatTheTemplateLosesIsWritten) {
    // The last one takes the place of the first.
    const std::string last =
        "{% set ns = namespace(s='') %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.s = m.content %}"
        "{% endif %}{% endfor %}{{ ns.s }}{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}"
        "{% endfor %}";
    EXPECT_EQ(written(last, {{"system", "s"}, {"user", "u"}, {"system", "t"}}), "s<user>u\n\nt");
}

// What has been written before is found in the cache.
TEST(LateSystem, WhatStandsBeforeItKeepsItsPlace) {
    const ChatTemplate chat = ChatTemplate::of_program(kRaising);
    Messages messages = {{"system", "s"}, {"user", "u"}};
    std::string before;
    for (const ChatMessage& next :
         Messages{{"assistant", "a"}, {"system", "t"}, {"assistant", "b"}, {"user", "v"}, {"system", "w"}}) {
        const std::string text = chat.render(messages, {.add_generation_prompt = false});
        EXPECT_THAT(text, StartsWith(before));
        before = text;
        messages.push_back(next);
    }
}

TEST(LateSystem, IsMarkedAsContent) {
    const WrittenChat chat = ChatTemplate::of_program(kRaising).write(
        Messages{{"user", "u"}, {"system", "<user>"}, {"assistant", "a"}, {"system", "<user>"}}, {});
    std::string own;
    size_t at = 0;
    for (const TextRange& range : chat.contents) {
        own += chat.text.substr(at, range.begin - at) + "_";
        at = range.end;
    }
    EXPECT_EQ(own + chat.text.substr(at), "<user>_<assistant>_<user>_");
}

TEST(LateSystem, NothingIsLongerThanItIsKnownToBe) {
    const Messages messages = {{"system", "s"}, {"user", " u "}, {"system", "t"},   {"assistant", "a"},
                               {"system", "x"}, {"user", "v"},   {"system", "last"}};
    for (const std::string& program : {kRaising, kAlternating, std::string(kTurns)}) {
        const ChatTemplate chat = ChatTemplate::of_program(program);
        EXPECT_LE(chat.fewest_bytes(messages, {}), chat.render(messages, {}).size());
    }
}

}  // namespace
}  // namespace tessera::text
