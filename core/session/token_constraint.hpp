// What limits the tokens of an answer, decided anew for each: grammars and schemas.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

namespace tessera::session {

// Tokens that are allowed: token t is bit t % 32 of element t / 32. Tokens past the last element are not. Empty: all
// are.
using TokenMask = std::span<const uint32_t>;

// Of one answer. One thread at a time, though not always the same; several answers may be asked at once. What it throws
// as Error ends its answer as failed.
//
// What may come next may be found by others while the engine computes the step of what was accepted: an answer whose
// constraint is late takes no part in steps until it is known.
class TokenConstraint {
  public:
    virtual ~TokenConstraint() = default;

    // Waits, until then at most, for what may come next. False: it is not known yet.
    virtual bool wait(std::chrono::steady_clock::time_point /*until*/) { return true; }

    // The two below: after wait() has returned true; valid until the next call of accept().

    // Tokens that come next, as nothing else is possible: they are taken without sampling. Empty: allowed() decides.
    virtual std::span<const int32_t> forced() { return {}; }

    // What may come next, tokens that end the text among it. At least one token is allowed, or the answer fails.
    virtual TokenMask allowed() = 0;

    // The token that was sampled, which was allowed, or the first of those that are forced.
    virtual void accept(std::span<const int32_t> tokens) = 0;
};

}  // namespace tessera::session
