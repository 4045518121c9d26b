#include "apps/structure/gbnf_terminals.hpp"

namespace tessera::structure {
namespace {

using Kind = GbnfNode::Kind;

// Rules that a node refers to, each as often as it does. True: it has tokens.
bool collect(const GbnfNode& node, std::vector<size_t>& rules) {
    if (node.kind == Kind::kReference) rules.push_back(node.rule);
    bool tokens = node.kind == Kind::kToken;
    for (const GbnfNode& part : node.parts) tokens |= collect(part, rules);
    return tokens;
}

// Rules that a regular expression could match: neither they nor what they refer to lead back, or have tokens.
std::vector<bool> regular_rules(const Gbnf& grammar) {
    const size_t count = grammar.rules.size();
    std::vector<std::vector<size_t>> referred_by(count);
    std::vector<size_t> left(count);  // references to rules that are not known to be regular
    std::vector<bool> regular(count, false), tokens(count);
    std::vector<size_t> next;
    for (size_t i = 0; i < count; ++i) {
        std::vector<size_t> refers;
        tokens[i] = collect(grammar.rules[i].node, refers);
        left[i] = refers.size();
        for (const size_t rule : refers) referred_by[rule].push_back(i);
        if (refers.empty() && !tokens[i]) next.push_back(i);
    }
    // Those become regular that refer to such alone, until there are no more.
    while (!next.empty()) {
        const size_t rule = next.back();
        next.pop_back();
        regular[rule] = true;
        for (const size_t other : referred_by[rule]) {
            if (--left[other] == 0 && !tokens[other]) next.push_back(other);
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
