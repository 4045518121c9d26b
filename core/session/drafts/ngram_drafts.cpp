#include "core/session/drafts/ngram_drafts.hpp"

namespace tessera::session {

static_assert(kMatchKinds == 5);

uint8_t NgramDrafts::kind_of(uint32_t matching) noexcept {
    return matching < 2 ? 0 : matching < 3 ? 1 : matching < 5 ? 2 : matching < 9 ? 3 : 4;
}

void NgramDrafts::propose(std::span<DraftWish> wishes) {
    for (DraftWish& wish : wishes) {
        Text& text = texts_[wish.id];
        // Where the answer goes on as the earlier text did, but for single tokens.
        std::optional<size_t> expected;
        if (text.match) expected = *text.match + (wish.tokens.size() - text.tokens);
        const auto match = text.index.find(wish.tokens, expected);
        text.tokens = wish.tokens.size();
        text.match = match ? std::optional(match->next) : expected;
        if (!match || !wish.draft.empty()) continue;
        for (uint32_t i = 0; i < wish.most; ++i) {
            // Behind its end the text goes on with the draft itself: a repetition.
            const size_t at = match->next + i, size = wish.tokens.size();
            const Token token = at < size ? wish.tokens[at] : wish.draft[at - size].token;
            wish.draft.push_back({token, kind_of(match->length + i)});
        }
    }
}

}  // namespace tessera::session
