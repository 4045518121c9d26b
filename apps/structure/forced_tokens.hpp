// Tokens of bytes that an answer must go on with.
#pragma once

#include "core/text/tokenizer.hpp"

#include <string_view>
#include <vector>

namespace tessera::structure {

// Immutable; any thread.
class ForcedTokens {
  public:
    // `tokenizer` outlives it.
    explicit ForcedTokens(const text::Tokenizer& tokenizer);

    // The tokens that the bytes begin with, as the vocabulary spells them, but those that may be spelt otherwise
    // together with what follows the bytes: a longer token begins there.
    std::vector<text::Token> of(std::string_view bytes) const;

  private:
    const text::Tokenizer& tokenizer_;
    std::vector<std::string_view> sorted_;  // bytes of all tokens
};

}  // namespace tessera::structure
