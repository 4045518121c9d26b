// Whether the waits of a plan's step order all that its actions touch, for several steps under way.
#pragma once

#include "core/plan/order_checker.hpp"
#include "core/plan/plan.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tessera {

// Follows steps as they are taken. The executor tells it what it does; check_step plays all of it through.
class StepChecker {
  public:
    // `plan` outlives this.
    explicit StepChecker(const Plan& plan);

    void wait(ActionId id, ActionId other, uint64_t step);
    void run(ActionId id, uint64_t step);
    void signal(ActionId id, uint64_t step);
    // The host has waited for the end of the step.
    void finish(uint64_t step);
    // The host has waited for everything, after a failure.
    void drain();

    const std::vector<std::string>& faults() const noexcept { return checker_.faults(); }

  private:
    VectorClock& event(ActionId id, uint64_t step);

    const Plan& plan_;
    OrderChecker checker_;
    std::vector<std::vector<Touch>> touches_;
    std::vector<std::vector<VectorClock>> events_;  // of the latest steps
};

// A wait that is left out: what the action comes after, by its place in Action::after or after_previous.
struct OmittedWait {
    ActionId action = 0;
    bool previous = false;
    size_t index = 0;
};

// Plays `steps` steps, as many under way as the plan allows. Returns what is not in order, a line each.
std::vector<std::string> check_step(const Plan& plan, uint64_t steps = 5,
                                    const std::optional<OmittedWait>& omitted = {});

// "upload of blk.3.ffn_norm to CUDA0", for messages.
std::string action_name(const Plan& plan, ActionId id);

}  // namespace tessera
