// Bodies of requests for text, read and written as tokens, without anything of the engine.
#pragma once

#include "apps/tessera-server/model_text.hpp"
#include "apps/tessera-server/request_fields.hpp"
#include "core/text/reply_parser.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// How the answer to a chat is read.
struct ChatForm {
    text::ReplySyntax syntax;
    std::optional<uint32_t> probabilities;  // each token with so many others
};

struct ChatRequest {
    AnswerForm form;
    session::Request request;
    ChatForm chat;
};

struct CompletionRequest {
    AnswerForm form;
    session::Request request;
    std::string echo;  // stands before the answer
};

struct PlainRequest {
    AnswerForm form;
    session::Request request;
    std::string prompt;  // as text; of an answer in one piece alone
    std::vector<std::string> stops;
    bool tokens = false;  // the answer has its tokens, too
};

// Callbacks, client and space of the session's requests are the caller's. All throw ApiError, and Error for what the
// template or the sampler refuses.
ChatRequest read_chat(std::string_view body, const ModelText& model);
CompletionRequest read_completion(std::string_view body, const ModelText& model);
PlainRequest read_plain_completion(std::string_view body, const ModelText& model);

}  // namespace tessera::server
