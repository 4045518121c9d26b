// One request while it is being worked on.
#pragma once

#include "core/base/error.hpp"
#include "core/base/seconds.hpp"
#include "core/session/answer_text.hpp"
#include "core/session/drafts/draft_control.hpp"
#include "core/session/generation.hpp"
#include "core/session/kept/page_keeper.hpp"
#include "core/session/prefix_tree.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::session {

using Clock = std::chrono::steady_clock;

inline Clock::duration duration_of(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// What became the next token, sampled or forced.
struct ChosenToken {
    Token token;
    TokenProbabilities probabilities;
};

struct Task {
    Request request;
    Answer answer;
    std::vector<Token> tokens;  // prompt and answer; all but the last are in the cache when the next is sampled
    uint32_t prompt_size;
    uint32_t limit;  // tokens in the cache

    // While it has a sequence; the tree's pages up to `tail` are the sequence's own, so that a pin never holds a page
    // beside another of the same tokens.
    std::optional<SequenceId> sequence;
    PrefixTree::Node* tail = nullptr;  // pinned

    uint32_t under_way =
        0;  // of the sequence's tokens, those that steps under way compute, and drafts not verified yet

    bool suspended = false;  // takes no part in steps until it is resumed
    bool started = false;    // its first sequence has been made
    bool done = false;
    uint64_t prompt_step = 0;  // the last that computed rows of its prompt, counted from 1
    Clock::time_point arrived = Clock::now(), admitted;

    // Before its sequence is made: pages that are being read; until when, which counts from the first that was begun;
    // and that no others will be.
    std::optional<KeptReading> reading;
    std::optional<Clock::time_point> kept_until;
    bool kept_over = false;

    std::unique_ptr<TokenConstraint> constraint;  // made for the first step
    bool constraint_failed = false;               // it threw `error`
    // Those of the next token while the constraint is late; the task takes no part in steps then.
    std::vector<float> held_logits;
    uint32_t forced = 0;  // tokens behind the last that is cached which the constraint forced, but one

    std::vector<double> pooled;  // sum of the hidden states so far, of Request::pooling

    uint32_t scored = 1;  // tokens of the prompt whose probabilities are known; the first has none

    DraftAcceptance acceptance{DraftControl::kMemory};
    bool drafts_begun = false;         // they have been asked for, or could have been
    std::optional<bool> gives_states;  // whether a source is told of those that the model has; none: not decided yet

    // Of the current step.
    std::vector<DraftToken> foreseen;  // behind `tokens`, by a source of drafts
    std::vector<Token> draft;          // of these, those that the step computes
    std::vector<Token> rows;           // those that the step computes, where there is a draft
    Clock::time_point waits_until;     // for a constraint that is late
    std::vector<ChosenToken> chosen;  // behind `tokens`, as they come: all but the last are of the draft, or all forced
    uint32_t verified = 0;            // of the draft, those that were chosen
    TokenProbabilities probabilities;  // of the prompt's next token
    std::optional<Error> error;

    AnswerText shown;

    // Rows of the prompt are computed one by one for their probabilities.
    bool scores() const { return request.prompt_probabilities && scored < prompt_size; }

    Task(Request given, RequestId id, const text::Tokenizer& tokenizer, uint32_t most)
        : request(std::move(given)),
          tokens(std::move(request.prompt)),
          prompt_size(static_cast<uint32_t>(tokens.size())),
          limit(request.context == 0 ? most : std::min(request.context, most)),
          shown(tokenizer, request, answer, arrived) {
        answer.id = id;
        answer.prompt_tokens = prompt_size;
    }
};

// Tokens that the task has in the cache, or will have when the steps under way have ended.
inline uint32_t cached(const Task& task, const PagedCache& cache) {
    return task.sequence ? cache.length(*task.sequence) : 0;
}
// Those of steps that have ended.
inline uint32_t computed(const Task& task, const PagedCache& cache) {
    return cached(task, cache) - task.under_way;
}

}  // namespace tessera::session
