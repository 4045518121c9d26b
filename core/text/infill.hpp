// Prompts to fill a gap in a text ("fill in the middle"): "Efficient Training of Language Models to Fill in the Middle"
// (arXiv 2207.14255), in the order prefix, suffix, middle; with other files as StarCoder 2 and Qwen2.5-Coder have them.
#pragma once

#include "core/gguf/metadata.hpp"
#include "core/text/tokenizer.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

// kNoToken: the vocabulary has none.
struct InfillTokens {
    Token prefix = kNoToken, suffix = kNoToken, middle = kNoToken;  // before the two parts of a text and what fills it
    Token repository = kNoToken, file = kNoToken;                   // before their names

    // "the beginning", "the end" or "the middle", which cannot be framed; empty: a gap can be filled.
    std::string_view missing() const noexcept;
};

// By the keys tokenizer.ggml.fim_..._token_id and prefix_token_id, ..., else by the names that known models use.
InfillTokens find_infill_tokens(const gguf::Metadata& metadata, const Tokenizer& tokenizer);

struct OtherFile {
    std::string name, text;
};

struct Gap {
    std::string before, behind;
    std::vector<OtherFile> others = {};  // of the same repository, as context
};

// With BOS where the vocabulary asks for it; all of the texts is text. `tokens` has prefix, suffix and middle. `most`:
// at which reading may stop.
std::vector<Token> infill_tokens(const Gap& gap, const InfillTokens& tokens, const Tokenizer& tokenizer, size_t most);

}  // namespace tessera::text
