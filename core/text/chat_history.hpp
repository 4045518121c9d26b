// Rewrites conversations that a chat template refuses although models answer so: what a model wrote can always be sent
// back.
#pragma once

#include "core/text/chat_template.hpp"

#include <span>
#include <vector>

namespace tessera::text {

struct ChatHistory {
    std::vector<ChatMessage> messages;
    std::vector<ChatTool> tools;
};

// Changes what a template may refuse; false: there was nothing to change.
using Rewriting = bool (*)(ChatHistory& history);

// Ids of calls become nine letters and digits, as Mistral's templates demand. An id that is so already stays; equal ids
// become equal ones. A call or result without an id gets one.
bool shorten_call_ids(ChatHistory& history);
// Ids of calls become "functions.NAME:INDEX" with the index of the call in the conversation, which is what Kimi's
// models write and read. An id that is so already stays, as does that of a result whose call is not in the
// conversation.
bool use_kimi_call_ids(ChatHistory& history);
// A message of several calls becomes one message for each call, followed by its result.
bool split_calls(ChatHistory& history);
// Arguments that are not a JSON object become {"arguments": "..."} with their text.
bool wrap_arguments(ChatHistory& history);
// Tools get the description, the parameters and the properties that they lack, all of them empty.
bool complete_tools(ChatHistory& history);
// Properties of tools get the type and the description that they lack.
bool complete_properties(ChatHistory& history);
// Content next to reasoning and calls becomes the last paragraph of the reasoning.
bool move_content_to_reasoning(ChatHistory& history);
// Reasoning next to calls becomes the first paragraph of the content.
bool move_reasoning_to_content(ChatHistory& history);
// Content and reasoning next to calls are left out.
bool leave_calls_only(ChatHistory& history);
// Assistant messages of neither content, nor reasoning, nor calls are left out, if another message stays.
bool drop_empty_answers(ChatHistory& history);

// Those that a conversation is tried with, in this order: each for itself, then more and more of them together. What
// loses no text comes first.
std::span<const Rewriting> rewritings() noexcept;

}  // namespace tessera::text
