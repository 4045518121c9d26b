#include "core/text/split_automaton.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace tessera::text {
namespace {

constexpr size_t kMostPlaces = 0x2000;
constexpr size_t kMostStates = 0x2000;
constexpr size_t kMostClasses = 255;
constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// A place in the expression: what to try there, in the order `next`, `other`.
struct Place {
    enum class Kind : uint8_t { kMatch, kFork, kSet, kNext, kNotNext, kBefore, kNotBefore };
    Kind kind;
    uint32_t set = 0;  // index into the sets
    uint32_t next = kNone;
    uint32_t other = kNone;
};

}  // namespace

class SplitAutomaton::Builder {
  public:
    explicit Builder(std::string_view expression) : expression_(expression) {}

    void build(SplitAutomaton& out) {
        const uint32_t match = add({Place::Kind::kMatch});
        const uint32_t entry = compile(parse_split_expression(expression_), match);
        number_classes(out);
        out.looks_back_ = looks_back_;
        const auto ends = static_cast<uint32_t>(class_in_.size());  // the class "there is no character"
        out.stride_ = ends + 1;

        state_of({});  // kDead
        if (looks_back_) {
            for (uint32_t before = 0; before <= ends; ++before) out.start_.push_back(state_of({before, {entry}}));
        } else {
            out.start_.push_back(state_of({0, {entry}}));
        }
        for (size_t i = 0; i < states_.size(); ++i)
            for (uint32_t kind = 0; kind <= ends; ++kind)
                out.transitions_.push_back(step(State(states_[i]), kind, ends));
        for (uint32_t kind = 0; kind < ends; ++kind)
            out.may_begin_.push_back(std::ranges::any_of(out.start_, [&](uint32_t start) {
                return (out.transitions_[start * out.stride_ + kind] & kState) != kDead;
            }));
    }

  private:
    // Places that are to be looked at, best first, and the class of the character before where it matters.
    struct State {
        uint32_t before = 0;
        std::vector<uint32_t> places;
        auto operator<=>(const State&) const = default;
    };

    uint32_t add(Place place) {
        if (places_.size() >= kMostPlaces)
            fail(TSR_INVALID_ARGUMENT, "too long when written out: `{}`", printable(expression_, 200));
        places_.push_back(place);
        return static_cast<uint32_t>(places_.size() - 1);
    }

    uint32_t set_index(const CharSet& set) {
        const auto found = std::ranges::find(sets_, set);
        if (found != sets_.end()) return static_cast<uint32_t>(found - sets_.begin());
        sets_.push_back(set);
        return static_cast<uint32_t>(sets_.size() - 1);
    }

    // The place that leads through `node` to `next`.
    uint32_t compile(const SplitNode& node, uint32_t next) {
        using Kind = SplitNode::Kind;
        switch (node.kind) {
            case Kind::kSequence:
                for (size_t i = node.parts.size(); i-- > 0;) next = compile(node.parts[i], next);
                return next;
            case Kind::kAlternative: {
                uint32_t all = compile(node.parts.back(), next);
                for (size_t i = node.parts.size() - 1; i-- > 0;)
                    all = add({Place::Kind::kFork, 0, compile(node.parts[i], next), all});
                return all;
            }
            case Kind::kRepeat:
                return compile_repeat(node, next);
            case Kind::kSet:
                return add({Place::Kind::kSet, set_index(node.set), next});
            case Kind::kNext:
                return add({Place::Kind::kNext, set_index(node.set), next});
            case Kind::kNotNext:
                return add({Place::Kind::kNotNext, set_index(node.set), next});
            case Kind::kBefore:
                looks_back_ = true;
                return add({Place::Kind::kBefore, set_index(node.set), next});
            case Kind::kNotBefore:
                looks_back_ = true;
                return add({Place::Kind::kNotBefore, set_index(node.set), next});
        }
        fail(TSR_INTERNAL, "an expression has a part of no kind");
    }

    uint32_t compile_repeat(const SplitNode& node, uint32_t next) {
        uint32_t tail = next;
        if (node.most == SplitNode::kUnbounded) {
            tail = add({Place::Kind::kFork, 0, kNone, next});
            const uint32_t inside = compile(node.parts.front(), tail);
            places_[tail].next = inside;
        } else {
            for (int i = node.least; i < node.most; ++i)
                tail = add({Place::Kind::kFork, 0, compile(node.parts.front(), tail), next});
        }
        for (int i = 0; i < node.least; ++i) tail = compile(node.parts.front(), tail);
        return tail;
    }

