// Fields that requests for chats and completions have in common.
#pragma once

#include "apps/tessera-server/json_fields.hpp"
#include "apps/tessera-server/model_text.hpp"
#include "core/session/generation.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// How an answer is to be sent.
struct AnswerForm {
    bool stream = false;
    bool usage_in_stream = false;  // a last part with the usage
    bool progress = false;         // of the prompt, in a stream
    uint32_t choices = 1;
};

AnswerForm read_form(const Fields& fields);

// The texts that end an answer, none of them empty.
std::vector<std::string> read_stops(const Fields& fields);

// Sampling, limits and stop strings; the prompt is the caller's. `default_tokens`: of the answer where the request says
// nothing; nothing: until the context is full. Throws ApiError and what check_sampling_parameters throws.
session::Request read_request(const Fields& fields, const ModelText& model,
                              std::optional<uint32_t> default_tokens = {});

// Throws ApiError(400, "context_length_exceeded") for a text of which the context would not hold the tokens even if all
// were as long as can be: before it is tokenised, which takes seconds and much memory for what is that long.
void check_length(std::string_view text, const ModelText& model);

// Numbers of tokens in the list of a field. Throws ApiError(400) for one that is outside the vocabulary.
std::vector<text::Token> read_tokens(const Fields& fields, std::string_view name, const boost::json::array& list,
                                     const text::Tokenizer& tokenizer);

// Throws ApiError(400) for a form other than text.
void read_response_format(const Fields& fields);

}  // namespace tessera::server
