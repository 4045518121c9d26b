#include "core/text/chat_template.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/utf8.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>

namespace tessera::text {
namespace {

// What Python's str.strip() removes.
bool is_python_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty()) {
        const Utf8Step step = utf8_step(text);
        if (step.kind != Utf8Kind::kValid || !is_python_space(utf8_decode(text, step.length))) break;
        text.remove_prefix(step.length);
    }
    while (!text.empty()) {
        size_t at = text.size() - 1;
        while (at > 0 && text.size() - at < 4 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
        const std::string_view last = text.substr(at);
        const Utf8Step step = utf8_step(last);
        if (step.kind != Utf8Kind::kValid || step.length != last.size() ||
            !is_python_space(utf8_decode(last, step.length)))
            break;
        text.remove_suffix(last.size());
    }
    return text;
}

constexpr std::string_view kThoughtBegin = "<think>";
constexpr std::string_view kThoughtEnd = "</think>";

std::string_view lstrip_newlines(std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}
std::string_view rstrip_newlines(std::string_view text) {
    return text.substr(0, text.find_last_not_of('\n') + 1);
}

std::string_view without_thoughts(std::string_view content, ChatFormat::Thoughts rule) {
    if (rule == ChatFormat::Thoughts::kKeep) return content;
    const size_t end =
        rule == ChatFormat::Thoughts::kDropToLastEnd ? content.rfind(kThoughtEnd) : content.find(kThoughtEnd);
    return end == std::string_view::npos ? content : content.substr(end + kThoughtEnd.size());
}

// Gathers the template's own text and contents.
class ChatText {
  public:
    void own(std::string_view text) { written_.text += text; }
    void content(std::string_view text) {
        if (text.empty()) return;
        written_.contents.push_back({written_.text.size(), written_.text.size() + text.size()});
        written_.text += text;
    }
    // The tags around thoughts are the model's own.
    void answer(std::string_view text) {
        while (!text.empty()) {
            size_t at = text.size(), length = 0;
            for (const std::string_view mark : {kThoughtBegin, kThoughtEnd}) {
                if (const size_t found = text.find(mark); found < at) {
                    at = found;
                    length = mark.size();
                }
            }
            content(text.substr(0, at));
            own(text.substr(at, length));
            text.remove_prefix(at + length);
        }
    }
    WrittenChat take() { return std::move(written_); }

  private:
    WrittenChat written_;
};

// Qwen 3: answers to earlier questions lose their thoughts; after the last question thoughts are written, even
// empty ones if the conversation ends there.
void write_qwen3_answer(ChatText& out, std::string_view content, bool after_last_question, bool is_last) {
    std::string_view answer = content;
    std::string_view thoughts;
    if (const size_t last = content.rfind(kThoughtEnd); last != std::string_view::npos) {
        answer = lstrip_newlines(content.substr(last + kThoughtEnd.size()));
        thoughts = rstrip_newlines(content.substr(0, content.find(kThoughtEnd)));
        if (const size_t begin = thoughts.rfind(kThoughtBegin); begin != std::string_view::npos)
            thoughts.remove_prefix(begin + kThoughtBegin.size());
        thoughts = lstrip_newlines(thoughts);
    }
    if (!after_last_question || (!is_last && thoughts.empty())) return out.answer(answer);
    out.own("<think>\n");
    out.answer(rstrip_newlines(lstrip_newlines(thoughts)));
    out.own("\n</think>\n\n");
    out.answer(lstrip_newlines(answer));
}

bool is_tool_response(std::string_view content) {
    return content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
}

std::string hoisted_system(const ChatFormat& format, std::span<const ChatMessage> messages) {
    std::string text;
    bool first = true;
    for (const ChatMessage& message : messages) {
        if (message.role != "system") continue;
        if (format.system_place == ChatFormat::System::kLast) {
            text = message.content;
            continue;
        }
        if (!first) text += "\n\n";
        first = false;
        text += message.content;
    }
    return text;
}

bool holds(ChatFormat::When when, bool after_user) {
    return when == ChatFormat::When::kAlways || (when == ChatFormat::When::kAfterUser) == after_user;
}

}  // namespace

ChatTemplate ChatTemplate::by_name(std::string_view name) {
    for (const NamedChatFormat& one : known_chat_formats())
        if (std::ranges::find(one.names, name) != one.names.end()) return ChatTemplate(one.format);
    fail(TSR_NOT_FOUND, "chat template: expected one of {}, found '{}'", fmt::join(names(), ", "), printable(name, 60));
}

ChatTemplate ChatTemplate::recognize(std::string_view program) {
    if (auto format = recognize_chat_format(program)) return ChatTemplate(std::move(*format));
    fail(TSR_UNSUPPORTED,
         "tokenizer.chat_template: this template is not known ('{}'); name the form that the model was trained on with "
         "--chat-template, "
         "one of {}",
         printable(program, 80), fmt::join(names(), ", "));
}

