// Which rules of a grammar llguidance's lexer may match as a whole.
#pragma once

#include "apps/structure/gbnf_parser.hpp"

#include <vector>

namespace tessera::structure {

// By rule. llguidance takes the longest text that a terminal matches, whatever follows, and its work is by terminals:
// so rules are terminals, but where that could refuse a text that the grammar has. A grammar whose rules do not lead
// back to themselves is one terminal.
std::vector<bool> terminal_rules(const Gbnf& grammar);

}  // namespace tessera::structure
