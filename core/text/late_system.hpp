// System messages behind others, for templates that have room for one at the beginning alone.
#pragma once

#include "core/text/chat_template.hpp"

#include <span>
#include <vector>

namespace tessera::text {

bool is_system(const ChatMessage& message) noexcept;

// Whether a system message stands behind another message.
bool has_late_system(std::span<const ChatMessage> messages) noexcept;

// The conversation with no system message but perhaps a first one. Those that begin it are one. The text of a later one
// is a paragraph where it stood: at the end of the user's message or the result before it, or behind an answer at the
// beginning of the user's message that follows (behind calls: at the end of their first result), or a user's message.
// What was said before it keeps its place, so that it is found in the cache.
std::vector<ChatMessage> fold_late_system(std::span<const ChatMessage> messages);

}  // namespace tessera::text
