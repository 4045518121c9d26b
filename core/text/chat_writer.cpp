#include "core/text/chat_writer.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/chat_program.hpp"
#include "core/text/chat_template.hpp"
#include "core/text/json_text.hpp"
#include "core/text/python_json.hpp"
#include "core/text/python_text.hpp"

#include <algorithm>

namespace tessera::text {
namespace {

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

    ChatText() = default;
    explicit ChatText(WrittenChat begun) : written_(std::move(begun)) {}

  private:
    WrittenChat written_;
};

bool is_tool_response(std::string_view content) {
    return content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
}

// A message with its role checked.
enum class Role : uint8_t { kSystem, kUser, kAssistant, kTool };

Role role_of(const ChatMessage& message, size_t index) {
    if (message.role == "system" || message.role == "developer") return Role::kSystem;
    if (message.role == "user") return Role::kUser;
    if (message.role == "assistant") return Role::kAssistant;
    if (message.role == "tool") return Role::kTool;
    fail(TSR_INVALID_ARGUMENT, "message {}: expected the role system, developer, user, assistant or tool, found '{}'",
         index, printable(message.role, 40));
}

// One conversation.
class Writer {
  public:
    Writer(const ChatFormat& format, std::span<const ChatMessage> messages, const ChatOptions& options)
        : f_(format),
          tools_(format.tools),
          messages_(messages),
          options_(options),
          thinking_(format.can_think && options.thinking.value_or(format.thinks_by_default)),
          describes_(!options.tools.empty()) {}

    WrittenChat write() {
        check();
        size_t i = write_beginning();
        for (; i < messages_.size(); ++i) {
            const ChatMessage& message = messages_[i];
            switch (roles_[i]) {
                case Role::kSystem:
                    write_system(message);
                    break;
                case Role::kUser:
                    write_before(f_.user.before, message);
                    out_.content(content_of(message));
                    out_.own(f_.user.after);
                    break;
                case Role::kAssistant:
                    write_assistant(message, i);
                    break;
                case Role::kTool:
                    write_result(message, i);
                    break;
            }
            if (roles_[i] != Role::kSystem) {
                after_user_ = roles_[i] == Role::kUser;
                after_results_ = roles_[i] == Role::kTool;
            }
        }
        if (options_.add_generation_prompt || f_.generation_always) write_generation();
        return out_.take();
    }

  private:
    using System = ChatFormat::System;
    using Describe = ChatFormat::Tools::Describe;

    bool is(size_t index, Role role) const { return index < roles_.size() && roles_[index] == role; }
    bool holds(ChatFormat::When when) const {
        switch (when) {
            case ChatFormat::When::kAlways:
                return true;
            case ChatFormat::When::kAfterUser:
                return after_user_;
            case ChatFormat::When::kNotAfterUser:
                return !after_user_;
            case ChatFormat::When::kNotAfterResults:
                return !after_results_;
        }
        return true;
    }
    std::string_view content_of(const ChatMessage& message) const {
        return f_.trim ? python_strip(message.content, true, true) : std::string_view(message.content);
    }

    void check() {
        if (messages_.empty()) fail(TSR_INVALID_ARGUMENT, "a conversation needs at least one message");
        if (describes_ && tools_.describe == Describe::kNot) {
            fail(TSR_UNSUPPORTED,
                 Notice(fmt::format("the chat template {} does not say how tools are described to the model, so that "
                                    "only requests without tools can be written",
                                    f_.name),
                        {{AdviceCode::kNameTemplate, fmt::format("{}", describing_names())}}));
        }
        last_question_ = messages_.size() - 1;
        for (size_t i = 0; i < messages_.size(); ++i) {
            const ChatMessage& message = messages_[i];
            const Role role = role_of(message, i);
            roles_.push_back(role);
            if (role != Role::kAssistant && !message.tool_calls.empty())
                fail(TSR_INVALID_ARGUMENT, "message {}: only an assistant calls tools", i);
            if ((role == Role::kTool || !message.tool_calls.empty()) && tools_.syntax == ToolSyntax::kNone) {
                fail(TSR_UNSUPPORTED, "message {}: the chat template {} cannot write {}", i, f_.name,
                     role == Role::kTool ? "messages of the role tool" : "tool calls");
            }
            if (tools_.one_call && message.tool_calls.size() > 1) {
                fail(TSR_UNSUPPORTED, "message {}: the chat template {} writes one call a message, found {}", i,
                     f_.name, message.tool_calls.size());
            }
            any_system_ |= role == Role::kSystem;
            if (role == Role::kUser && !(f_.qwen3_thoughts && is_tool_response(message.content))) {
                last_question_ = i;
                any_question_ = true;
            }
        }
        if (tools_.syntax == ToolSyntax::kDeepSeekV32) check_results();
    }

