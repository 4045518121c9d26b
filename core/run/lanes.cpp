#include "core/run/lanes.hpp"

#include <algorithm>

namespace tessera {

Lanes::Lanes(const Plan& plan, const PlanMemory& memory)
    : plan_(plan), memory_(memory), queues_(plan.step.lanes.size(), nullptr) {
    const Step& step = plan.step;
    for (LaneIndex lane = 1; lane < step.lanes.size(); ++lane) queues_[lane] = device(lane).create_queue();
    // An action waits for actions of the previous step, whose events must not have been recorded again by then.
    events_.resize(std::max<uint32_t>(step.slots, 2));
    for (std::vector<tsr_event>& events : events_) {
        for (const Action& action : step.actions)
            events.push_back(action.signals && action.lane != 0 ? device(action.lane).create_event() : nullptr);
    }
}

tsr_queue Lanes::compute_queue(DeviceIndex device) const {
    for (LaneIndex lane = 1; lane < queues_.size(); ++lane) {
        const Lane& one = plan_.step.lanes[lane];
        if (one.device == device && one.kind == LaneKind::kCompute) return queues_[lane];
    }
    return nullptr;
}

void Lanes::wait(LaneIndex lane, ActionId other, uint64_t step) {
    OpenDevice& owner = device(plan_.step.actions[other].lane);
    if (lane == 0) {
        owner.wait(event(other, step));
    } else {
        device(lane).wait_before(queues_[lane], owner, event(other, step));
    }
}

void Lanes::signal(ActionId id, uint64_t step) {
    const LaneIndex lane = plan_.step.actions[id].lane;
    device(lane).record(queues_[lane], event(id, step));
}

void Lanes::finish(uint64_t step) {
    for (const ActionId id : plan_.step.last) device(plan_.step.actions[id].lane).wait(event(id, step));
}

std::vector<Error> Lanes::drain() noexcept {
    std::vector<Error> failures;
    for (LaneIndex lane = 1; lane < queues_.size(); ++lane) {
        std::optional<Error> failure = device(lane).drain(queues_[lane]);
        try {
            if (failure) failures.push_back(std::move(*failure));
        } catch (const std::bad_alloc&) {
            // That message is lost.
        }
    }
    return failures;
}

}  // namespace tessera
