// Grammars as llama.cpp writes them (GBNF) in llguidance's Lark.
//
// Rules "name ::= ...", of which `root` is the whole; "texts", [classes] and . with the escapes \n \r \t \\ \" \[ \]
// \xNN \uNNNN \UNNNNNNNN; groups, |, and * + ? {m} {m,} {m,n}; <name> and <[number]> for tokens; comments with #. As
// llama.cpp, but for what is refused by name: a token that is not one (!<...>), and one that the vocabulary lacks.
#pragma once

#include "apps/structure/gbnf_parser.hpp"
#include "apps/structure/gbnf_terminals.hpp"
#include "core/text/tokenizer.hpp"

#include <string>
#include <string_view>

namespace tessera::structure {

// Rules of Lark, of which `root_name` is the whole. Throws Error(TSR_INVALID_ARGUMENT) with the line of what is wrong.
std::string translate_gbnf(std::string_view grammar, std::string_view root_name, const text::Tokenizer& tokenizer,
                           GbnfLexer lexer = GbnfLexer::kTerminals);

// The same of a grammar that has been read. `prefix`: small letters and digits, with which names of rules begin.
std::string write_gbnf(Gbnf grammar, std::string_view root_name, const text::Tokenizer& tokenizer,
                       std::string_view prefix);

}  // namespace tessera::structure
