// Grammars that clients write in Lark, for the inputs of custom tools.
//
// Rules and terminals with strings, "a".."z", /regular expressions/, groups, [optional parts], ? * + ~N ~N..M, aliases,
// %ignore, and %import of Lark's common terminals. The text of a grammar is what its rules derive, character by
// character: priorities and the order in which a lexer tries terminals change nothing.
#pragma once

#include "apps/structure/gbnf_parser.hpp"

#include <string_view>

namespace tessera::structure {

// Returns the grammar with `start` as its root. Throws Error(TSR_INVALID_ARGUMENT) with the line of what is invalid or
// not supported: templates, %declare, %override, %extend, look-around, back references.
Gbnf parse_lark(std::string_view text);

// Changes the grammar so that its texts are written as within a JSON string: a line break as \n, a quote as \".
// Characters that JSON writes by number only are left out.
void write_in_json(Gbnf& grammar);

}  // namespace tessera::structure