    // Characters that are in the same sets are of one class.
    void number_classes(SplitAutomaton& out) {
        std::vector<std::pair<uint32_t, size_t>> edges;  // code point, set that begins or ends there
        for (size_t i = 0; i < sets_.size(); ++i) {
            for (const CharSet::Range& range : sets_[i].ranges()) {
                edges.emplace_back(range.first, i);
                edges.emplace_back(range.last + 1, i);
            }
        }
        std::ranges::sort(edges);
        std::map<std::vector<bool>, uint8_t> number;
        std::vector<bool> inside(sets_.size());
        boost::unordered_flat_map<std::string, uint16_t> blocks;
        std::string block;
        size_t edge = 0;
        for (uint32_t at = 0; at <= CharSet::kLast;) {
            for (; edge < edges.size() && edges[edge].first == at; ++edge)
                inside[edges[edge].second] = !inside[edges[edge].second];
            uint32_t left = (edge < edges.size() ? edges[edge].first : CharSet::kLast + 1) - at;
            at += left;
            const auto [place, is_new] = number.emplace(inside, static_cast<uint8_t>(class_in_.size()));
            if (is_new) class_in_.push_back(inside);
            if (class_in_.size() > kMostClasses)
                fail(TSR_INVALID_ARGUMENT, "more than {} classes of characters in `{}`", kMostClasses,
                     printable(expression_, 200));
            while (left > 0) {
                const uint32_t here = std::min(left, static_cast<uint32_t>(kBlock - block.size()));
                block.append(here, static_cast<char>(place->second));
                left -= here;
                if (block.size() < kBlock) break;
                // Whole blocks of one class are the same block.
                const uint32_t repeats = here == kBlock ? 1 + left / kBlock : 1;
                left -= (repeats - 1) * kBlock;
                const auto [known, is_new_block] = blocks.emplace(block, static_cast<uint16_t>(blocks.size()));
                if (is_new_block) out.blocks_.insert(out.blocks_.end(), block.begin(), block.end());
                out.block_of_.insert(out.block_of_.end(), repeats, known->second);
                block.clear();
            }
        }
        for (uint32_t c = 0; c < out.ascii_.size(); ++c) out.ascii_[c] = static_cast<uint8_t>(out.class_of(c));
    }

    uint32_t state_of(const State& state) {
        const auto [place, is_new] = numbers_.emplace(state, static_cast<uint32_t>(states_.size()));
        if (is_new) states_.push_back(state);
        if (states_.size() > kMostStates)
            fail(TSR_INVALID_ARGUMENT, "more than {} states for `{}`", kMostStates, printable(expression_, 200));
        return place->second;
    }

    bool contains(uint32_t set, uint32_t kind) const { return kind < class_in_.size() && class_in_[kind][set]; }

    // What comes of `state` when a character of class `kind` follows, or none if that is `ends`.
    uint16_t step(const State& state, uint32_t kind, uint32_t ends) {
        visited_.assign(places_.size(), false);
        State next;
        next.before = looks_back_ ? kind : 0;
        bool matched = false;
        for (const uint32_t place : state.places) {
            matched = follow(place, state.before, kind, next.places);
            if (matched) break;
        }
        if (kind == ends || next.places.empty()) return matched ? kMatches : uint16_t{kDead};
        return static_cast<uint16_t>(state_of(next) | (matched ? kMatches : 0u));
    }

    // Adds to `reached` where the character leads from `place`. True: a match, so that what is worse is cut off.
    bool follow(uint32_t first, uint32_t before, uint32_t kind, std::vector<uint32_t>& reached) {
        open_.assign(1, first);
        while (!open_.empty()) {
            const uint32_t at = open_.back();
            open_.pop_back();
            if (visited_[at]) continue;
            visited_[at] = true;
            const Place& place = places_[at];
            bool holds = true;
            switch (place.kind) {
                case Place::Kind::kMatch:
                    return true;
                case Place::Kind::kFork:
                    open_.push_back(place.other);
                    break;
                case Place::Kind::kSet:
                    if (contains(place.set, kind) && std::ranges::find(reached, place.next) == reached.end())
                        reached.push_back(place.next);
                    continue;
                case Place::Kind::kNext:
                    holds = contains(place.set, kind);
                    break;
                case Place::Kind::kNotNext:
                    holds = !contains(place.set, kind);
                    break;
                case Place::Kind::kBefore:
                    holds = contains(place.set, before);
                    break;
                case Place::Kind::kNotBefore:
                    holds = !contains(place.set, before);
                    break;
            }
            if (holds) open_.push_back(place.next);
        }
        return false;
    }

    std::string_view expression_;
    std::vector<Place> places_;
    std::vector<CharSet> sets_;
    std::vector<std::vector<bool>> class_in_;  // [class][set]
    bool looks_back_ = false;
    std::map<State, uint32_t> numbers_;
    std::vector<State> states_;
    std::vector<bool> visited_;   // places, while a state is followed
    std::vector<uint32_t> open_;  // places still to be looked at, the best last
};

SplitAutomaton::SplitAutomaton(std::string_view expression) {
    Builder(expression).build(*this);
}

uint32_t SplitAutomaton::class_before(std::string_view text, size_t at) const noexcept {
    if (at == 0) return static_cast<uint32_t>(stride_ - 1);
    do --at;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data()) + at;
    size_t length = 1;
    return bytes[0] < 0x80 ? ascii_[bytes[0]] : class_of_long(bytes, length);
}

}  // namespace tessera::text
