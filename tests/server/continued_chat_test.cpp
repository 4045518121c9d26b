// Conversations that end with the assistant's message: continued, or what the request says; never answered silently.
#include "apps/tessera-server/api_error.hpp"
#include "apps/tessera-server/text_api.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::server {
namespace {

namespace json = boost::json;
using testing::EndsWith;
using testing::HasSubstr;

std::string prompt_of(const std::string& messages, const std::string& fields = "", const char* form = "qwen3") {
    static const gguf::GgufFile file = gguf::GgufFile::open(TSR_TEST_MODEL);
    ModelText model;
    model.name = "test";
    model.context = 512;
    model.tokenizer = make_tokenizer(file);
    model.writer = std::make_unique<ChatWriter>(file, *model.tokenizer, form);
    const std::string body = R"({"messages":[)" + messages + "]" + (fields.empty() ? "" : "," + fields) + "}";
    return json::value_to<std::string>(json::parse(apply_template_response(body, model).body).at("prompt"));
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
    for (const char* form : {"deepseek-v3", "deepseek-v3-0324", "deepseek-r1", "llama3", "chatml"})
        EXPECT_EQ(prompt_of(kBegun, "", form).substr(0, prompt_of(kQuestion, "", form).size()),
                  prompt_of(kQuestion, "", form));
}

TEST(ContinuedChat, ARequestMayAskForAnotherAnswer) {
    const std::string closed = prompt_of(kBegun, R"("add_generation_prompt":false)");
    EXPECT_THAT(closed, EndsWith("It is<|im_end|>\n"));
    for (const char* fields : {R"("add_generation_prompt":true)", R"("continue_final_message":false)",
                               R"("continue_final_message":false,"add_generation_prompt":true)"})
        EXPECT_EQ(prompt_of(kBegun, fields), closed + "<|im_start|>assistant\n");
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
