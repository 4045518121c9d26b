// Fields that requests for chats and completions have in common.
#pragma once

#include "apps/tessera-server/json_fields.hpp"
#include "apps/tessera-server/model_text.hpp"
#include "core/session/generation.hpp"

#include <cstdint>
#include <span>
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

// The texts of `stop`, none of them empty.
std::vector<std::string> read_stops(const Fields& fields);

// Sampling, limits and stop strings; the prompt is the caller's. Throws ApiError and what check_sampling_parameters
// throws.
session::Request read_request(const Fields& fields, const ModelText& model);

// Numbers of tokens in the list of a field. Throws ApiError(400) for one that is outside the vocabulary.
std::vector<text::Token> read_tokens(const Fields& fields, std::string_view name, const boost::json::array& list,
                                     const text::Tokenizer& tokenizer);

// A field that is known to other servers and not to this one.
struct Refused {
    std::string_view name;
    std::string_view reason;
};
// Throws ApiError(501) for the first that is given with a value other than null, false, 0, "" and an empty list.
void refuse_fields(const Fields& fields, std::span<const Refused> refused);
// Those of all requests for text.
void refuse_common_fields(const Fields& fields);

}  // namespace tessera::server
