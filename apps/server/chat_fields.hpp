// The fields of conversations as the OpenAI API has them, which other APIs take over: what chat_messages.hpp reads.
#pragma once

#include "apps/server/field_table.hpp"

#include <span>

namespace tessera::server {

std::span<const FieldRow> conversation_rows();
// Of a request to answer one, beside those of every request that generates.
std::span<const FieldRow> chat_rows();

const FieldTable& named_tool_table();  // of tool_choice
const FieldTable& named_function_table();
const FieldTable& allowed_choice_table();
const FieldTable& allowed_tools_table();
const FieldTable& message_table();
const FieldTable& part_table();  // of a message's content
const FieldTable& call_table();  // of a message's tool_calls
const FieldTable& called_function_table();
const FieldTable& custom_call_table();
const FieldTable& called_custom_table();
const FieldTable& tool_table();
const FieldTable& tool_function_table();
const FieldTable& custom_tool_table();
const FieldTable& tool_custom_table();
const FieldTable& custom_format_table();
const FieldTable& custom_grammar_table();

// All of these tables.
std::span<const FieldTable* const> chat_tables();

}  // namespace tessera::server
