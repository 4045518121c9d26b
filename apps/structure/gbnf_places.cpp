#include "apps/structure/gbnf_places.hpp"

#include <algorithm>

namespace tessera::structure {
namespace {

using Kind = GbnfNode::Kind;

constexpr size_t kMostPlaces = 20'000;
constexpr uint64_t kWorkOfState = 50;  // which stays, with its memory

// The same for nodes that have the same texts for the same reason.
void append_key(const GbnfNode& node, std::string& key) {
    key += static_cast<char>('0' + static_cast<int>(node.kind));
    for (const char32_t c : node.text) key += std::to_string(static_cast<uint32_t>(c)) + ",";
    for (const auto& [first, last] : node.ranges) key += std::to_string(first) + "-" + std::to_string(last) + ",";
    if (node.kind == Kind::kReference) key += std::to_string(node.rule);
    if (node.kind == Kind::kRepetition) key += std::to_string(node.least) + "," + std::to_string(node.most);
    key += node.token;
    key += '(';
    for (const GbnfNode& part : node.parts) append_key(part, key);
    key += ')';
}

}  // namespace

uint32_t TerminalTable::number_of(const GbnfNode& node) {
    std::string key;
    append_key(node, key);
    const auto [at, is_new] = numbers_.try_emplace(std::move(key), static_cast<uint32_t>(all_.size()));
    if (!is_new) return at->second;
    Terminal made;
    if (node.kind != Kind::kToken && work_ > 0) made.automaton = automaton_of(grammar_, node);
    if (made.automaton) {
        for (const uint32_t state : made.automaton->next.front())
            made.first.insert(made.first.end(), made.automaton->reads[state].begin(),
                              made.automaton->reads[state].end());
        made.first = first_bytes(made.first);
        size_t steps = 0;
        for (const auto& next : made.automaton->next) steps += next.size();
        work_ -= std::min<uint64_t>(work_, kWorkOfState * made.automaton->reads.size() + steps);
    }
    all_.push_back(std::move(made));
    return at->second;
}

const GbnfOverlap* TerminalTable::overlap_of(uint32_t a, uint32_t b) {
    const auto [at, is_new] = overlaps_.try_emplace({a, b});
    if (is_new) {
        const auto &x = all_[a].automaton, &y = all_[b].automaton;
        if (!x || !y) {
            at->second = GbnfOverlap{a == b, {}, {}};  // tokens
        } else {
            at->second = overlap(*x, *y, work_);
        }
    }
    return at->second ? &*at->second : nullptr;
}

GbnfPlaces::GbnfPlaces(const GbnfTerminals& terminals, TerminalTable& table,
                       std::unordered_set<const GbnfNode*>& divided)
    : terminals_(terminals), table_(table), divided_(divided) {
    begin_ = add();
    const uint32_t end = add();
    refer(terminals.grammar().root, begin_, end);
    while (!rules_left_.empty()) {
        const size_t rule = rules_left_.back();
        rules_left_.pop_back();
        const auto [entry, exit] = rules_.at(rule);
        empty_[walk(terminals.grammar().rules[rule].node, entry)].push_back(exit);
    }
}

bool GbnfPlaces::too_many() const noexcept {
    return size() > kMostPlaces;
}

uint32_t GbnfPlaces::add() {
    empty_.emplace_back();
    steps_.emplace_back();
    next_.emplace_back();
    return static_cast<uint32_t>(empty_.size() - 1);
}

void GbnfPlaces::refer(size_t rule, uint32_t from, uint32_t to) {
    auto at = rules_.find(rule);
    if (at == rules_.end()) {
        const uint32_t entry = add(), exit = add();
        at = rules_.emplace(rule, std::pair(entry, exit)).first;
        rules_left_.push_back(rule);
    }
    empty_[from].push_back(at->second.first);
    empty_[at->second.second].push_back(to);
}

uint32_t GbnfPlaces::step(const GbnfNode& node, uint32_t from) {
    const uint32_t terminal = table_.number_of(node), to = add();
    steps_[from].push_back({terminal, to});
    return to;
}

// From the place before the node to the one behind it.
uint32_t GbnfPlaces::walk(const GbnfNode& node, uint32_t from) {
    if (too_many()) return from;
    if (node.kind == Kind::kToken) return step(node, from);
    if (terminals_.is_terminal(node)) {
        const uint32_t terminal = table_.number_of(node);
        if (const auto& automaton = table_[terminal].automaton) {
            const uint32_t to = add();
            if (automaton->ends.front()) empty_[from].push_back(to);
            if (automaton->reads.size() > 1) steps_[from].push_back({terminal, to});
            nodes_[terminal].push_back(&node);
            return to;
        }
        divided_.insert(&node);
    }
    const uint32_t to = add();
    switch (node.kind) {
        case Kind::kText:
            for (const char32_t c : node.text) from = step({.kind = Kind::kText, .text = {c}}, from);
            return from;
        case Kind::kReference:
            refer(node.rule, from, to);
            return to;
        case Kind::kSequence:
            for (const GbnfNode& part : node.parts) from = walk(part, from);
            return from;
        case Kind::kChoice:
            for (const GbnfNode& part : node.parts) empty_[walk(part, from)].push_back(to);
            return to;
        case Kind::kRepetition: {
            const uint32_t before = add();
            empty_[from].push_back(before);
            const uint32_t behind = walk(node.parts.front(), before);
            if (node.least == 0) empty_[from].push_back(to);
            if (node.most > 1) empty_[behind].push_back(before);
            empty_[behind].push_back(to);
            return to;
        }
        case Kind::kClass:
        case Kind::kToken:
            break;
    }
    return from;
}

const GbnfPlaces::Next& GbnfPlaces::next(uint32_t place, uint64_t& work) {
    std::unique_ptr<Next>& known = next_[place];
    if (known) return *known;
    known = std::make_unique<Next>();
    std::vector<uint32_t> left = {place};
    std::unordered_set<uint32_t> seen = {place};
    while (!left.empty()) {
        const uint32_t at = left.back();
        left.pop_back();
        work -= std::min<uint64_t>(work, 1 + steps_[at].size());
        for (const Step& step : steps_[at]) {
            known->steps.push_back(step);
            const CodePoints& first = table_[step.terminal].first;
            known->first.insert(known->first.end(), first.begin(), first.end());
        }
        for (const uint32_t other : empty_[at])
            if (seen.insert(other).second) left.push_back(other);
    }
    known->first = joined(std::move(known->first));
    return *known;
}

std::optional<std::unordered_set<uint32_t>> GbnfPlaces::too_long(uint64_t& work) {
    if (too_many()) return std::nullopt;
    std::unordered_set<uint32_t> found;
    // Pairs of places that the same text, divided into the same terminals, leads to.
    std::vector<std::pair<uint32_t, uint32_t>> left = {{begin_, begin_}};
    std::unordered_set<uint64_t> seen;
    while (!left.empty()) {
        const auto [one, other] = left.back();
        left.pop_back();
        const Next &a = next(one, work), &b = next(other, work);
        const uint64_t cost = 1 + a.steps.size() * b.steps.size();
        if (cost > work) return std::nullopt;
        work -= cost;
        for (const Step& x : a.steps) {
            for (const Step& y : b.steps) {
                const GbnfOverlap* const common = table_.overlap_of(x.terminal, y.terminal);
                if (!common) return std::nullopt;
                if (meet(common->beyond_a, next(x.to, work).first)) found.insert(y.terminal);
                if (meet(common->beyond_b, next(y.to, work).first)) found.insert(x.terminal);
                if (!common->share) continue;
                const auto [low, high] = std::minmax(x.to, y.to);
                if (seen.insert(uint64_t{low} << 32 | high).second) left.emplace_back(low, high);
            }
        }
    }
    return found;
}

}  // namespace tessera::structure
