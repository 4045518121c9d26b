// The prompts of requests that continue a text.
#pragma once

#include "apps/server/json_fields.hpp"
#include "apps/server/model_text.hpp"
#include "apps/server/request_fields.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

struct Prompt {
    std::vector<text::Token> tokens;
    bool bos_added = false;  // the first token is not a part of what was sent
    // As it was sent, tokens by their spelling; empty where it is not wanted.
    std::string text;
};

// How the prompts of a request are read.
struct PromptField {
    bool with_text = false;  // Prompt::text
    std::string_view name = "prompt";
    bool continued = true;  // else a text is complete, with EOS where the vocabulary asks for it
    size_t most = kMaximumChoices;
};

// A text, whose control tokens are parsed as in other programs; a list of numbers of tokens and texts, which follow one
// another; or a list of such, each of them a prompt. At least one. Throws ApiError(400), for a prompt that is far
// longer than the context before all of it has been read.
std::vector<Prompt> read_prompts(const Fields& fields, const ModelText& model, const PromptField& field);

// The prompt to fill a gap. Throws ApiError(501) for a vocabulary without the tokens that frame one, and what
// read_prompts() throws.
std::vector<text::Token> infill_prompt(const text::Gap& gap, const ModelText& model);

// Control tokens are a part of the text: true unless skip_special_tokens says otherwise.
bool shows_control(const Fields& fields);

// `request` for each of the prompts. Throws ApiError(400) for too many answers.
std::vector<session::Request> requests_of(const session::Request& request, std::vector<Prompt> prompts,
                                          const Delivery& delivery);

}  // namespace tessera::server
