#include "core/run/lanes.hpp"

#include "core/run/work_text.hpp"

#include <algorithm>

namespace tessera {

Lanes::Lanes(const Plan& plan, const PlanMemory& memory)
    : plan_(plan),
      memory_(memory),
      queues_(plan.step.lanes.size(), nullptr),
      given_(queues_.size(), 0),
      ended_(queues_.size(), 0) {
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

std::string Lanes::work_text(LaneIndex lane, uint64_t past_last) const {
    const std::vector<Action>& actions = plan_.step.actions;
    const DeviceIndex device = plan_.step.lanes[lane].device;
    std::string text;
    const uint64_t step = (past_last - 1) / actions.size() * actions.size();
    // Nodes, and a copy that came after them.
    uint32_t first = 0, count = 0;
    for (uint64_t at = step; at < past_last; ++at) {
        const Action& action = actions[at - step];
        if (action.kind != ActionKind::kNodes || plan_.step.device_of(action) != device || at < ended_[action.lane])
            continue;
        if (count == 0) first = action.first;
        count = action.first + action.count - first;
    }
    const Action& last = actions[past_last - 1 - step];
    if (count > 0) {
        text = nodes_text(plan_, first, count);
    } else if (last.kind == ActionKind::kNodes) {
        text = nodes_text(plan_, last.first, last.count);
    }
    if (last.kind == ActionKind::kUpload || last.kind == ActionKind::kDownload) {
        const uint64_t bytes = last.from == 0 ? plan_.input_block.bytes : last.maximum_bytes;
        text += (text.empty() ? "" : ", then ") + copy_text(plan_, last, fmt::format("at most {} bytes", bytes));
    }
    // Pieces of a prompt: a device tells a failure of one at the next call, which may belong to a later one.
    if (plan_.step.slots > 1 && ended_[lane] < step) text += ", or a step before it";
    return text;
}

template <typename Body>
void Lanes::name_work(ActionId id, uint64_t step, Body&& body) const {
    try {
        body();
    } catch (const Error& error) {
        fail(error.code(), "{}: {}", work_text(plan_.step.actions[id].lane, past(id, step)), error.what());
    }
}

// The host has waited for the action, and so for what the action waited for.
void Lanes::note_end(ActionId id, uint64_t step) {
    const auto note = [&](ActionId other) {
        uint64_t& ended = ended_[plan_.step.actions[other].lane];
        ended = std::max(ended, past(other, step));
    };
    note(id);
    for (const ActionId other : plan_.step.actions[id].after) note(other);
}

void Lanes::wait(LaneIndex lane, ActionId other, uint64_t step) {
    OpenDevice& owner = device(plan_.step.actions[other].lane);
    if (lane == 0) {
        name_work(other, step, [&] { owner.wait(event(other, step)); });
        note_end(other, step);
    } else {
        name_work(other, step, [&] { device(lane).wait_before(queues_[lane], owner, event(other, step)); });
    }
}

void Lanes::signal(ActionId id, uint64_t step) {
    const LaneIndex lane = plan_.step.actions[id].lane;
    name_work(id, step, [&] { device(lane).record(queues_[lane], event(id, step)); });
}

void Lanes::finish(uint64_t step) {
    for (const ActionId id : plan_.step.last) {
        name_work(id, step, [&] { device(plan_.step.actions[id].lane).wait(event(id, step)); });
        note_end(id, step);
    }
}

std::vector<Error> Lanes::drain() noexcept {
    std::vector<Error> failures;
    for (LaneIndex lane = 1; lane < queues_.size(); ++lane) {
        const bool told = device(lane).is_lost();
        const std::optional<Error> failure = device(lane).drain(queues_[lane]);
        try {
            if (failure && !told) {
                const bool idle = given_[lane] <= ended_[lane];
                failures.emplace_back(
                    failure->code(),
                    idle ? failure->what() : fmt::format("{}: {}", work_text(lane, given_[lane]), failure->what()));
            }
        } catch (const std::exception&) {
            // That message is lost: there is no memory for it.
        }
    }
    ended_ = given_;
    return failures;
}

}  // namespace tessera
