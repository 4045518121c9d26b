// Bodies of requests for text, read and written as tokens, without anything of the engine.
#pragma once

#include "apps/server/conversation.hpp"
#include "apps/server/model_text.hpp"
#include "apps/server/request_fields.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// How a text is continued; vectors have an element a prompt.
struct CompletionDelivery {
    bool probabilities = false;
    // What stands before the answer: the prompt, or nothing.
    std::vector<std::string> echoes;
    // With both: the tokens of the prompt, without one that was added.
    struct EchoedTokens {
        std::vector<text::Token> tokens;
        bool after_bos = false;  // the first has a probability, too
    };
    std::vector<EchoedTokens> echoed;
};

struct CompletionRequest {
    Delivery delivery;
    std::vector<session::Request> prompts;
    CompletionDelivery completion;
};

// Callbacks, client and space of the session's requests are the caller's. All throw ApiError, and Error for what the
// template or the sampler refuses.
ChatRequest read_chat(std::string_view body, const ModelText& model);
CompletionRequest read_completion(std::string_view body, const ModelText& model);

}  // namespace tessera::server
