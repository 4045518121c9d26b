// SentencePiece's BPE: of all neighbours whose joint text is a piece, those with the highest score are joined first
// (the leftmost of equals). What is left outside the vocabulary is spelt in bytes. Kudo and Richardson,
// arXiv:1808.06226.
#pragma once

#include "core/text/vocabulary.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

class SentencePieceModel {
  public:
    // `data` must have model "llama" and outlive this object. Throws Error(TSR_CORRUPT_DATA) for scores that are
    // missing or not numbers.
    explicit SentencePieceModel(const VocabularyData& data);

    // Appends the tokens of `text` to `out`. Blanks become U+2581, and with `prefix` one is put before the text; with
    // `one_blank` a run of them is one, and none begins or ends it. Bytes
    // that are not UTF-8 are spelt in bytes. About n log n steps for n bytes. Throws Error(TSR_UNSUPPORTED) for a
    // character that is not in a vocabulary with neither bytes nor an unknown token. Any thread.
    void encode(std::string_view text, bool prefix, bool one_blank, std::vector<Token>& out) const;

    // The token "<0xNN>", or kNoToken.
    Token byte_token(uint8_t byte) const noexcept { return byte_tokens_[byte]; }

  private:
    struct Symbol;
    struct Candidate;
    struct Work;

    void encode_word(std::string_view word, Work& work, std::vector<Token>& out) const;
    void emit(std::string_view piece, const boost::unordered_flat_map<std::string_view, size_t>& unused_splits,
              std::vector<Token>& out) const;

    const VocabularyData& data_;
    boost::unordered_flat_map<std::string_view, Token> pieces_;
    std::array<Token, 256> byte_tokens_;
    size_t longest_ = 0;
    bool blanks_begin_words_ = true;  // no piece has U+2581 behind another character
};

// The byte of "<0xNN>", or -1.
int parse_byte_token(std::string_view spelling) noexcept;

}  // namespace tessera::text
