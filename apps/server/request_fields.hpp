// Fields that requests for chats and completions have in common.
#pragma once

#include "apps/server/dialect.hpp"
#include "apps/server/json_fields.hpp"
#include "apps/server/model_text.hpp"
#include "core/session/generation.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

inline constexpr uint32_t kMaximumChoices = 128;  // of all prompts of a request

// How an answer is to be sent.
struct Delivery {
    bool stream = false;
    bool usage_in_stream = false;  // a last part with the usage
    bool progress = false;         // of the prompt, in a stream
    bool timings = false;          // with each part of a stream
    uint32_t choices = 1;          // of each prompt
    const Dialect* dialect = &kOpenAi;
    // Parts of schemas that the answer is not held to: "tools.NAME/properties/a/uniqueItems".
    std::vector<std::string> unenforced = {};
    // Field that asks for structured output, "response_format.json_schema.schema"; empty: none does.
    std::string structure_field = {};
};

Delivery read_delivery(const Fields& fields);

// The texts that end an answer, none of them empty.
std::vector<std::string> read_stops(const Fields& fields);

// Sampling, limits and stop strings; the prompt is the caller's. `default_tokens`: of the answer where the request says
// nothing; nothing: until the context is full. Throws ApiError and what check_sampling_parameters throws.
session::Request read_request(const Fields& fields, const ModelText& model,
                              std::optional<uint32_t> default_tokens = {});

// The fields logprobs and top_logprobs: how many of the most likely tokens each token is reported with, 0 to 20;
// nothing where no probabilities are requested. Throws ApiError(400).
std::optional<uint32_t> read_probabilities(const Fields& fields);

// Throws ApiError(400, "context_length_exceeded") for a text of so many bytes of which the context would not hold the
// tokens even if all were as long as can be: before it is tokenised, which takes seconds and much memory for what is
// that long.
void check_length(uint64_t bytes, const ModelText& model);

// Tokens at which reading a prompt may stop: of one that is a little too long a client is told how many it has.
size_t most_prompt_tokens(const ModelText& model);

// Throws ApiError(400, "context_length_exceeded") for a prompt of more than most_prompt_tokens(), of which the rest may
// not have been read.
void check_prompt_tokens(size_t tokens, const ModelText& model);

// The number of a token. Throws ApiError(400) for one that is outside the vocabulary.
text::Token read_token(const Fields& fields, std::string_view name, const boost::json::value& value,
                       const text::Tokenizer& tokenizer);

}  // namespace tessera::server
