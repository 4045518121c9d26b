// Requests for generation and their results.
#pragma once

#include "core/session/engine.hpp"
#include "core/session/sampler.hpp"
#include "core/session/sampling_stop_strings.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::session {

using RequestId = uint64_t;

enum class FinishReason : uint8_t {
    kEndOfText,    // the model said so
    kStopString,   // one of the request's
    kLength,       // max_new_tokens
    kContextFull,  // the sequence holds as many tokens as it may
    kTimeUp,       // Request::line_seconds
    kEmbedded,     // Request::pooling: the prompt's hidden states are Answer::embedding
    kCancelled,
    kFailed,  // Answer::error says why
};

// "end of text", "stop string", "length", "context full", "time up", "embedded", "cancelled", "failed".
std::string_view reason_name(FinishReason reason) noexcept;

// What becomes of the hidden states of a prompt's tokens: what the last layer gives behind the final norm.
enum class Pooling : uint8_t { kMean, kLast };

// Where a prompt stopped being like what was cached.
struct PrefixDifference {
    uint32_t position;  // in tokens
    Token cached, given;
};

struct Answer {
    RequestId id = 0;
    FinishReason reason = FinishReason::kCancelled;
    int stop_string = -1;       // which of the request's was found
    std::vector<Token> tokens;  // prompt and answer, without the token that ended it
    uint32_t prompt_tokens = 0;
    uint32_t reused_tokens = 0;                  // of the prompt, found in the cache
    uint32_t recomputed_tokens = 0;              // since its pages had to be given to others in between
    uint32_t new_tokens = 0;                     // sampled, with the one that ended it
    uint32_t drafted_tokens = 0;                 // that steps verified
    uint32_t accepted_tokens = 0;                // of these, those that were chosen
    bool has_new_line = false;                   // in the text that was shown
    double prompt_seconds = 0;                   // from admission to the first sampled token
    double first_token_seconds = 0;              // from add() to the first sampled token
    double seconds = 0;                          // from add() to the end, or so far
    std::vector<float> embedding;                // of kEmbedded, as long as the model's states
    std::optional<PrefixDifference> difference;  // why no more was reused; nothing: the cached text ended there
    std::string error;                           // of kFailed
    tsr_code error_code = TSR_OK;
    bool constraint_failed = false;  // the error is the constraint's
};

// A token with the model's own probabilities: before bias, penalties and temperature.
struct TokenProbabilities {
    Token token = 0;
    float log_probability = 0;
    std::vector<std::pair<Token, float>> best;  // the most likely ones with their log probabilities, best first
};

// A part of an answer's text and the token that it is of.
struct ShownToken {
    // Nothing: the text before a stop string that begins within its token, or that of bytes that never became a
    // character.
    std::optional<Token> token;
    std::string_view text;  // whole UTF-8 characters; empty where others complete the character
    const TokenProbabilities* probabilities = nullptr;  // of `token`, if the request wants them
};

// What a request says of drafts; nothing: as the generator's options have it.
struct DraftWishes {
    std::optional<uint32_t> most;   // tokens of a draft; 0: none is made
    std::optional<uint32_t> least;  // a shorter one is not verified
};

// How far a prompt has been computed.
struct PromptProgress {
    uint32_t done = 0, total = 0;  // tokens
    uint32_t reused = 0;           // of those done, found in the cache
    double seconds = 0;            // since admission
};

struct Request {
    std::vector<Token> prompt;    // at least one token
    SamplingParameters sampling;  // without effect if `sampler` is given
    StopStrings stop = StopStrings(std::span<const std::string>());
    uint32_t max_new_tokens = std::numeric_limits<uint32_t>::max();
    uint32_t context = 0;       // tokens that it may hold in the cache; 0, and at most: Engine::sequence_tokens
    bool reuse = true;          // uses what others have computed; what it computes is there for others in any case
    bool show_control = false;  // control tokens are part of the text
    bool show_end = true;       // with show_control also the token that ends the text
    std::optional<uint32_t> probabilities;  // of shown tokens, with so many of the most likely ones
    DraftWishes drafts;
    bool sampled_probabilities = false;  // those that the samplers have left, in place of the model's own
    // As `probabilities`, of the prompt's tokens but the first; takes a step for each of them. Refused
    // with `reuse`.
    std::optional<uint32_t> prompt_probabilities;
    // In place of an answer, the prompt's hidden states are pooled. kMean is refused with `reuse`, and both where the
    // engine does not give hidden states.
    std::optional<Pooling> pooling;
    // The answer ends when so much time has passed since its first token and a line is complete.
    double line_seconds = std::numeric_limits<double>::infinity();
    std::string client;           // requests of different clients share the engine fairly
    uint32_t client_running = 0;  // of the client's requests that are worked on at once; 0: any number
    std::string space;            // requests of different spaces share no cached prefixes
    uint32_t slot = 0;            // by which its text is found when it has ended (Slots)
    // Makes what limits the tokens of the answer; nothing: no limit. Called once, by the engine's thread when work on
    // the request begins: what takes long is done before, or by others until TokenConstraint::wait() says so. An Error
    // that it throws ends the request as failed when its first token is sampled.
    std::function<std::unique_ptr<TokenConstraint>()> make_constraint;
    // Called inside Generator::step, in this order for a token.
    std::function<void(std::string_view text)> on_text;  // whole UTF-8 characters
    // The same text token by token, each as soon as all of its text may be shown: no token whose text belongs to a stop
    // string is. `so_far`: without tokens and reason.
    std::function<void(const ShownToken& token, const Answer& so_far)> on_token;
    std::function<void(const TokenProbabilities& token)> on_prompt_probabilities;  // in the order of the prompt
    std::function<void(const PromptProgress& progress)> on_prompt;  // after each of the steps that compute the prompt
    std::function<void(const Answer& answer)> on_finish;            // once
    // Made by the caller if nothing large may be allocated when the request is admitted: it holds buffers as large as
    // the vocabulary.
    std::optional<Sampler> sampler;
    // Of `sampling`, in tokens; null: looked for when the request is admitted, which takes milliseconds of a step.
    std::shared_ptr<const SequenceBreakers> breakers;
};

// Time that steps took: a step with rows of prompts counts as a prompt's.
struct GenerationTimings {
    uint64_t prompt_tokens = 0;  // computed, not reused
    double prompt_seconds = 0;
    uint64_t generated_tokens = 0;  // in steps of generation alone
    double generation_seconds = 0;
    uint64_t reused_tokens = 0;
    uint64_t drafted_tokens = 0, accepted_tokens = 0;  // as of Answer
};

}  // namespace tessera::session