std::vector<std::string> ChatTemplate::names() {
    std::vector<std::string> names;
    for (const NamedChatFormat& one : known_chat_formats()) names.emplace_back(one.names.front());
    return names;
}

WrittenChat ChatTemplate::write(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    const ChatFormat& f = format_;
    using System = ChatFormat::System;
    if (messages.empty()) fail(TSR_INVALID_ARGUMENT, "a conversation needs at least one message");
    if (!options.tools.empty()) fail(TSR_UNSUPPORTED, "the chat template {} does not know tools", f.name);
    bool any_system = false;
    size_t last_question = messages.size() - 1;
    for (size_t i = 0; i < messages.size(); ++i) {
        const std::string& role = messages[i].role;
        if (role != "system" && role != "user" && role != "assistant")
            fail(TSR_INVALID_ARGUMENT, "message {}: expected the role system, user or assistant, found '{}'", i,
                 printable(role, 40));
        if (!messages[i].tool_calls.empty())
            fail(TSR_UNSUPPORTED, "message {}: the chat template {} cannot write tool calls", i, f.name);
        any_system |= role == "system";
    }
    for (size_t i = messages.size(); i-- > 0;) {
        if (messages[i].role == "user" && !is_tool_response(messages[i].content)) {
            last_question = i;
            break;
        }
    }

    ChatText out;
    if (f.bos) out.own(options.bos);
    size_t first = 0;
    const bool starts_with_system = messages.front().role == "system";
    const auto content_of = [&](const ChatMessage& message) {
        return f.trim ? trimmed(message.content) : std::string_view(message.content);
    };
    if (f.system_place == System::kFirstInBlock) {
        out.own(f.system.before);
        out.own(f.default_system.value_or(""));
        if (starts_with_system) {
            out.content(content_of(messages.front()));
            first = 1;
        }
        out.own(f.system.after);
    } else if (f.system_place != System::kInPlace) {
        out.content(hoisted_system(f, messages));
    } else if (f.default_system && !(f.default_system_only_without_any ? any_system : starts_with_system)) {
        out.own(f.system.before + *f.default_system + f.default_system_after.value_or(f.system.after));
    }

    bool after_user = false;
    for (size_t i = first; i < messages.size(); ++i) {
        const ChatMessage& message = messages[i];
        const std::string_view content = content_of(message);
        if (message.role == "system") {
            if (f.system_place == System::kLast || f.system_place == System::kJoined) continue;
            out.own(f.system.before);
            out.content(content);
            out.own(f.system.after);
        } else if (message.role == "user") {
            out.own(f.user.before);
            out.content(content);
            out.own(f.user.after);
            after_user = true;
        } else {
            if (holds(f.assistant_before, after_user)) out.own(f.assistant.before);
            if (f.qwen3_thoughts) {
                write_qwen3_answer(out, content, i > last_question, i + 1 == messages.size());
            } else {
                out.answer(without_thoughts(content, f.thoughts));
            }
            out.own(f.assistant.after);
            if (f.eos_after_assistant) out.own(options.eos);
            after_user = false;
        }
    }
    if ((options.add_generation_prompt || f.generation_always) && holds(f.generation_when, after_user)) {
        out.own(f.generation);
        if (f.can_think)
            out.own(options.thinking.value_or(f.thinks_by_default) ? f.generation_thinking : f.generation_direct);
    }
    return out.take();
}

ReplySyntax ChatTemplate::reply_syntax(const ChatOptions& options) const {
    const ChatFormat& f = format_;
    const bool thinking = f.can_think && options.thinking.value_or(f.thinks_by_default);
    std::string opening = f.generation;
    if (f.can_think) opening += thinking ? f.generation_thinking : f.generation_direct;
    ReplySyntax syntax;
    syntax.begins_in_reasoning = options.add_generation_prompt && trimmed(opening).ends_with(kThoughtBegin);
    // A form that drops thoughts from earlier answers, or keeps some, has them.
    syntax.reasoning =
        syntax.begins_in_reasoning || thinking || (!f.can_think && f.thoughts != ChatFormat::Thoughts::kKeep);
    if (!options.tools.empty()) syntax.tools = f.tools;
    return syntax;
}

std::string ChatTemplate::markers() const {
    const ChatFormat& f = format_;
    std::string all;
    for (const std::string& piece :
         {f.system.before, f.system.after, f.default_system_after.value_or(""), f.user.before, f.user.after,
          f.assistant.before, f.assistant.after, f.generation, f.generation_thinking, f.generation_direct}) {
        all += piece + '\n';
    }
    return all;
}

}  // namespace tessera::text
