#include "apps/structure/gbnf_terminals.hpp"

#include <algorithm>

namespace tessera::structure {
namespace {

using Kind = GbnfNode::Kind;

void collect(const GbnfNode& node, std::vector<size_t>& rules, bool& tokens) {
    if (node.kind == Kind::kReference) rules.push_back(node.rule);
    tokens |= node.kind == Kind::kToken;
    for (const GbnfNode& part : node.parts) collect(part, rules, tokens);
}

// Rules that a regular expression could match: neither they nor what they refer to lead back, or have tokens.
std::vector<bool> regular_rules(const Gbnf& grammar) {
    std::vector<std::vector<size_t>> refers(grammar.rules.size());
    std::vector<bool> regular(grammar.rules.size(), false), tokens(grammar.rules.size(), false);
    for (size_t i = 0; i < grammar.rules.size(); ++i) {
        bool any = false;
        collect(grammar.rules[i].node, refers[i], any);
        tokens[i] = any;
    }
    // Those become regular that refer to such alone, until there are no more.
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < refers.size(); ++i) {
            if (regular[i] || tokens[i] || !std::ranges::all_of(refers[i], [&](size_t rule) { return regular[rule]; }))
                continue;
            regular[i] = changed = true;
        }
    }
    return regular;
}

}  // namespace

std::vector<bool> terminal_rules(const Gbnf& grammar) {
    std::vector<bool> regular = regular_rules(grammar);
    if (!regular[grammar.root]) regular.assign(regular.size(), false);
    return regular;
}

}  // namespace tessera::structure
