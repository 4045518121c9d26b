// One grammar at one place of a text.
#pragma once

#include "apps/constrain/vocabulary.hpp"
#include "apps/structure/protocol.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::constrain {

class Matcher {
  public:
    // Throws Error(TSR_INVALID_ARGUMENT) with llguidance's words for a grammar that it does not take.
    Matcher(const Llguidance& library, const Vocabulary& vocabulary, structure::GrammarKind kind,
            const std::string& text);

    // All below throw Error(TSR_INVALID_ARGUMENT) with llguidance's words where the grammar cannot go on.

    void accept(std::span<const uint32_t> tokens);

    // Fills the mask, which has a bit for each token.
    void fill_mask(std::span<uint32_t> mask);

    struct Forced {
        int32_t only_token = -1;  // nothing else is allowed
        std::string bytes;        // of every text that goes on from here, as far as that was looked for
    };
    // After fill_mask() with this mask.
    Forced find_forced(std::span<const uint32_t> mask);

  private:
    void check(bool good);

    const Llguidance& library_;
    const Vocabulary& vocabulary_;
    LlgMatcher* matcher_;  // lives as long as the process
    std::vector<uint32_t> looked_;
};

}  // namespace tessera::constrain
