// Which parts of a grammar llguidance's lexer may match as a whole.
#pragma once

#include "apps/structure/gbnf_automaton.hpp"
#include "apps/structure/gbnf_parser.hpp"

#include <unordered_set>
#include <vector>

namespace tessera::structure {

// kCharacters: no part of more than one character, for tests.
enum class GbnfLexer { kTerminals, kCharacters };

// llguidance's work is by terminals: where each character is one, a mask takes a hundred times as long. But it takes
// the longest text that a terminal matches, whatever follows. So a part is a terminal where it is certain that no text
// of the grammar is refused for that: wherever a terminal may end and another one that may stand at its place goes on
// with a character, what follows the first may not begin with that character. Then each text is divided in the one way
// in which the lexer divides it. Where this is not so the longer of the two is divided into its parts, down to
// characters.
//
// A grammar whose rules do not lead back to themselves is one terminal.
class GbnfTerminals {
  public:
    GbnfTerminals(Gbnf parsed, GbnfLexer lexer);
    GbnfTerminals(const GbnfTerminals&) = delete;
    GbnfTerminals& operator=(const GbnfTerminals&) = delete;

    // As it was parsed; parts of a sequence that a terminal could match are a sequence of their own.
    const Gbnf& grammar() const noexcept { return grammar_; }
    // The whole grammar is.
    bool is_one_terminal() const { return !characters_ && regular_[grammar_.root]; }
    // Of a node of grammar() that is not within a terminal.
    bool is_terminal(const GbnfNode& node) const;
    // Whether the terminal matches the empty text: then it is optional, and its terminal matches the others.
    bool may_be_empty(const GbnfNode& terminal) const;

  private:
    void mark_regular(GbnfNode& node) const;
    void put_together(GbnfNode& node) const;

    Gbnf grammar_;
    std::vector<bool> regular_;       // by rule
    std::vector<bool> may_be_empty_;  // by rule that is regular
    std::unordered_set<const GbnfNode*> divided_;
    bool characters_ = false;  // each is a terminal, and nothing else
};

}  // namespace tessera::structure
