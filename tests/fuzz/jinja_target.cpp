#include "tests/fuzz/jinja_target.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/chat_program.hpp"
#include "tests/fuzz/promises.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::fuzz {
namespace {

using namespace text;

// Little enough that an input which uses all of it takes some milliseconds.
constexpr jinja::RunOptions kLimits{.steps = 20'000, .bytes = 1 << 20, .now = 1'700'000'000};
constexpr size_t kLongestMessage = 4096;

void check(const Error& error) {
    expect(error.code() == TSR_UNSUPPORTED || error.code() == TSR_INVALID_ARGUMENT, "code of an error");
    const std::string_view text = error.what();
    expect(!text.empty() && text.size() <= kLongestMessage, "length of a message");
    expect(printable(text, SIZE_MAX) == text, "message that is not fit to print");
}

// Contents are in order, do not touch, and hold what only a message has.
void check_marks(const jinja::Marked& made) {
    size_t at = 0;
    for (const TextRange& range : made.contents) {
        expect(range.begin >= at && range.begin < range.end && range.end <= made.bytes.size(), "ranges of contents");
        expect(made.bytes.substr(at, range.begin - at).find("\U0001F9CA") == std::string::npos, "a content is marked");
        at = range.end + 1;
    }
    if (at <= made.bytes.size())
        expect(made.bytes.find("\U0001F9CA", at == 0 ? 0 : at - 1) == std::string::npos, "a content is marked");
}

// What it writes; nothing if it fails.
template <typename Work>
std::optional<std::string> answer(const Work& work) {
    try {
        return work();
    } catch (const Error& error) {
        check(error);
        return std::nullopt;
    }
}

std::vector<ChatMessage> conversation(uint8_t choice) {
    std::vector<ChatMessage> messages;
    if (choice & 1) messages.push_back({"system", "Be <brief>.\n"});
    messages.push_back({"user", " Wie\U0001F9CA sp\u00e4t? \"{{\" "});
    if (choice & 2) {
        ChatMessage call{"assistant", ""};
        call.reasoning = "It asks.";
        call.tool_calls.push_back({"call_1", "clock", R"({"zone": "CET", "list": [1, 2.5, null, true]})"});
        messages.push_back(std::move(call));
        ChatMessage result{"tool", "12:30"};
        result.tool_call_id = "call_1";
        result.name = "clock";
        messages.push_back(std::move(result));
    }
    if (choice & 4) messages.push_back({"assistant", "Half past <think>\n\n</think> twelve."});
    return messages;
}

}  // namespace

void run_jinja(std::string_view input) {
    // A program that has what only messages have would write it as its own.
    if (input.empty() || input.find("\U0001F9CA") != std::string_view::npos) return;
    const auto choice = static_cast<uint8_t>(input[0]);
    std::optional<jinja::Program> program;
    try {
        program.emplace(input.substr(1));
    } catch (const Error& error) {
        check(error);
        return;
    }
    const jinja::Program::Variables variables = {
        {"messages",
         jinja::Value::list({jinja::Value::dictionary(
             {{"role", jinja::Value::text("user")}, {"content", jinja::Value::content(" a\U0001F9CA b ")}})})},
        {"n", jinja::Value(int64_t{7})},
        {"none", jinja::Value::none()}};
    const auto run = [&] {
        const jinja::Marked made = program->run(variables, kLimits);
        check_marks(made);
        return made.bytes;
    };
    const std::optional<std::string> first = answer(run);
    expect(!first || first->size() <= kLimits.bytes, "bytes that are written");
    expect(answer(run) == first, "the same again");
    if (!first) return;  // the limits of a conversation are too far for a program without an end

    const std::vector<ChatMessage> messages = conversation(choice);
    ChatOptions options{.bos = "<s>", .eos = "</s>", .add_generation_prompt = (choice & 8) != 0};
    if (choice & 16) options.thinking = (choice & 32) != 0;
    if (choice & 64) options.tools.push_back({"clock", "tells the time", "", ""});
    ChatShape shape;
    shape.arguments_as_text = (choice & 128) != 0;
    shape.may_change_lists = (choice & 2) != 0;
    answer([&] {
        const jinja::Marked made = run_chat_program(*program, shape, messages, options);
        check_marks(made);
        return made.bytes;
    });
}

}  // namespace tessera::fuzz
