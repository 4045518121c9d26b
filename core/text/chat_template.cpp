#include "core/text/chat_template.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/chat_program.hpp"
#include "core/text/chat_writer.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>

namespace tessera::text {

ChatTemplate ChatTemplate::by_name(std::string_view name) {
    for (const NamedChatFormat& one : known_chat_formats())
        if (std::ranges::find(one.names, name) != one.names.end()) return ChatTemplate(one.format);
    fail(TSR_NOT_FOUND, "chat template: expected one of {}, found '{}'", fmt::join(names(), ", "), printable(name, 60));
}

std::optional<ChatTemplate> ChatTemplate::find_equal(std::string_view text) {
    const auto program = std::make_shared<const jinja::Program>(text);
    using Messages = std::vector<ChatMessage>;
    // The last one tells forms apart that differ in rare conversations alone; it need not be equal.
    const std::array<Messages, 5> probes = {
        Messages{{"user", " Hello\n"}}, Messages{{"system", " Be brief. "}, {"user", "Hello"}},
        Messages{{"user", "Hello"}, {"assistant", "\nHi "}, {"user", "Bye"}},
        Messages{{"user", "Hello"}, {"assistant", "<think>\nHm\n</think>\n\nHi"}, {"user", "Bye"}},
        Messages{{"system", "Be brief."}, {"system", "Be kind."}, {"user", "Hello"}}};
    for (const size_t needed : {probes.size(), probes.size() - 1}) {
        for (const NamedChatFormat& one : known_chat_formats()) {
            ChatTemplate candidate(one.format);
            candidate.program_ = program;
            try {
                for (size_t i = 0; i < needed; ++i) candidate.write(probes[i], {.bos = "<bos>", .eos = "<eos>"});
            } catch (const Error&) {
                continue;
            }
            keep_known_tools(candidate.format_, text);
            return candidate;
        }
    }
    return std::nullopt;
}

ChatTemplate ChatTemplate::recognize(std::string_view program) {
    auto format = recognize_chat_format(program);
    if (!format) {
        try {
            if (auto found = find_equal(program)) return std::move(*found);
        } catch (const Error&) {
            // Not readable, which the refusal of one that is not known covers.
        }
        fail(
            TSR_UNSUPPORTED,
            Notice(fmt::format("tokenizer.chat_template: this template is not known ('{}'), nor then the form that the "
                               "model was trained on",
                               printable(program, 80)),
                   {{AdviceCode::kNameTemplate, fmt::format("{}", fmt::join(names(), ", "))}}));
    }
    ChatTemplate known(std::move(*format));
    try {
        known.program_ = std::make_shared<const jinja::Program>(program);
    } catch (const Error& error) {
        fail(TSR_UNSUPPORTED, Notice(fmt::format("tokenizer.chat_template resembles {}, but it cannot be read ({})",
                                                 known.name(), error.what()),
                                     {{AdviceCode::kTakeAsTemplate, std::string(known.name())}}));
    }
    try {
        known.write(std::vector<ChatMessage>{{"user", "Hello"}}, {.bos = "<bos>", .eos = "<eos>"});
    } catch (const Error& error) {
        // One that asks for more messages may still write others.
        if (error.code() != TSR_INVALID_ARGUMENT) throw;
    }
    return known;
}

void ChatTemplate::check_program(std::span<const ChatMessage> messages, const ChatOptions& options,
                                 std::string_view written) const {
    using Program = ChatFormat::Tools::Program;
    const ChatFormat::Tools& tools = format_.tools;
    // The part that the program writes.
    std::vector<ChatMessage> part;
    ChatOptions asked = options;
    bool is_part = false;
    if (tools.program != Program::kAll && !options.tools.empty()) {
        asked.tools.clear();
        is_part = true;
    }
    const auto is_json = [](const ToolCall& call) {
        return call.arguments.empty() || parse_python_json(call.arguments).has_value();
    };
    const auto changes = [&](const ChatMessage& message) {
        if (tools.program == Program::kNothing) return message.role == "tool" || !message.tool_calls.empty();
        return !tools.arguments_as_given && !std::ranges::all_of(message.tool_calls, is_json);
    };
    if (std::ranges::any_of(messages, changes)) {
        is_part = true;
        for (const ChatMessage& message : messages) {
            if (tools.program == Program::kNothing && message.role == "tool") continue;
            ChatMessage& kept = part.emplace_back(message);
            if (tools.program == Program::kNothing) kept.tool_calls.clear();
            // What is not JSON is written as it is, which no program can do.
            for (ToolCall& call : kept.tool_calls)
                if (!tools.arguments_as_given && !is_json(call)) call.arguments.clear();
        }
        messages = part;
        if (part.empty()) return;
    }
    std::string form;
    if (is_part) {
        form = write_chat_form(format_, messages, asked).text;
        written = form;
    }
    std::string made;
    try {
        made = run_chat_program(*program_, messages, asked, tools.arguments_as_given);
    } catch (const Error& error) {
        if (error.code() == TSR_INVALID_ARGUMENT)
            fail(TSR_INVALID_ARGUMENT, "the model's chat template refuses this conversation: {}", error.what());
        fail(error.code(),
             Notice(fmt::format("the model's chat template cannot be run on this conversation ({})", error.what()),
                    {{AdviceCode::kTakeAsTemplate, std::string(name())}}));
    }
    if (made == written) return;
    const auto [mine, its] = std::ranges::mismatch(written, made);
    const auto at = static_cast<size_t>(mine - written.begin());
    // From a few bytes before, so that one sees where it is.
    const auto shown = [&](std::string_view text) {
        size_t begin = at < 12 ? 0 : at - 12;
        while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
        return printable(text.substr(begin), 60);
    };
    fail(
        TSR_UNSUPPORTED,
        Notice(fmt::format("the model's chat template is not what it resembles, {}: of this conversation it makes '{}' "
                           "where that form has '{}'",
                           name(), shown(made), shown(written)),
               {{AdviceCode::kTakeAsTemplate, std::string(name())}}));
}

std::vector<std::string> ChatTemplate::names() {
    std::vector<std::string> names;
    for (const NamedChatFormat& one : known_chat_formats()) names.emplace_back(one.names.front());
    return names;
}

ReplySyntax ChatTemplate::reply_syntax(const ChatOptions& options) const {
    const ChatFormat& f = format_;
    const bool thinking = f.can_think && options.thinking.value_or(f.thinks_by_default);
    std::string opening = f.generation;
    if (f.can_think) opening += thinking ? f.generation_thinking : f.generation_direct;
    ReplySyntax syntax;
    syntax.begins_in_reasoning =
        options.add_generation_prompt && (opening.ends_with("<think>") || opening.ends_with("<think>\n"));
    // A form that drops thoughts from earlier answers, or keeps some, has them.
    syntax.reasoning = syntax.begins_in_reasoning || thinking ||
                       (!f.can_think && (f.qwen3_thoughts || f.thoughts != ChatFormat::Thoughts::kKeep));
    if (!options.tools.empty()) syntax.tools = f.tools.syntax;
    return syntax;
}

std::string ChatTemplate::markers() const {
    const ChatFormat& f = format_;
    std::string all;
    for (const std::string& piece :
         {f.system.before, f.system.after, f.default_system_after.value_or(""), f.user.before, f.user.after,
          f.assistant.before, f.assistant.after, f.generation, f.generation_thinking, f.generation_direct,
          f.tools.calls.before, f.tools.calls.after, f.tools.call.before, f.tools.call.after, f.tools.name_after,
          f.tools.results.before, f.tools.results.after, f.tools.result.before, f.tools.result.after}) {
        all += piece + '\n';
    }
    if (f.tools.syntax == ToolSyntax::kDeepSeekV32) all += "<\uff5cDSML\uff5cparameter name=\n";
    return all;
}

bool acts_as_control(std::string_view spelling) noexcept {
    constexpr std::array<std::string_view, 10> tags = {
        "<think>",          "</think>", "<tool_call>", "</tool_call>", "<tool_response>",
        "</tool_response>", "<tools>",  "</tools>",    "<dsml:",       "</dsml:"};
    constexpr std::string_view bar = "\uff5c";
    if (spelling.size() > 2 * bar.size() && spelling.starts_with(bar) && spelling.ends_with(bar)) return true;
    return spelling.starts_with('<') && (spelling.find('|') != spelling.npos || spelling.find(bar) != spelling.npos ||
                                         std::ranges::find(tags, spelling) != tags.end());
}

}  // namespace tessera::text
