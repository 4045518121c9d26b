#include "apps/structure/forced_tokens.hpp"

#include <algorithm>

namespace tessera::structure {

ForcedTokens::ForcedTokens(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {
    sorted_.reserve(tokenizer.size());
    for (size_t token = 0; token < tokenizer.size(); ++token)
        sorted_.push_back(tokenizer.bytes(static_cast<text::Token>(token)));
    std::ranges::sort(sorted_);
}

std::vector<text::Token> ForcedTokens::of(std::string_view bytes) const {
    std::vector<text::Token> tokens;
    std::string_view left = bytes;
    for (const text::Token token : tokenizer_.encode(bytes, {.add_special = false})) {
        const std::string_view spelt = tokenizer_.bytes(token);
        // A blank that the vocabulary puts before a text, or a character that it lacks.
        if (spelt.empty() || !left.starts_with(spelt)) break;
        const auto longer = std::ranges::upper_bound(sorted_, left);
        if (longer != sorted_.end() && longer->starts_with(left)) break;
        tokens.push_back(token);
        left.remove_prefix(spelt.size());
    }
    return tokens;
}

}  // namespace tessera::structure
