// Where drafts come from: tokens that an answer may go on with, found at less cost than a step of its model.
#pragma once

#include "core/session/generation.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::session {

// Kinds of tokens in drafts. Those of one kind are accepted about equally often, so that what became of some tells of
// others. The first are those of texts that occurred before, by the tokens that match; the others those of models, by
// the probability that the model gives them.
inline constexpr uint8_t kMatchKinds = 5, kModelKinds = 6, kDraftKinds = kMatchKinds + kModelKinds;

struct DraftToken {
    Token token;
    uint8_t kind;  // below kDraftKinds
};

// What is asked for one request. `draft` is the answer's continuation as far as it is foreseen, at most `most` tokens;
// sources append to it and leave what others have found.
struct DraftWish {
    RequestId id;
    std::span<const Token> tokens;  // prompt and answer so far
    uint32_t most;
    std::vector<DraftToken> draft;
};

// What a step has computed of one request.
struct DraftStates {
    RequestId id;
    uint32_t position;              // of the first row
    std::span<const Token> rows;    // their tokens; those of a draft are among them, whether they are accepted or not
    std::span<const float> states;  // Engine::states(), of each row
    std::span<const Token> text;    // prompt and answer so far, without what the step's logits give
};

// One thread at a time. What a source costs in time is measured by whoever asks it.
class DraftSource {
  public:
    virtual ~DraftSource() = default;
    // For messages: "the draft model".
    virtual std::string_view name() const noexcept { return "a source"; }

    // For requests that generate; each is in at most one of the wishes. A request's tokens are those of the last call
    // and others behind them, but those that are asked for are not always the next ones. Throws Error.
    virtual void propose(std::span<DraftWish> wishes) = 0;

    // The request has ended. Ids that are not known are ignored.
    virtual void forget(RequestId id) noexcept = 0;

    // Whether a call costs so much that it is to be asked for no more tokens than are used.
    virtual bool is_costly() const noexcept { return false; }

    // Whether it gives no drafts of a text before some calls have read it.
    virtual bool reads_texts() const noexcept { return false; }

    // Whether it is to be told of the states of all rows, which the engine has to give then.
    virtual bool wants_states() const noexcept { return false; }
    // Of a step's requests, each once; those that are not known are new. Throws Error.
    virtual void computed(std::span<const DraftStates>) {}
};

}  // namespace tessera::session
