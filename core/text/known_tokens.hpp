// Tokens whose spelling tells what they are, whatever the keys and types of a file say.
#pragma once

#include "core/text/vocabulary.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <string_view>
#include <vector>

namespace tessera::text {

// The first token of every spelling.
using TokensBySpelling = boost::unordered_flat_map<std::string_view, Token>;

// Makes known ends and marks of infilling control tokens, where the file has them as parts of words, with a note, or
// ends as user-defined tokens, which texts could hold. Returns what ends an answer, in rising order: such tokens, and
// those that the ids of `data` name. The rules are those of ik_llama.cpp and llama.cpp.
std::vector<Token> settle_known_tokens(VocabularyData& data, const TokensBySpelling& tokens);

}  // namespace tessera::text
