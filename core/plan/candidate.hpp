// A placement with its plan, and which of several is kept: of those that fit one that is nearly the fastest by estimate
// and in no figure much slower than another.
#pragma once

#include "core/plan/placement.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/predict.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tessera {

struct Candidate {
    Placement placement;
    Plan plan;
    uint64_t excess = 0;         // of all devices
    uint64_t device_excess = 0;  // of all but the CPU
    TypicalUse use;

    bool fits() const { return excess == 0; }

    // What does not fit at all should at least fill the devices and no more, so that the CPU alone is to blame.
    bool better_than(const Candidate& other) const;
};

class Best {
  public:
    void offer(Candidate candidate) {
        if (!best_ || candidate.better_than(*best_)) best_ = std::move(candidate);
    }
    // Of one that fits, what it comes to: for steadiest().
    void note(const Candidate& candidate) { fitting_.push_back({candidate.placement, candidate.use}); }

    bool fits() const { return best_ && best_->fits(); }
    bool empty() const { return !best_; }
    Candidate take() { return std::move(*best_); }

    // Which of several placements takes the least time for a typical use may turn with a little more context or memory,
    // and prompts alone then be slower by much. So of those that take at most kNearly of that time, the one of the
    // least maximum regret, which is by how much a placement's worst figure is slower than the best of that figure
    // found. nullptr: what take() returns.
    const Placement* steadiest() const;

  private:
    struct Noted {
        Placement placement;
        TypicalUse use;
    };

    std::optional<Candidate> best_;
    std::vector<Noted> fitting_;
};

}  // namespace tessera
