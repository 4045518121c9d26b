// The lanes of a step on real devices: a queue each, and an event for each action that is waited for.
#pragma once

#include "core/plan/plan.hpp"
#include "core/run/memory.hpp"

#include <cstdint>
#include <vector>

namespace tessera {

class Lanes {
  public:
    // Both outlive this. Throws what OpenDevice throws.
    Lanes(const Plan& plan, const PlanMemory& memory);

    tsr_queue queue(LaneIndex lane) const { return queues_[lane]; }
    OpenDevice& device(LaneIndex lane) const { return *memory_.device(plan_.step.lanes[lane].device); }
    // Of a device's kernels; nullptr if it has none in the step.
    tsr_queue compute_queue(DeviceIndex device) const;

    // What is done on the lane from now on comes after an action of that step. The host waits itself.
    void wait(LaneIndex lane, ActionId other, uint64_t step);
    // What is on the action's lane by now is what waiting for it means.
    void signal(ActionId id, uint64_t step);
    // The host waits for all lanes to have ended the step. Throws the first failure.
    void finish(uint64_t step);
    // The host waits for everything, whether it failed or not.
    std::vector<Error> drain() noexcept;

  private:
    tsr_event event(ActionId id, uint64_t step) const { return events_[step % events_.size()][id]; }

    const Plan& plan_;
    const PlanMemory& memory_;
    std::vector<tsr_queue> queues_;               // nullptr for the host
    std::vector<std::vector<tsr_event>> events_;  // of the latest steps, an action each; nullptr if nobody waits for it
};

}  // namespace tessera
