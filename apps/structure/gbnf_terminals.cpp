#include "apps/structure/gbnf_terminals.hpp"

#include "apps/structure/gbnf_places.hpp"

#include <algorithm>
#include <utility>

namespace tessera::structure {
namespace {

using Kind = GbnfNode::Kind;

// Of all that is done to find terminals: some tenths of a second at most.
constexpr uint64_t kMostWork = 20'000'000;

// Rules that a node refers to, each as often as it does. True: it has tokens.
bool collect(const GbnfNode& node, std::vector<size_t>& rules) {
    if (node.kind == Kind::kReference) rules.push_back(node.rule);
    bool tokens = node.kind == Kind::kToken;
    for (const GbnfNode& part : node.parts) tokens |= collect(part, rules);
    return tokens;
}

// Whether the empty text is one of a node, as far as is known of rules.
bool is_empty(const GbnfNode& node, const std::vector<bool>& rules) {
    const auto part_is = [&](const GbnfNode& part) { return is_empty(part, rules); };
    switch (node.kind) {
        case Kind::kText:
            return node.text.empty();
        case Kind::kReference:
            return rules[node.rule];
        case Kind::kSequence:
            return std::ranges::all_of(node.parts, part_is);
        case Kind::kChoice:
            return node.parts.empty() || std::ranges::any_of(node.parts, part_is);
        case Kind::kRepetition:
            return node.least == 0 || part_is(node.parts.front());
        case Kind::kClass:
        case Kind::kToken:
            break;
    }
    return false;
}

struct Regular {
    std::vector<bool> rules, empty;
};

// Rules that a regular expression could match: neither they nor what they refer to lead back, or have tokens.
Regular regular_rules(const Gbnf& grammar) {
    const size_t count = grammar.rules.size();
    std::vector<std::vector<size_t>> referred_by(count);
    std::vector<size_t> left(count);  // references to rules that are not known to be regular
    std::vector<bool> tokens(count);
    Regular found{std::vector<bool>(count, false), std::vector<bool>(count, false)};
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
        found.rules[rule] = true;
        found.empty[rule] = is_empty(grammar.rules[rule].node, found.empty);
        for (const size_t other : referred_by[rule]) {
            if (--left[other] == 0 && !tokens[other]) next.push_back(other);
        }
    }
    return found;
}

}  // namespace

GbnfTerminals::GbnfTerminals(Gbnf parsed, GbnfLexer lexer)
    : grammar_(std::move(parsed)), characters_(lexer == GbnfLexer::kCharacters) {
    Regular regular = regular_rules(grammar_);
    regular_ = std::move(regular.rules);
    may_be_empty_ = std::move(regular.empty);
    for (GbnfRule& rule : grammar_.rules) mark_regular(rule.node);
    if (characters_ || is_one_terminal()) return;
    for (GbnfRule& rule : grammar_.rules) put_together(rule.node);
    uint64_t work = kMostWork;
    TerminalTable table(grammar_, work);
    for (;;) {
        GbnfPlaces places(*this, table, divided_);
        work -= std::min(work, places.size());
        const auto longer = places.to_divide(work);
        if (!longer) {
            characters_ = true;
            return;
        }
        if (longer->empty()) return;
        for (const uint32_t terminal : *longer)
            for (const GbnfNode* const node : places.nodes_of(terminal)) divided_.insert(node);
    }
}

// Sets GbnfNode::regular of the node and its parts.
void GbnfTerminals::mark_regular(GbnfNode& node) const {
    node.regular = node.kind == Kind::kReference ? regular_[node.rule] : node.kind != Kind::kToken;
    for (GbnfNode& part : node.parts) {
        mark_regular(part);
        node.regular = node.regular && part.regular;
    }
}

// Parts of a sequence that a terminal could match become a sequence of their own.
void GbnfTerminals::put_together(GbnfNode& node) const {
    if (node.regular) return;
    for (GbnfNode& part : node.parts) put_together(part);
    if (node.kind != Kind::kSequence) return;
    std::vector<GbnfNode> parts;
    for (size_t i = 0; i < node.parts.size();) {
        GbnfNode together{.kind = Kind::kSequence, .regular = true};
        for (; i < node.parts.size() && node.parts[i].regular; ++i) together.parts.push_back(std::move(node.parts[i]));
        if (together.parts.size() == 1) {
            parts.push_back(std::move(together.parts.front()));
        } else if (!together.parts.empty()) {
            parts.push_back(std::move(together));
        }
        if (i < node.parts.size()) parts.push_back(std::move(node.parts[i++]));
    }
    node.parts = std::move(parts);
}

bool GbnfTerminals::is_terminal(const GbnfNode& node) const {
    if (node.kind == Kind::kClass || (node.kind == Kind::kText && node.text.size() == 1)) return true;
    return !characters_ && node.regular && !divided_.contains(&node);
}

bool GbnfTerminals::may_be_empty(const GbnfNode& terminal) const {
    return is_empty(terminal, may_be_empty_);
}

}  // namespace tessera::structure
