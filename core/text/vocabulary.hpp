// What a tokenizer is made from, free of any file format. `vocabulary_from_gguf` fills it from a GGUF file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::text {

// Index into the vocabulary. Negative: none.
using Token = int32_t;
inline constexpr Token kNoToken = -1;

// Values as in the array tokenizer.ggml.token_type of a GGUF file.
enum class TokenType : int32_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,      // never made from plain text; never shown unless asked for
    kUserDefined = 4,  // recognised anywhere in a text
    kUnused = 5,
    kByte = 6,  // text "<0xNN>": one byte
};

struct VocabularyData {
    // "gpt2": BPE, byte-level but for some pre-tokenizers; "llama": SentencePiece BPE by scores; "gemma4": BPE over
    // characters with U+2581 for blanks.
    std::string model;
    std::string pre;                  // name of the pre-tokenizer; read for "gpt2" only
    std::vector<std::string> tokens;  // texts in the spelling of the model: byte-level letters, or U+2581 for a blank
    std::vector<float> scores;        // as many as tokens ("llama"), or empty
    std::vector<TokenType> types;     // as many as tokens, or empty: all normal
    std::vector<std::string> merges;  // "gpt2": "left right", best first
    Token bos = kNoToken;
    Token eos = kNoToken;
    Token eot = kNoToken;  // end of turn
    Token eom = kNoToken;  // end of message
    Token unk = kNoToken;
    Token pad = kNoToken;
    std::vector<Token> other_ends;         // padding, names of files and repositories: what infilled text ends with
    std::optional<bool> add_bos;           // absent: what the model kind does
    std::optional<bool> add_eos;           // absent: no
    std::optional<bool> add_space_prefix;  // absent: yes for "llama"
    bool remove_extra_blanks = false;      // "llama": runs of blanks are one, none begins or ends a text
    bool strips_after_special = false;     // blanks behind special tokens, but those that begin or end, go with them
    std::vector<std::string> notes;        // for people: what was taken where the source says nothing or nonsense
};

}  // namespace tessera::text