    // For a form that tells results apart by their order alone, and ends them after as many as there were calls.
    void check_results() const {
        size_t expected = 0;
        for (size_t i = 0; i < messages_.size(); ++i) {
            if (roles_[i] != Role::kTool) {
                expected = messages_[i].tool_calls.size();
                continue;
            }
            size_t found = 1;
            while (is(i + found, Role::kTool)) ++found;
            if (found != expected) {
                fail(TSR_INVALID_ARGUMENT, "message {}: expected results of the {} calls before it, found {}", i,
                     expected, found);
            }
            i += found - 1;
        }
    }

    static std::string describing_names() {
        std::string names;
        for (const NamedChatFormat& one : known_chat_formats()) {
            if (one.format.tools.describe == Describe::kNot) continue;
            names += (names.empty() ? "" : ", ") + one.format.name;
        }
        return names;
    }

    // With the day in the place of the form's.
    std::string dated(std::string text) const {
        const size_t at = f_.dated.empty() ? text.npos : text.find(f_.dated);
        if (at != text.npos)
            text.replace(at, f_.dated.size(), jinja::time_text("%d %b %Y", options_.now.value_or(std::time(nullptr))));
        return text;
    }

    // All before the messages; returns the first that is not part of it.
    size_t write_beginning() {
        const bool starts_with_system = roles_.front() == Role::kSystem;
        if (f_.bos) out_.own(options_.bos);
        if (f_.system_place == System::kFirstInBlock) {
            out_.own(f_.system.before);
            if (describes_) out_.own(tools_.system_before);
            out_.own(dated(f_.default_system.value_or("")));
            if (starts_with_system) out_.content(content_of(messages_.front()));
            out_.own(f_.system.after);
            const size_t first = starts_with_system ? 1 : 0;
            return describes_ && tools_.in_question ? write_question(first) : first;
        }
        if (f_.system_place != System::kInPlace) {
            const std::string system = hoisted_system();
            out_.content(system);
            if (describes_) {
                if (!system.empty()) out_.own("\n\n");
                write_tools();
            }
            return 0;
        }
        if (describes_) {
            out_.own(f_.system.before);
            if (starts_with_system) out_.content(content_of(messages_.front()));
            if (!starts_with_system) out_.own(f_.default_system.value_or(""));
            if (starts_with_system || f_.default_system) out_.own("\n\n");
            write_tools();
            out_.own(f_.system.after);
            return starts_with_system ? 1 : 0;
        }
        if (f_.default_system && !(f_.default_system_only_without_any ? any_system_ : starts_with_system))
            out_.own(f_.system.before + *f_.default_system + f_.default_system_after.value_or(f_.system.after));
        return 0;
    }

    std::string hoisted_system() const {
        std::string text;
        bool first = true;
        for (size_t i = 0; i < messages_.size(); ++i) {
            if (roles_[i] != Role::kSystem) continue;
            if (f_.system_place == System::kLast) {
                text = messages_[i].content;
                continue;
            }
            if (!first) text += "\n\n";
            first = false;
            text += messages_[i].content;
        }
        return text;
    }

    // The first message with what may be called.
    size_t write_question(size_t index) {
        if (!is(index, Role::kUser)) {
            fail(TSR_INVALID_ARGUMENT,
                 "message {}: the chat template {} describes tools in the first message after the system's, which must "
                 "be "
                 "the user's",
                 index, f_.name);
        }
        out_.own(f_.user.before);
        write_tools();
        out_.content(content_of(messages_[index]));
        out_.own(f_.user.after);
        after_user_ = true;
        return index + 1;
    }

    void write_tools() {
        out_.own(tools_.all.before);
        for (size_t i = 0; i < options_.tools.size(); ++i) {
            const ChatTool& tool = options_.tools[i];
            const PythonJson whole = tool_object(tool, i);
            out_.own(tools_.each.before);
            if (tools_.describe == Describe::kParts) {
                const PythonJson* function = whole.find("function");
                const PythonJson* parameters = function ? function->find("parameters") : nullptr;
                out_.own("### ");
                out_.content(tool.name);
                out_.own("\nDescription: ");
                out_.content(tool.description);
                out_.own("\n\nParameters: ");
                out_.content(parameters ? parameters->dumps() : "{}");
            } else {
                const PythonJson* function = tools_.describe == Describe::kFunction ? whole.find("function") : nullptr;
                out_.content((function ? *function : whole).dumps(tools_.indent));
            }
            out_.own(tools_.each.after);
        }
        out_.own(tools_.all.after);
    }

