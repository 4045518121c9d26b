// The Messages API of Anthropic, as its clients and Claude Code speak it.
#pragma once

#include "apps/server/dialect.hpp"

namespace tessera::server::anthropic {

extern const Dialect kAnthropic;

// In requests.
const FieldTable& messages_table();
const FieldTable& count_table();  // of /v1/messages/count_tokens
const FieldTable& message_table();
const FieldTable& system_part_table();
const FieldTable& text_table();  // blocks of a message's content, by their type
const FieldTable& thinking_table();
const FieldTable& redacted_thinking_table();
const FieldTable& tool_use_table();
const FieldTable& tool_result_table();
const FieldTable& unread_table();  // what the model is not shown of a result
const FieldTable& tool_table();
const FieldTable& document_table();  // a block document that is a text
const FieldTable& document_source_table();
const FieldTable& search_result_table();
const FieldTable& citations_table();     // of both
const FieldTable& found_tool_table();    // a block tool_reference of a tool's result
const FieldTable& tool_change_table();   // blocks tool_addition and tool_removal
const FieldTable& changed_tool_table();  // of these
const FieldTable& tool_choice_table();
const FieldTable& thinking_option_table();
const FieldTable& output_config_table();
const FieldTable& format_table();  // of output_config

}  // namespace tessera::server::anthropic
