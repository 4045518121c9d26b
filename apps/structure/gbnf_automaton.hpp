// The texts of an expression that leads to no rule that leads back to itself.
#pragma once

#include "apps/structure/gbnf_parser.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::structure {

// V. M. Glushkov's automaton: a state for each character of the expression and one for the beginning, the first. It has
// no steps without a character.
struct GbnfAutomaton {
    std::vector<CodePoints> reads;            // by state: the characters that lead to it
    std::vector<std::vector<uint32_t>> next;  // by state: those that may follow
    std::vector<bool> ends;                   // by state: whether a text ends there; of the first: the empty one
};

// What follows is taken from `work`, by what it adds to memory and compares; nothing: it does not suffice.

// Nothing, too: it would be larger than is worth it. References must lead to regular rules.
std::optional<GbnfAutomaton> automaton_of(const Gbnf& grammar, const GbnfNode& node, uint64_t& work);

// What two automata read in common, the empty text aside.
struct GbnfOverlap {
    bool share = false;        // a text
    Bytes beyond_a, beyond_b;  // that the other one may read behind a text of the one
};

std::optional<GbnfOverlap> overlap(const GbnfAutomaton& a, const GbnfAutomaton& b, uint64_t& work);

}  // namespace tessera::structure
