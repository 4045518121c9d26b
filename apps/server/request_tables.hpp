// The fields of requests, by endpoint and by the objects inside of them.
#pragma once

#include "apps/server/field_table.hpp"

#include <span>

namespace tessera::server {

const FieldTable& chat_table();
const FieldTable& completion_table();
const FieldTable& plain_completion_table();
const FieldTable& template_table();  // of /apply-template
const FieldTable& infill_table();
const FieldTable& input_extra_table();  // of /infill
const FieldTable& prompt_object_table();
const FieldTable& embeddings_table();  // of /v1/embeddings
const FieldTable& embedding_table();   // of /embedding
const FieldTable& tokenize_table();
const FieldTable& detokenize_table();
const FieldTable& saved_slot_table();  // of POST /slots/{id}

const FieldTable& stream_options_table();
const FieldTable& response_format_table();
const FieldTable& json_schema_table();  // of response_format
const FieldTable& structured_outputs_table();
const FieldTable& named_tool_table();  // of tool_choice
const FieldTable& named_function_table();
const FieldTable& allowed_choice_table();
const FieldTable& allowed_tools_table();
const FieldTable& message_table();
const FieldTable& part_table();  // of a message's content
const FieldTable& call_table();  // of a message's tool_calls
const FieldTable& called_function_table();
const FieldTable& tool_table();
const FieldTable& tool_function_table();

// Numbers of sampling, under all of their names: of every request that generates.
std::span<const FieldRow> sampling_rows();

// All of these tables.
std::span<const FieldTable* const> request_tables();

}  // namespace tessera::server
