#include "core/text/late_system.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::text {
namespace {

void append_paragraph(std::string& to, std::string_view text) {
    if (!to.empty() && !text.empty()) to += "\n\n";
    to += text;
}

}  // namespace

bool is_system(const ChatMessage& message) noexcept {
    return message.role == "system" || message.role == "developer";
}

bool has_late_system(std::span<const ChatMessage> messages) noexcept {
    return messages.size() > 1 && std::ranges::any_of(messages.subspan(1), is_system);
}

std::vector<ChatMessage> fold_late_system(std::span<const ChatMessage> messages) {
    std::vector<ChatMessage> folded;
    std::string held;    // of system messages behind an answer
    bool grown = false;  // the last message has been added to
    for (const ChatMessage& message : messages) {
        if (is_system(message) && !folded.empty()) {
            const bool answered = folded.back().role == "assistant";
            append_paragraph(answered ? held : folded.back().content, message.content);
            grown = !answered;
            continue;
        }
        if (grown && message.role == "user" && folded.back().role == "user" && folded.back().name == message.name) {
            // Two in a row, which there were not, are refused by templates whose roles alternate.
            append_paragraph(folded.back().content, message.content);
            continue;
        }
        grown = false;
        ChatMessage made = message;
        if (message.role == "user") {
            made.content = std::exchange(held, {});
            append_paragraph(made.content, message.content);
        } else if (message.role == "tool") {
            append_paragraph(made.content, std::exchange(held, {}));
        } else if (!held.empty()) {
            folded.push_back({"user", std::exchange(held, {})});
        }
        folded.push_back(std::move(made));
    }
    if (!held.empty()) folded.push_back({"user", std::move(held)});
    return folded;
}

}  // namespace tessera::text
