// The tracks of a step on real devices: a queue each, and an event for each action that is waited for.
#pragma once

#include "core/plan/plan.hpp"
#include "core/run/memory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

class Tracks {
  public:
    // Both outlive this. Throws what OpenDevice throws.
    Tracks(const Plan& plan, const PlanMemory& memory);

    tsr_queue queue(TrackIndex track) const { return queues_[track]; }
    OpenDevice& device(TrackIndex track) const { return *memory_.device(plan_.step.tracks[track].device); }
    // Of a device's kernels; nullptr if it has none in the step.
    tsr_queue compute_queue(DeviceIndex device) const;

    // What is put on the action's track from now on belongs to it. Errors of waits name the work that had not ended.
    void begin(ActionId id, uint64_t step) { given_[plan_.step.actions[id].track] = past(id, step); }
    // Later work on the track starts after an action of that step. For the host's track the call blocks.
    void wait(TrackIndex track, ActionId other, uint64_t step);
    // Records the event of the action after all that has been put on its track.
    void signal(ActionId id, uint64_t step);
    // Blocks until all tracks have ended the step. Throws the first failure.
    void finish(uint64_t step);
    // Blocks until all tracks are idle; returns their failures, but for those of devices that were lost before.
    std::vector<Error> drain() noexcept;

  private:
    // Counts actions through all steps: of the one after this.
    uint64_t past(ActionId id, uint64_t step) const { return step * plan_.step.actions.size() + id + 1; }
    // The work of a track's device up to an action of that track, as far as it is not known to have ended.
    std::string work_text(TrackIndex track, uint64_t past_last) const;
    template <typename Body>
    void name_work(ActionId id, uint64_t step, Body&& body) const;
    void note_end(ActionId id, uint64_t step);

    tsr_event event(ActionId id, uint64_t step) const { return events_[step % events_.size()][id]; }

    const Plan& plan_;
    const PlanMemory& memory_;
    std::vector<tsr_queue> queues_;               // nullptr for the host
    std::vector<uint64_t> given_, ended_;         // of each track: past the last action that was, and is known to have
    std::vector<std::vector<tsr_event>> events_;  // of the latest steps, an action each; nullptr if nobody waits for it
};

}  // namespace tessera
