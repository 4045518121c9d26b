// Where in a grammar's texts each of its terminals may stand, and which of them would take what others have.
#pragma once

#include "apps/structure/gbnf_automaton.hpp"
#include "apps/structure/gbnf_terminals.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tessera::structure {

// Terminals by what they are, and what two of them have in common. Outlives what refers to it.
class TerminalTable {
  public:
    // What is done is taken from `work`.
    TerminalTable(const Gbnf& grammar, uint64_t& work) : grammar_(grammar), work_(work) {}

    struct Terminal {
        std::optional<GbnfAutomaton> automaton;  // nothing: a token, too large, or no work was left
        Bytes first;                             // that its texts begin with
    };

    // Nodes that are written alike have one, and so have all tokens, as any two may be the same.
    uint32_t number_of(const GbnfNode& node);
    const Terminal& operator[](uint32_t number) const { return all_[number]; }
    // Null: the work does not suffice.
    const GbnfOverlap* overlap_of(uint32_t a, uint32_t b);

  private:
    static constexpr uint32_t kToken = UINT32_MAX;

    uint32_t shape_of(const GbnfNode& node);

    const Gbnf& grammar_;
    uint64_t& work_;
    std::map<std::string, uint32_t> shapes_;
    std::unordered_map<const GbnfNode*, uint32_t> shapes_of_parts_;  // which stay where they are
    std::unordered_map<uint32_t, uint32_t> numbers_;                 // by shape
    std::vector<Terminal> all_;
    std::map<std::pair<uint32_t, uint32_t>, std::optional<GbnfOverlap>> overlaps_;
};

// Places between terminals, with the steps from one to another: by a terminal, or by none. Where a rule ends it goes on
// behind each reference to it, so that there are all places that a text can lead to, and more.
class GbnfPlaces {
  public:
    // Terminals that are too large are added to `divided`.
    GbnfPlaces(const GbnfTerminals& terminals, TerminalTable& table, std::unordered_set<const GbnfNode*>& divided);

    uint64_t size() const noexcept { return empty_.size(); }
    const std::vector<const GbnfNode*>& nodes_of(uint32_t terminal) { return nodes_[terminal]; }

    // Terminals that go on where another one may end and what follows that may begin so, among those that may stand at
    // one place. Nothing: the work does not suffice.
    std::optional<std::unordered_set<uint32_t>> to_divide(uint64_t& work);

  private:
    struct Step {
        uint32_t terminal, to;
    };
    // What may come next at a place, and the bytes that it begins with.
    struct Next {
        std::vector<Step> steps;
        Bytes first;
    };

    uint32_t add();
    void refer(size_t rule, uint32_t from, uint32_t to);
    uint32_t step(const GbnfNode& node, uint32_t from);
    uint32_t walk(const GbnfNode& node, uint32_t from);
    bool too_many() const noexcept;
    const Next& next(uint32_t place, uint64_t& work);

    const GbnfTerminals& terminals_;
    TerminalTable& table_;
    std::unordered_set<const GbnfNode*>& divided_;
    uint32_t begin_;
    bool incomplete_ = false;                                // a character could not be a step
    std::vector<std::vector<uint32_t>> empty_;               // by place: others without a terminal between
    std::vector<std::vector<Step>> steps_;                   // by place
    std::vector<std::unique_ptr<Next>> next_;                // by place, where it is known
    std::map<size_t, std::pair<uint32_t, uint32_t>> rules_;  // where they begin and end
    std::vector<size_t> rules_left_;
    std::map<uint32_t, std::vector<const GbnfNode*>> nodes_;
};

}  // namespace tessera::structure
