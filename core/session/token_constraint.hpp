// What limits the tokens of an answer, decided anew for each: grammars and schemas.
#pragma once

#include <cstdint>
#include <span>

namespace tessera::session {

// Tokens that are allowed: token t is bit t % 32 of element t / 32. Tokens past the last element are not. Empty: all
// are.
using TokenMask = std::span<const uint32_t>;

// Of one answer. One thread at a time, though not always the same; several answers may be asked at once. What it throws
// as Error ends its answer as failed.
class TokenConstraint {
  public:
    virtual ~TokenConstraint() = default;

    // What may come next, tokens that end the text among it; valid until the next call of either. At least one token is
    // allowed, or the answer fails.
    virtual TokenMask allowed() = 0;

    // The token that was sampled, which was allowed.
    virtual void accept(int32_t token) = 0;
};

}  // namespace tessera::session
