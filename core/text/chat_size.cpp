// How long a conversation becomes, without writing it.
#include "core/text/chat_template.hpp"
#include "core/text/json_text.hpp"
#include "core/text/python_text.hpp"

#include <algorithm>

namespace tessera::text {
namespace {

// Of JSON that is written anew: space between its parts is lost, and six bytes of a string may be one character.
uint64_t fewest_json_bytes(std::string_view text) {
    uint64_t outside = 0, inside = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '"') {
            quoted = !quoted;
            ++outside;
        } else if (quoted) {
            const bool escape = text[i] == '\\';
            i += escape ? 1 : 0;
            inside += escape ? 2 : 1;
        } else if (!is_json_space(text[i])) {
            ++outside;
        }
    }
    return outside + inside / 6;
}

uint64_t fewest_content_bytes(const ChatFormat& format, const ChatMessage& message) {
    std::string_view content = message.content;
    if (message.role == "tool") return content.size();
    const bool drops_thoughts = format.qwen3_thoughts || format.thoughts != ChatFormat::Thoughts::kKeep;
    if (message.role == "assistant") {
        if (!message.tool_calls.empty() && format.tools.one_call) return 0;
        constexpr std::string_view end = "</think>";
        if (const size_t at = drops_thoughts ? content.rfind(end) : content.npos; at != content.npos)
            content.remove_prefix(at + end.size());
    }
    return format.trim || drops_thoughts ? python_strip(content, true, true).size() : content.size();
}

}  // namespace

uint64_t ChatTemplate::fewest_bytes(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    const auto is_system = [](const ChatMessage& message) {
        return message.role == "system" || message.role == "developer";
    };
    uint64_t bytes = 0, system = 0;
    for (const ChatMessage& message : messages) {
        const uint64_t content = fewest_content_bytes(format_, message);
        if (is_system(message)) {
            system = format_.system_place == ChatFormat::System::kLast ? content : system + content;
        } else {
            bytes += content;
        }
        for (const ToolCall& call : message.tool_calls) {
            bytes += call.name.size();
            bytes += format_.tools.arguments_as_given ? call.arguments.size() : fewest_json_bytes(call.arguments);
        }
    }
    for (const ChatTool& tool : options.tools)
        bytes += tool.name.size() + tool.description.size() + fewest_json_bytes(tool.parameters);
    return bytes + system;
}

}  // namespace tessera::text
