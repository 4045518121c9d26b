// Requests for generation and their results.
#pragma once

#include "core/session/engine.hpp"
#include "core/session/sampler.hpp"
#include "core/session/sampling_stop_strings.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::session {

using RequestId = uint64_t;

enum class FinishReason : uint8_t {
    kEndOfText,    // the model said so
    kStopString,   // one of the request's
    kLength,       // max_new_tokens
    kContextFull,  // the sequence holds as many tokens as it may
    kCancelled,
};

// "end of text", "stop string", "length", "context full", "cancelled".
std::string_view reason_name(FinishReason reason) noexcept;

struct Answer {
    RequestId id = 0;
    FinishReason reason = FinishReason::kCancelled;
    int stop_string = -1;       // which of the request's was found
    std::vector<Token> tokens;  // prompt and answer, without the token that ended it
    uint32_t prompt_tokens = 0;
    uint32_t reused_tokens = 0;      // of the prompt, found in the cache
    uint32_t new_tokens = 0;         // sampled, with the one that ended it
    double first_token_seconds = 0;  // from add() to the first sampled token
    double seconds = 0;              // from add() to the end
};

// Made before the engine is loaded, if nothing large may be allocated afterwards: the sampler holds buffers as large as
// the vocabulary, and `prompt` grows by the answer (reserve it).
struct Request {
    std::vector<Token> prompt;  // at least one token
    Sampler sampler;            // without accepted tokens
    StopStrings stop;
    uint32_t max_new_tokens = std::numeric_limits<uint32_t>::max();
    uint32_t context = 0;       // tokens that it may hold in the cache; 0: as many as the engine's
    bool keep = false;          // its sequence stays in the cache afterwards, for prompts that begin with it
    bool show_control = false;  // control tokens are part of the text
    std::function<void(std::string_view text)> on_text;   // whole UTF-8 characters; called inside Generator::step
    std::function<void(const Answer& answer)> on_finish;  // likewise, once
};

// Time that steps took: a step with rows of prompts counts as a prompt's.
struct GenerationTimings {
    uint64_t prompt_tokens = 0;  // computed, not reused
    double prompt_seconds = 0;
    uint64_t generated_tokens = 0;  // in steps of generation alone
    double generation_seconds = 0;
    uint64_t reused_tokens = 0;
};

}  // namespace tessera::session
