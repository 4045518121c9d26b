// Log probabilities in the forms of the OpenAI API.
#pragma once

#include "core/session/generation.hpp"
#include "core/text/tokenizer.hpp"

#include <string>

namespace tessera::server {

// {"token":...,"logprob":...,"bytes":[...],"top_logprobs":[...]} of a chat.
void append_chat_probabilities(std::string& out, const session::TokenProbabilities& token,
                               const text::Tokenizer& tokenizer);

}  // namespace tessera::server
