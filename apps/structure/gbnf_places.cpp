#include "apps/structure/gbnf_places.hpp"

#include <algorithm>

namespace tessera::structure {
namespace {

using Kind = GbnfNode::Kind;

constexpr size_t kMostPlaces = 20'000;

}  // namespace

// Two nodes have the same shape if they are written alike.
uint32_t TerminalTable::shape_of(const GbnfNode& node) {
    std::string key(1, static_cast<char>(node.kind));
    const auto add = [&key](uint32_t number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); };
    add(static_cast<uint32_t>(node.kind == Kind::kReference ? node.rule : node.text.size()));
    for (const char32_t c : node.text) add(c);
    for (const auto& [first, last] : node.ranges) {
        add(first);
        add(last);
    }
    add(node.least);
    add(node.most);
    for (const GbnfNode& part : node.parts) {
        const auto known = shapes_of_parts_.find(&part);
        const uint32_t shape = known != shapes_of_parts_.end() ? known->second : shape_of(part);
        shapes_of_parts_.emplace(&part, shape);
        add(shape);
    }
    return shapes_.try_emplace(std::move(key), static_cast<uint32_t>(shapes_.size())).first->second;
}

uint32_t TerminalTable::number_of(const GbnfNode& node) {
    // Texts of a token and of other names for it differ.
    const uint32_t shape = node.kind == Kind::kToken ? kToken : shape_of(node);
    const auto [at, is_new] = numbers_.try_emplace(shape, static_cast<uint32_t>(all_.size()));
    if (!is_new) return at->second;
    Terminal made;
    if (node.kind != Kind::kToken) made.automaton = automaton_of(grammar_, node, work_);
    if (made.automaton) {
        for (const uint32_t state : made.automaton->next.front())
            made.first |= first_bytes(made.automaton->reads[state]);
    }
    all_.push_back(std::move(made));
    return at->second;
}

const GbnfOverlap* TerminalTable::overlap_of(uint32_t a, uint32_t b) {
    const auto [at, is_new] = overlaps_.try_emplace({a, b});
    if (is_new) {
        const auto &x = all_[a].automaton, &y = all_[b].automaton;
        if (!x || !y) {
            at->second = GbnfOverlap{!x && !y, {}, {}};  // no token is a text
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
        if (node.kind == Kind::kClass || node.text.size() == 1) incomplete_ = true;
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
            known->first |= table_[step.terminal].first;
        }
        for (const uint32_t other : empty_[at])
            if (seen.insert(other).second) left.push_back(other);
    }
    return *known;
}

std::optional<std::unordered_set<uint32_t>> GbnfPlaces::to_divide(uint64_t& work) {
    if (too_many() || incomplete_) return std::nullopt;
    std::unordered_set<uint32_t> found;
    // Pairs of places that the same text, divided into the same terminals, leads to.
    std::vector<std::pair<uint32_t, uint32_t>> left = {{begin_, begin_}};
    std::unordered_set<uint64_t> seen;
    while (!left.empty()) {
        const auto [one, other] = left.back();
        left.pop_back();
        const Next &a = next(one, work), &b = next(other, work);
        const uint64_t cost = 1 + a.steps.size() * b.steps.size();
        if (cost >= work) return std::nullopt;
        work -= cost;
        for (const Step& x : a.steps) {
            for (const Step& y : b.steps) {
                const GbnfOverlap* const common = table_.overlap_of(x.terminal, y.terminal);
                if (!common) return std::nullopt;
                if ((common->beyond_a & next(x.to, work).first).any()) found.insert(y.terminal);
                if ((common->beyond_b & next(y.to, work).first).any()) found.insert(x.terminal);
                if (!common->share) continue;
                const auto [low, high] = std::minmax(x.to, y.to);
                if (seen.insert(uint64_t{low} << 32 | high).second) left.emplace_back(low, high);
            }
        }
    }
    return found;
}

}  // namespace tessera::structure