    // What precedes a content: "<|im_user|>user<|im_middle|>", perhaps with the message's name for "user".
    void write_before(std::string_view before, const ChatMessage& message) {
        const size_t end = f_.name_end.empty() || message.name.empty() ? before.npos : before.rfind(f_.name_end);
        const size_t begin = end == before.npos ? before.npos : before.rfind('>', end);
        if (begin == before.npos) return out_.own(before);
        out_.own(before.substr(0, begin + 1));
        out_.content(message.name);
        out_.own(before.substr(end));
    }

    void write_system(const ChatMessage& message) {
        if (f_.system_place == System::kLast || f_.system_place == System::kJoined) return;
        write_before(f_.system.before, message);
        out_.content(content_of(message));
        out_.own(f_.system.after);
    }

    void write_assistant(const ChatMessage& message, size_t index) {
        const bool calls = !message.tool_calls.empty();
        std::string_view content = content_of(message);
        if (f_.deepseek32_thoughts) {
            if (after_user_) out_.own(f_.assistant.before);
            if (after_results_) out_.own(*tools_.generation_after);
            if (after_user_ || after_results_)
                write_deepseek32_thoughts(message, !any_question_ || index > last_question_);
            out_.answer(content);
        } else {
            if (holds(f_.assistant_before)) write_before(f_.assistant.before, message);
            if (f_.qwen3_thoughts) {
                content = write_qwen3_answer(message, index > last_question_, index + 1 == messages_.size());
            } else {
                if (tools_.thoughts_beside || !(calls || after_results_))
                    content = without_thoughts(content, f_.thoughts);
                if (!(calls && tools_.one_call)) out_.answer(content);
            }
        }
        if (calls) write_calls(message, !content.empty(), index);
        out_.own(f_.assistant.after);
        if (f_.eos_after_assistant) out_.own(options_.eos);
    }

    void write_calls(const ChatMessage& message, bool has_content, size_t index) {
        if (has_content) out_.own(tools_.content_after);
        out_.own(tools_.calls.before);
        for (size_t i = 0; i < message.tool_calls.size(); ++i) {
            const ToolCall& call = message.tool_calls[i];
            if (i > 0) out_.own(tools_.call_separator);
            out_.own(tools_.call.before);
            out_.content(call.name);
            out_.own(tools_.name_after);
            if (tools_.syntax == ToolSyntax::kDeepSeekV32) {
                write_dsml_parameters(call, index);
            } else {
                out_.content(arguments_of(call));
            }
            out_.own(tools_.call.after);
        }
        out_.own(tools_.calls.after);
    }

    // What is not JSON, as a model may have written it, is written as it is.
    std::string arguments_of(const ToolCall& call) const {
        if (call.arguments.empty()) return "{}";
        if (tools_.arguments_as_given) return call.arguments;
        const auto value = parse_python_json(call.arguments);
        return value ? value->dumps() : call.arguments;
    }

    void write_dsml_parameters(const ToolCall& call, size_t index) {
        if (call.arguments.empty()) return;
        const auto value = parse_python_json(call.arguments);
        if (!value || value->kind != PythonJson::Kind::kObject) {
            fail(
                TSR_INVALID_ARGUMENT,
                "message {}: the chat template {} writes each argument by itself; expected a JSON object for {}, found "
                "'{}'",
                index, f_.name, printable(call.name, 40), printable(call.arguments, 60));
        }
        for (const auto& [key, member] : value->members) {
            const bool is_text = member.kind == PythonJson::Kind::kText;
            out_.own("<\uff5cDSML\uff5cparameter name=\"");
            out_.content(key);
            out_.own(is_text ? "\" string=\"true\">" : "\" string=\"false\">");
            out_.content(is_text ? member.text : member.dumps());
            out_.own("</\uff5cDSML\uff5cparameter>\n");
        }
    }

    void write_result(const ChatMessage& message, size_t index) {
        const bool first = index == 0 || roles_[index - 1] != Role::kTool;
        out_.own(first ? tools_.results.before : tools_.result_separator);
        out_.own(tools_.result.before);
        out_.content(tools_.result_as_json ? PythonJson::of_text(message.content).dumps() : message.content);
        out_.own(tools_.result.after);
        if (!is(index + 1, Role::kTool)) out_.own(tools_.results.after);
    }

    void write_generation() {
        if (after_results_ && tools_.generation_after) {
            if (tools_.generation_after->empty()) return;
            out_.own(*tools_.generation_after);
        } else {
            if (!holds(f_.generation_when)) return;
            out_.own(f_.generation);
        }
        if (f_.can_think) out_.own(thinking_ ? f_.generation_thinking : f_.generation_direct);
    }

