#include "apps/structure/gbnf_automaton.hpp"

#include <algorithm>
#include <utility>

namespace tessera::structure {
namespace {

using Kind = GbnfNode::Kind;

constexpr size_t kMostStates = 1000, kMostSteps = 20'000, kMostRanges = 20'000, kMostNested = 300;
constexpr uint64_t kWorkOfState = 50, kWorkOfRange = 4;  // which stay, with their memory

bool take(uint64_t& work, uint64_t some) noexcept {
    const bool suffices = some <= work;
    work = suffices ? work - some : 0;
    return suffices;
}

class Builder {
  public:
    Builder(const Gbnf& grammar, uint64_t& work) : grammar_(grammar), work_(work) {}

    std::optional<GbnfAutomaton> run(const GbnfNode& node) {
        const uint32_t start = add({});
        const Part whole = build(node, 0);
        if (too_large_) return std::nullopt;
        connect({start}, whole.first);
        for (const uint32_t state : whole.last) made_.ends[state] = true;
        made_.ends[start] = whole.empty;
        if (too_large_) return std::nullopt;
        return std::move(made_);
    }

  private:
    // States with which texts of a part begin and end; whether the empty text is one.
    struct Part {
        std::vector<uint32_t> first, last;
        bool empty = true;
    };

    uint32_t add(const CodePoints& reads) {
        ranges_ += reads.size();
        if (made_.reads.size() >= kMostStates || ranges_ > kMostRanges) too_large_ = true;
        if (!take(work_, kWorkOfState + kWorkOfRange * reads.size())) too_large_ = true;
        made_.reads.push_back(too_large_ ? CodePoints() : reads);
        made_.next.emplace_back();
        made_.ends.push_back(false);
        return static_cast<uint32_t>(made_.reads.size() - 1);
    }

    void connect(const std::vector<uint32_t>& from, const std::vector<uint32_t>& to) {
        steps_ += from.size() * to.size();
        if (steps_ > kMostSteps || !take(work_, from.size() * to.size())) too_large_ = true;
        if (too_large_) return;
        for (const uint32_t state : from) made_.next[state].insert(made_.next[state].end(), to.begin(), to.end());
    }

    static void append(std::vector<uint32_t>& to, const std::vector<uint32_t>& more) {
        to.insert(to.end(), more.begin(), more.end());
    }

    // `part` behind what there is.
    void follow(Part& made, const Part& part) {
        connect(made.last, part.first);
        if (made.empty) append(made.first, part.first);
        if (!part.empty) made.last.clear();
        append(made.last, part.last);
        made.empty = made.empty && part.empty;
    }

    Part build(const GbnfNode& node, size_t depth) {
        Part made;
        if (depth > kMostNested) too_large_ = true;
        if (too_large_) return made;
        switch (node.kind) {
            case Kind::kText:
                for (const char32_t c : node.text) {
                    if (too_large_) break;
                    const uint32_t state = add({{c, c}});
                    follow(made, {{state}, {state}, false});
                }
                return made;
            case Kind::kClass: {
                const uint32_t state = add(node.ranges);
                return {{state}, {state}, false};
            }
            case Kind::kReference:
                return build(grammar_.rules[node.rule].node, depth + 1);
            case Kind::kToken:
                too_large_ = true;
                return made;
            case Kind::kSequence:
                for (const GbnfNode& part : node.parts) follow(made, build(part, depth + 1));
                return made;
            case Kind::kChoice:
                made.empty = node.parts.empty();
                for (const GbnfNode& one : node.parts) {
                    const Part part = build(one, depth + 1);
                    append(made.first, part.first);
                    append(made.last, part.last);
                    made.empty |= part.empty;
                }
                return made;
            case Kind::kRepetition:
                break;
        }
        return repetition(node, depth);
    }

    // Copies behind one another: texts begin with the first and end behind each that has enough before it.
    Part repetition(const GbnfNode& node, size_t depth) {
        Part made;
        if (node.most == 0) return made;
        const bool bounded = node.most != GbnfNode::kUnbounded;
        const uint32_t copies = bounded ? node.most : std::max(node.least, 1u);
        std::vector<uint32_t> before;
        for (uint32_t i = 0; i < copies && !too_large_; ++i) {
            const Part copy = build(node.parts.front(), depth + 1);
            if (i == 0) {
                made.first = copy.first;
                made.empty = node.least == 0 || copy.empty;
            }
            connect(before, copy.first);
            if (copy.empty || i + 1 >= node.least) append(made.last, copy.last);
            if (!bounded && i + 1 == copies) connect(copy.last, copy.first);
            before = copy.last;
        }
        return made;
    }

    const Gbnf& grammar_;
    uint64_t& work_;
    GbnfAutomaton made_;
    size_t steps_ = 0, ranges_ = 0;
    bool too_large_ = false;
};

}  // namespace

std::optional<GbnfAutomaton> automaton_of(const Gbnf& grammar, const GbnfNode& node, uint64_t& work) {
    return Builder(grammar, work).run(node);
}

std::optional<GbnfOverlap> overlap(const GbnfAutomaton& a, const GbnfAutomaton& b, uint64_t& work) {
    GbnfOverlap found;
    const size_t columns = b.reads.size(), cells = a.reads.size() * columns;
    if (!take(work, 1 + cells / 64)) return std::nullopt;
    std::vector<bool> seen(cells, false);
    std::vector<std::pair<uint32_t, uint32_t>> next = {{0, 0}};
    bool suffices = true;
    const auto add = [&](Bytes& to, const GbnfAutomaton& of, uint32_t state) {
        for (const uint32_t after : of.next[state]) {
            suffices = suffices && take(work, 1 + of.reads[after].size());
            // A character whose first byte has been read cannot become another one that begins with it.
            if (suffices) to |= first_bytes(of.reads[after]);
        }
    };
    while (!next.empty()) {
        const auto [in_a, in_b] = next.back();
        next.pop_back();
        if (in_a != 0) {
            found.share |= a.ends[in_a] && b.ends[in_b];
            if (a.ends[in_a]) add(found.beyond_a, b, in_b);
            if (b.ends[in_b]) add(found.beyond_b, a, in_a);
        }
        for (const uint32_t x : a.next[in_a]) {
            for (const uint32_t y : b.next[in_b]) {
                if (seen[x * columns + y]) continue;
                if (!take(work, a.reads[x].size() + b.reads[y].size())) return std::nullopt;
                if (!meet(a.reads[x], b.reads[y])) continue;
                seen[x * columns + y] = true;
                next.emplace_back(x, y);
            }
        }
        if (!suffices) return std::nullopt;
    }
    return found;
}

}  // namespace tessera::structure
