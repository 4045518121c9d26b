// The Responses API of OpenAI, as its clients and Codex speak it, without anything that is kept between requests.
#pragma once

#include "apps/server/dialect.hpp"

namespace tessera::server::responses {

extern const Dialect kResponses;

// In requests.
const FieldTable& responses_table();
const FieldTable& message_table();  // items of the input, by their type
const FieldTable& call_table();
const FieldTable& call_output_table();
const FieldTable& custom_call_table();
const FieldTable& custom_call_output_table();
const FieldTable& reasoning_item_table();
const FieldTable& part_table();            // of a message's content, and of a call's output
const FieldTable& unread_table();          // what the model is not shown of a call's output
const FieldTable& reasoning_part_table();  // of an item reasoning
const FieldTable& tool_table();
const FieldTable& namespace_table();      // a tool that is a group of others
const FieldTable& custom_tool_table();    // a tool that is called with a text
const FieldTable& custom_format_table();  // of such a tool
const FieldTable& named_tool_table();     // of tool_choice
const FieldTable& allowed_tools_table();  // likewise
const FieldTable& reasoning_table();
const FieldTable& text_table();
const FieldTable& format_table();  // of text

}  // namespace tessera::server::responses
