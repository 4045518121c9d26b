// What happens before what in a step: reachability in the graph of its actions.
#pragma once

#include "core/plan/step.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace tessera {

// A set of actions, by id.
class ActionSet {
  public:
    explicit ActionSet(size_t actions = 0) : words_((actions + 63) / 64) {}

    void insert(ActionId id) { words_[id / 64] |= uint64_t{1} << id % 64; }
    bool contains(ActionId id) const { return words_[id / 64] >> id % 64 & 1; }
    void insert(const ActionSet& other) {
        for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    }

  private:
    std::vector<uint64_t> words_;
};

// Reachability within one step and from the step before it, kept up to date while waits are added. The host's reading
// of outputs orders nothing: it may come late, or not at all.
class StepOrder {
  public:
    // Of the actions as they are listed; `step` outlives this, and its list does not change but by add_waits.
    explicit StepOrder(Step& step);

    // Whether `a` has ended before `b` of the same step begins. a != b.
    bool before(ActionId a, ActionId b) const { return ancestors_[b].contains(a); }
    // Whether `a` of the step before has ended before `b` begins.
    bool before_next(ActionId a, ActionId b) const { return previous_[b].contains(a); }

    // Makes every action wait for those of its own step that `conflict` says it cannot overlap with and that are listed
    // before it, as far as they do not end before it anyhow. Fills Action::after.
    using Conflict = std::function<bool(ActionId earlier, ActionId later)>;
    void add_waits(const Conflict& conflict);
    // The same against the actions of the step before: fills Action::after_previous. After add_waits.
    void add_waits_for_previous(const Conflict& conflict);

    // Marks what is waited for, and fills Step::last.
    void finish();

  private:
    static constexpr ActionId kNone = UINT32_MAX;

    void inherit(ActionId id);
    void inherit_previous(ActionId id);

    Step& step_;
    std::vector<std::vector<ActionId>> tracks_;  // actions of each track
    std::vector<ActionId> track_previous_;       // the action before in the same track
    std::vector<ActionId> host_previous_;        // the last action that the host had done when it came to this one
    std::vector<ActionSet> ancestors_;           // that end before it, in its own step
    std::vector<ActionSet> previous_;            // that end before it, in the step before
};

}  // namespace tessera
