// Conversations that end with the assistant's message: continued, or what the request says; never answered silently.
#include "apps/server/api_error.hpp"
#include "apps/server/dialects/llama/text_api.hpp"
#include "tests/server/small_model.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::server {
namespace {

namespace json = boost::json;
using testing::EndsWith;
using testing::HasSubstr;

std::string prompt_of(const std::string& messages, const std::string& fields = "", const char* format = "qwen3") {
    const ModelText model = small_model(format);
    ByteBudget memory(1 << 20);
    const std::string body = R"({"messages":[)" + messages + "]" + (fields.empty() ? "" : "," + fields) + "}";
    return json::value_to<std::string>(json::parse(apply_template_response(body, model, memory).body).at("prompt"));
}

std::string fault_of(const std::string& messages, const std::string& fields = "") {
    try {
        prompt_of(messages, fields);
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 400);
        return error.what();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
}

const std::string kQuestion = R"({"role":"user","content":"q"})";
const std::string kBegun = kQuestion + R"(,{"role":"assistant","content":"It is"})";
const std::string kCalls =
    kQuestion +
    R"(,{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]})";

TEST(ContinuedChat, TheLastAnswerGoesOnByDefault) {
    const std::string opened = prompt_of(kQuestion);
    EXPECT_EQ(prompt_of(kBegun), opened + "It is");
    EXPECT_EQ(prompt_of(kBegun, R"("continue_final_message":true)"), opened + "It is");
    EXPECT_EQ(prompt_of(kBegun, R"("continue_final_message":true,"add_generation_prompt":false)"), opened + "It is");
}

// The whole text: what opens an answer, then the answer, and nothing else.
TEST(ContinuedChat, EveryTemplateGoesOnWithTheGivenText) {
    size_t reasoning = 0, compared = 0;
    for (const std::string& format : text::ChatTemplate::names()) {
        SCOPED_TRACE(format);
        for (const char* thinking :
             {"", R"("chat_template_kwargs":{"thinking":true})", R"("chat_template_kwargs":{"thinking":false})"}) {
            std::string opened;
            try {
                opened = prompt_of(kQuestion, thinking, format.c_str());
            } catch (const ApiError& error) {
                EXPECT_THAT(error.what(), HasSubstr("no switch for thinking"));
                continue;
            }
            // An answer that begins with reasoning has ended it where there is content.
            std::string between;
            if (opened.ends_with("<think>")) between = "</think>";
            if (opened.ends_with("<think>\n")) between = "\n</think>\n\n";
            reasoning += !between.empty();
            EXPECT_EQ(prompt_of(kBegun, thinking, format.c_str()), opened + between + "It is");
            const std::string blank = kQuestion + R"(,{"role":"assistant","content":" \nIt is "})";
            EXPECT_EQ(prompt_of(blank, thinking, format.c_str()), opened + between + " \nIt is ");
            // After an earlier answer, too.
            const std::string turns = kQuestion + R"(,{"role":"assistant","content":"a"},)" + kQuestion;
            const std::string again = prompt_of(turns, thinking, format.c_str());
            EXPECT_EQ(prompt_of(turns + R"(,{"role":"assistant","content":"It is"})", thinking, format.c_str()),
                      again + between + "It is");
            ++compared;
        }
    }
    EXPECT_GT(reasoning, 3u);
    EXPECT_GT(compared, 25u);
}

TEST(ContinuedChat, ARequestMayAskForAnotherAnswer) {
    const std::string closed = prompt_of(kBegun, R"("add_generation_prompt":false)");
    EXPECT_THAT(closed, EndsWith("It is<|im_end|>\n"));
    for (const char* fields : {R"("add_generation_prompt":true)", R"("continue_final_message":false)",
                               R"("continue_final_message":false,"add_generation_prompt":true)"})
        EXPECT_EQ(prompt_of(kBegun, fields), closed + "<|im_start|>assistant\n");
}

TEST(ContinuedChat, TwoAnswersAtTheEndNeedAWord) {
    const std::string two = kBegun + R"(,{"role":"assistant","content":" so"})";
    EXPECT_THAT(fault_of(two), HasSubstr("messages[2]: the last two messages are the assistant's"));
    EXPECT_THAT(prompt_of(two, R"("continue_final_message":true)"), EndsWith("<|im_start|>assistant\n so"));
    EXPECT_THAT(prompt_of(two, R"("add_generation_prompt":true)"), EndsWith(" so<|im_end|>\n<|im_start|>assistant\n"));
    EXPECT_THAT(prompt_of(two, R"("add_generation_prompt":false)"), EndsWith(" so<|im_end|>\n"));
}

TEST(ContinuedChat, WhatCannotBeContinuedIsRefused) {
    EXPECT_THAT(fault_of(kCalls), HasSubstr("messages[1]"));
    EXPECT_THAT(fault_of(R"({"role":"assistant","content":"a"})"), HasSubstr("message 0"));
    EXPECT_THAT(fault_of(kQuestion, R"("continue_final_message":true)"), HasSubstr("assistant"));
    EXPECT_THAT(fault_of(kBegun, R"("continue_final_message":true,"add_generation_prompt":true)"),
                HasSubstr("excludes"));
    EXPECT_THAT(prompt_of(kCalls, R"("add_generation_prompt":true)"), EndsWith("<|im_start|>assistant\n"));
}

}  // namespace
}  // namespace tessera::server