    // Qwen 3: answers to earlier questions lose their thoughts; after the last question thoughts are written, even
    // empty ones if the conversation ends there. Returns the content without them.
    std::string_view write_qwen3_answer(const ChatMessage& message, bool after_last_question, bool is_last) {
        std::string_view answer = message.content;
        std::string_view thoughts = message.reasoning;
        const size_t last = answer.rfind(kThoughtEnd);
        const bool inside = thoughts.empty() && last != answer.npos;
        if (inside) {
            thoughts = rstrip_newlines(answer.substr(0, answer.find(kThoughtEnd)));
            answer = lstrip_newlines(answer.substr(last + kThoughtEnd.size()));
            if (const size_t begin = thoughts.rfind(kThoughtBegin); begin != thoughts.npos)
                thoughts.remove_prefix(begin + kThoughtBegin.size());
            thoughts = lstrip_newlines(thoughts);
        }
        if (!after_last_question || (!is_last && thoughts.empty())) {
            out_.answer(answer);
            return answer;
        }
        out_.own("<think>\n");
        thoughts = rstrip_newlines(lstrip_newlines(thoughts));
        inside ? out_.answer(thoughts) : out_.content(thoughts);
        out_.own("\n</think>\n\n");
        out_.answer(lstrip_newlines(answer));
        return answer;
    }

    void write_deepseek32_thoughts(const ChatMessage& message, bool after_last_question) {
        if (thinking_ && after_last_question) {
            out_.own(kThoughtBegin);
            out_.content(message.reasoning);
        }
        out_.own(kThoughtEnd);
    }

    const ChatFormat& f_;
    const ChatFormat::Tools& tools_;
    const std::span<const ChatMessage> messages_;
    const ChatOptions& options_;
    const bool thinking_;
    const bool describes_;
    std::vector<Role> roles_;
    ChatText out_;
    bool any_system_ = false;
    size_t last_question_ = 0;  // Qwen 3: the last message if there is none
    bool any_question_ = false;
    bool after_user_ = false;  // the last message that was not the system's
    bool after_results_ = false;
};

}  // namespace

WrittenChat write_chat_form(const ChatFormat& format, std::span<const ChatMessage> messages,
                            const ChatOptions& options) {
    return Writer(format, messages, options).write();
}

WrittenChat ChatTemplate::write(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    WrittenChat chat = write_chat_form(format_, messages, options);
    if (program_) check_program(messages, options, chat.text);
    chat.reply = reply_syntax(options);
    // By the template's own text alone: a message that ends so is not the model's reasoning.
    const std::string_view text = chat.text;
    const size_t end = text.find_last_not_of('\n') + 1;
    chat.reply.begins_in_reasoning =
        text.substr(0, end).ends_with(chat.reply.reasoning_begin) &&
        (chat.contents.empty() || chat.contents.back().end <= end - chat.reply.reasoning_begin.size());
    chat.reply.reasoning |= chat.reply.begins_in_reasoning;
    return chat;
}

WrittenChat ChatTemplate::write_continued(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    if (messages.size() < 2 || messages.back().role != "assistant" || !messages.back().tool_calls.empty()) {
        fail(
            TSR_INVALID_ARGUMENT,
            "message {}: expected an answer of the assistant without tool calls, which can be continued, after another "
            "message",
            messages.size() - std::min<size_t>(messages.size(), 1));
    }
    const ChatMessage& last = messages.back();
    if (!last.name.empty() && !format_.name_end.empty())
        fail(TSR_INVALID_ARGUMENT, "message {}: an answer whose author has a name cannot be continued",
             messages.size() - 1);
    ChatOptions opening = options;
    opening.add_generation_prompt = true;
    WrittenChat begun = write(messages.first(messages.size() - 1), opening);
    ReplySyntax reply = begun.reply;
    // Some forms write the tags on lines of their own.
    const bool lines = !begun.text.ends_with(reply.reasoning_begin);
    ChatText out(std::move(begun));
    if (!last.reasoning.empty()) {
        if (!reply.reasoning)
            fail(TSR_INVALID_ARGUMENT, "message {}: the chat template {} has no reasoning that could be continued",
                 messages.size() - 1, name());
        if (!reply.begins_in_reasoning) out.own(reply.reasoning_begin + "\n");
        out.content(last.reasoning);
        reply.begins_in_reasoning = true;
    }
    if (!last.content.empty()) {
        if (reply.begins_in_reasoning) out.own(lines ? "\n" + reply.reasoning_end + "\n\n" : reply.reasoning_end);
        out.answer(last.content);
        // Reasoning that is part of the content may be open still.
        const size_t open = last.content.rfind(reply.reasoning_begin), closed = last.content.rfind(reply.reasoning_end);
        reply.begins_in_reasoning =
            reply.reasoning && open != std::string::npos && (closed == std::string::npos || closed < open);
        reply.reasoning = reply.begins_in_reasoning;
        reply.content_begun = !reply.begins_in_reasoning && !std::ranges::all_of(last.content, is_json_space);
    }
    WrittenChat chat = out.take();
    chat.reply = std::move(reply);
    return chat;
}

}  // namespace tessera::text
