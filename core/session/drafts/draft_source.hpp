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
    // Of a source that reads texts: tokens that it may read of this one, and those that it has read.
    uint32_t may_read = UINT32_MAX;
    uint32_t read = 0;
};

// Tokens of a text that a source has to read before it can go on with a draft. All 0: none.
struct DraftUnread {
    uint32_t whole = 0;  // all that it has not read
    uint32_t rest = 0;   // those behind the last that it has read, as many where it has left out none before
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

    // What a call of propose() with this wish finds to be read. It reads the whole where DraftWish::may_read allows
    // that; else the rest; else its first tokens and its last, and leaves out what is between. Where that takes more
    // than a call, there is no draft before the last.
    virtual DraftUnread unread(const DraftWish&) const { return {}; }

    // Whether it is to be told of the states of all rows, which the engine has to give then.
    virtual bool wants_states() const noexcept { return false; }
    // Of a step's requests, each once; those that are not known are new. Throws Error.
    virtual void computed(std::span<const DraftStates>) {}
};

}  // namespace tessera::session
