// Bodies of requests for text, read and written as tokens, without anything of the engine.
#pragma once

#include "apps/server/generation_settings.hpp"
#include "apps/server/model_text.hpp"
#include "apps/server/request_fields.hpp"
#include "core/text/reply_parser.hpp"

#include <boost/json/value.hpp>

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

// How a text is continued; vectors have an element a prompt.
struct CompletionForm {
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
    AnswerForm form;
    std::vector<session::Request> prompts;
    CompletionForm completion;
};

// A field of the answer that a request asks for.
struct AskedField {
    std::string path;    // "timings/predicted_n"; its name in the answer
    std::string name;    // "timings"
    std::string member;  // "predicted_n", or a path; empty: all of the field
    // JSON of what the request alone decides: a member of generation_settings, if there is one of that name.
    std::optional<std::string> known;
};

// As llama-server has it.
struct PlainForm {
    std::vector<std::string> prompts;  // JSON, by prompt; empty where the answer does not tell it
    std::vector<std::string> stops;
    bool tokens = false;  // the answer has its tokens, too
    bool probabilities = false;
    bool sampled = false;  // probabilities are those that samplers have left
    GenerationSettings settings;
    std::optional<std::vector<AskedField>> fields;  // of the answer; nothing: all
};

// The JSON of the member at a path of keys, as "a/b". Nothing if there is none.
std::optional<std::string> json_member(const boost::json::value& whole, std::string_view path);

struct PlainRequest {
    AnswerForm form;
    std::vector<session::Request> prompts;
    PlainForm plain;
};

// Callbacks, client and space of the session's requests are the caller's. All throw ApiError, and Error for what the
// template or the sampler refuses.
ChatRequest read_chat(std::string_view body, const ModelText& model);
CompletionRequest read_completion(std::string_view body, const ModelText& model);
PlainRequest read_plain_completion(std::string_view body, const ModelText& model);

}  // namespace tessera::server
