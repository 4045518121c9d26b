// The fields by which texts are asked for in the APIs of OpenAI, llama-server and others that begin with these: what
// request_fields.hpp, structure_fields.hpp and prompts_of_request.hpp read.
#pragma once

#include "apps/server/field_table.hpp"

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::server {

// What the tables of several APIs say.
inline constexpr std::string_view kBookkeeping = "the sender's own bookkeeping";
inline constexpr std::string_view kAllCached = "everything that can be cached is";
inline constexpr std::string_view kNotShown = "the model is not shown it";
inline constexpr std::string_view kCacheOptionsTold = "an object, of which nothing changes what is cached";
inline constexpr std::string_view kDimensionsText =
    "values of each vector: its first ones, normalised again; vectors of a model that was not trained for it lose "
    "meaning";
inline constexpr std::string_view kUnenforcedTold =
    "allow: what a schema says and cannot be enforced is left out and listed in the header x-tessera-unenforced; "
    "reject, "
    "the default: it is refused by name";
inline constexpr std::string_view kTextAlone = "this version reads and makes text alone";

// Of every request that generates text.
std::span<const FieldRow> generation_rows();
// Numbers of sampling, under all of their names: of every request that generates, in every API.
std::span<const FieldRow> sampling_rows();
// Of a text that is to be continued.
std::span<const FieldRow> prompt_rows();
// Of a request for vectors of texts.
std::span<const FieldRow> vector_rows();
// These rows where no text is generated: none of them has an effect.
std::vector<FieldRow> without_effect(std::initializer_list<std::span<const FieldRow>> parts);

const FieldTable& prompt_object_table();
const FieldTable& stream_options_table();
const FieldTable& cache_options_table();
const FieldTable& response_format_table();
const FieldTable& json_schema_table();  // of response_format
const FieldTable& structured_outputs_table();

// All of these tables.
std::span<const FieldTable* const> generation_tables();

}  // namespace tessera::server
