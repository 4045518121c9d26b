// The recorded answers of public tokenizers (testing/goldens/record_tokenizer_goldens) and what tests compare them
// with.
#pragma once

#include "core/text/tokenizer.hpp"

#include <boost/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::text {

// A file of tests/text/data.
boost::json::value golden(const std::string& file);

// texts.json: what all recordings are made of.
const std::vector<std::string>& golden_texts();

// small_bpe.json as a vocabulary for the given pre-tokenizer.
VocabularyData small_bpe(const std::string& pre);
// small_spm.json.
VocabularyData small_spm();
// small_gemma.json.
VocabularyData small_gemma();

std::vector<Token> to_tokens(const boost::json::value& list);

// The vocabulary of a GGUF file.
VocabularyData read_vocabulary(const std::filesystem::path& path);

// `recorded` is a list of token lists, one a golden text, or {"texts": [indices], "ids": [lists]}. Every text must give
// exactly those tokens; at least `least` texts must have been compared.
void expect_recorded_tokens(const Tokenizer& tokenizer, const boost::json::value& recorded, size_t least);

// Every golden text survives encoding and decoding, byte for byte; or its Normalization Form C does.
void expect_round_trips(const Tokenizer& tokenizer, bool nfc = false);

}  // namespace tessera::text
