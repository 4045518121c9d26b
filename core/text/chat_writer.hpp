// A conversation in a known form.
#pragma once

#include "core/text/chat_template.hpp"

#include <span>

namespace tessera::text {

// ChatTemplate::write() without a program and without WrittenChat::reply.
WrittenChat write_chat_form(const ChatFormat& format, std::span<const ChatMessage> messages,
                            const ChatOptions& options);

}  // namespace tessera::text
