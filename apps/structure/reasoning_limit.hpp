// Reasoning that ends in time: after a number of tokens, or when somebody asks for it.
#pragma once

#include "core/session/token_constraint.hpp"
#include "core/text/reply_parser.hpp"
#include "core/text/tokenizer.hpp"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

namespace tessera::structure {

struct ReasoningLimit {
    static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

    uint32_t tokens = kNone;                       // of reasoning at most
    std::shared_ptr<const std::atomic<bool>> end;  // true: reasoning ends now; any thread may set it; null: never
};

// Returns how many tokens of reasoning an answer may have. `budget`: that was asked for; nothing, or negative: any
// number. `answer`: tokens that it may have in all. `demanded`: a form or a call has to follow the reasoning, which
// gets at least half of the answer's tokens, unless a smaller budget leaves it more, or a larger one was asked for that
// leaves some.
uint32_t reasoning_tokens(std::optional<int64_t> budget, uint64_t answer, bool demanded);

// Returns whether the vocabulary can spell the mark that ends reasoning of this syntax; without it no limit has an
// effect.
bool can_end_reasoning(const text::ReplySyntax& syntax, const text::Tokenizer& tokenizer);

// Returns a constraint for an answer of this syntax. When its reasoning has reached the limit, the tokens of the
// closing marker are forced; then the answer goes on. A character or a call that has begun is completed before.
// `inner`: what limits the answer's tokens besides; null: nothing. `tokenizer` outlives the constraint.
std::unique_ptr<session::TokenConstraint> limit_reasoning(std::unique_ptr<session::TokenConstraint> inner,
                                                          const text::ReplySyntax& syntax,
                                                          const text::Tokenizer& tokenizer, ReasoningLimit limit);

}  // namespace tessera::structure
