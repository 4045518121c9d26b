// Text to tokens and back.
#pragma once

#include "core/text/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

// Bytes [begin, end) of a text.
struct TextRange {
    size_t begin = 0;
    size_t end = 0;
};

struct EncodeOptions {
    // BOS before and EOS after, where the vocabulary asks for them; no BOS before a text that begins with it.
    bool add_special = true;
    bool parse_special = false;  // control tokens written out in the text ("<|im_end|>") become those tokens
    // Parts of the text, in rising order, where control tokens are never parsed, nor these other tokens (in rising
    // order) that are otherwise taken whole.
    std::span<const TextRange> plain;
    std::span<const Token> not_in_plain;
    // What of the text is left when there are more tokens than these may be left out: the result is then more than
    // these, and what else it is has no meaning.
    size_t most_tokens = SIZE_MAX;
};

struct DecodeOptions {
    bool show_control = false;  // write control tokens as their text, else as nothing
    // Drop the blank that encode() put before the text, if the vocabulary is one that does so.
    bool drop_prefix_space = true;
};

// Immutable: every method may be called from any thread at the same time.
class Tokenizer {
  public:
    // Throws Error: TSR_CORRUPT_DATA for a vocabulary that contradicts itself, TSR_UNSUPPORTED for a model or
    // pre-tokenizer that is not known.
    explicit Tokenizer(VocabularyData data);
    ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;

    size_t size() const noexcept;
    // What of the vocabulary is wrong but not needed, and what was taken where it says nothing: a line each.
    const std::vector<std::string>& notes() const noexcept;

    // `text` may hold any bytes; what is not UTF-8 is spelt in bytes, or becomes U+FFFD where the vocabulary lacks
    // them. Bytes that no token spells become the unknown token; without one they are left out, which notes() says.
    // Time is about n log n.
    std::vector<Token> encode(std::string_view text, const EncodeOptions& options = {}) const;

    // No text of so many bytes has fewer tokens.
    size_t fewest_tokens(size_t bytes) const noexcept;

    // The text of `tokens` as UTF-8; what is not becomes U+FFFD. Throws Error(TSR_INVALID_ARGUMENT) for a token outside
    // the vocabulary.
    std::string decode(std::span<const Token> tokens, const DecodeOptions& options = {}) const;

    // The bytes of a token in a text, which may be part of a character; of a control token its own text. Lives
    // as long as the tokenizer. Throws Error(TSR_INVALID_ARGUMENT) outside the vocabulary, as do the two after it.
    std::string_view bytes(Token token) const;
    // As the file has it.
    std::string_view spelling(Token token) const;
    TokenType type(Token token) const;

    // By the file's spelling; kNoToken if there is none.
    Token find(std::string_view spelling) const;

    Token bos() const noexcept;
    Token eos() const noexcept;
    Token unk() const noexcept;
    Token pad() const noexcept;
    bool adds_bos() const noexcept;
    bool adds_eos() const noexcept;
    // Whether a blank is put before a text ("llama" vocabularies).
    bool adds_space_prefix() const noexcept;

    // Whether this token ends an answer: EOS, end of turn and of message, by id and by the names that
    // known models use.
    bool ends_generation(Token token) const noexcept;
    // All such, in rising order.
    const std::vector<Token>& generation_ends() const noexcept;

  private:
    struct State;
    std::unique_ptr<const State> state_;
};

}  // namespace tessera::text
