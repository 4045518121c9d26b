// The vocabulary of a GGUF file, from its keys tokenizer.ggml.*.
#pragma once

#include "core/gguf/metadata.hpp"
#include "core/text/vocabulary.hpp"

namespace tessera::text {

// Copies what a Tokenizer needs; `metadata` may go afterwards. Throws Error, naming file and key, if a key is missing
// (TSR_NOT_FOUND) or of the wrong kind (TSR_CORRUPT_DATA). Ids of tokens that no text needs may be nonsense, which is a
// note. Whether the values fit together is for Tokenizer to say.
VocabularyData vocabulary_from_gguf(const gguf::Metadata& metadata);

}  // namespace tessera::text
