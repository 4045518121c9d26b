// Requests of ollama's clients without a text, which ask for the model itself: all of their fields are read.
#include "apps/server/api_error.hpp"
#include "apps/server/dialects/ollama/requests.hpp"
#include "tests/server/small_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::server {
namespace {

using testing::StartsWith;

const ModelText& model() {
    static const ModelText text = small_model();
    return text;
}

// `fields`: behind others, with a comma before them. What the request is for, or the message of the error 400.
std::string asked(const std::string& fields, const ModelText& of = model(), bool chat = true) {
    try {
        const std::string body = R"({"model":"any")" + fields + "}";
        return std::string((chat ? ollama::read_chat(body, of) : ollama::read_generate(body, of)).loading);
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 400);
        return error.what();
    }
}

TEST(LoadingRequest, EveryFieldIsRead) {
    for (const bool chat : {true, false}) {
        EXPECT_EQ(asked("", model(), chat), "load");
        EXPECT_EQ(asked(R"(,"think":true,"format":"json")", model(), chat), "load");
        EXPECT_THAT(asked(R"(,"think":7)", model(), chat), StartsWith("think:"));
        EXPECT_THAT(asked(R"(,"think":"much")", model(), chat), StartsWith("think:"));
        EXPECT_THAT(asked(R"(,"format":7)", model(), chat), StartsWith("format:"));
    }
    EXPECT_EQ(asked(R"(,"messages":[],"tools":[{"type":"function","function":{"name":"f"}}])"), "load");
    EXPECT_THAT(asked(R"(,"tools":7)"), StartsWith("tools:"));
    EXPECT_THAT(asked(R"(,"tools":[{}])"), StartsWith("tools[0]"));
    EXPECT_THAT(asked(R"(,"system":7)", model(), false), StartsWith("system:"));
    EXPECT_EQ(asked(R"(,"raw":true,"think":false)", model(), false), "load");
    EXPECT_THAT(asked(R"(,"raw":true,"think":true)", model(), false), StartsWith("think:"));
}

TEST(LoadingRequest, OfAModelWithoutATemplate) {
    ModelText bare = small_model();
    bare.writer = nullptr;
    bare.writer_fault = "it has none";
    for (const bool chat : {true, false}) {
        EXPECT_EQ(asked(R"(,"think":false)", bare, chat), "load");
        EXPECT_EQ(asked(R"(,"think":true)", bare, chat), "it has none");
        EXPECT_EQ(asked(R"(,"think":"low")", bare, chat), "it has none");
        EXPECT_THAT(asked(R"(,"think":7)", bare, chat), StartsWith("think:"));
    }
}

TEST(LoadingRequest, TimesAreAsGoWritesThem) {
    const auto keep = [](const std::string& time) { return asked(R"(,"keep_alive":")" + time + "\""); };
    for (const char* time : {"0", "-0", "0s", "0h0m", ".0s"}) EXPECT_EQ(keep(time), "unload") << time;
    for (const char* time : {"5m", "-1m", "+1h30m", "1.5h", ".5s", "300ms", "7\u00b5s", "7\u03bcs", "7us", "1m2ns"})
        EXPECT_EQ(keep(time), "load") << time;
    for (const char* time : {"", "-", "5", "00", "m", ".s", "1.2.3s", "1 h", "5x", "1h30", "--1m", "1sm", "\u00b5"})
        EXPECT_THAT(keep(time), StartsWith("keep_alive:")) << time;
}

}  // namespace
}  // namespace tessera::server
