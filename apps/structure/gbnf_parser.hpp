// GBNF as it is written: rules of nodes.
#pragma once

#include "apps/structure/code_points.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::structure {

struct GbnfNode {
    enum class Kind : uint8_t { kText, kClass, kReference, kToken, kSequence, kChoice, kRepetition };
    static constexpr uint32_t kUnbounded = UINT32_MAX;

    Kind kind = Kind::kSequence;
    std::u32string text = {};          // kText
    CodePoints ranges = {};            // kClass, without surrogates
    size_t rule = 0;                   // kReference
    std::string token = {};            // kToken: its text, "[NUMBER]" for a number
    std::vector<GbnfNode> parts = {};  // kSequence, kChoice; kRepetition: one
    uint32_t least = 0, most = 0;      // kRepetition
    bool regular = false;              // of GbnfTerminals: a regular expression could match it
};

struct GbnfRule {
    std::string name;
    GbnfNode node;
};

struct Gbnf {
    std::vector<GbnfRule> rules;
    size_t root = 0;
};

// Throws Error(TSR_INVALID_ARGUMENT) with the line and what is wrong or not offered.
Gbnf parse_gbnf(std::string_view text);

}  // namespace tessera::structure
