#include "core/run/tracks.hpp"

#include "core/run/work_text.hpp"

#include <algorithm>

namespace tessera {

Tracks::Tracks(const Plan& plan, const PlanMemory& memory)
    : plan_(plan),
      memory_(memory),
      queues_(plan.step.tracks.size(), nullptr),
      given_(queues_.size(), 0),
      ended_(queues_.size(), 0) {
    const Step& step = plan.step;
    for (TrackIndex track = 1; track < step.tracks.size(); ++track) queues_[track] = device(track).create_queue();
    // An action waits for actions of the previous step, whose events must not have been recorded again by then.
    events_.resize(std::max<uint32_t>(step.slots, 2));
    for (std::vector<tsr_event>& events : events_) {
        for (const Action& action : step.actions)
            events.push_back(action.signals && action.track != 0 ? device(action.track).create_event() : nullptr);
    }
}

tsr_queue Tracks::compute_queue(DeviceIndex device) const {
    for (TrackIndex track = 1; track < queues_.size(); ++track) {
        const Track& one = plan_.step.tracks[track];
        if (one.device == device && one.kind == TrackKind::kCompute) return queues_[track];
    }
    return nullptr;
}

std::string Tracks::work_text(TrackIndex track, uint64_t past_last) const {
    const std::vector<Action>& actions = plan_.step.actions;
    const DeviceIndex device = plan_.step.tracks[track].device;
    std::string text;
    const uint64_t step = (past_last - 1) / actions.size() * actions.size();
    // Nodes, and a copy that came after them.
    uint32_t first = 0, count = 0;
    for (uint64_t at = step; at < past_last; ++at) {
        const Action& action = actions[at - step];
        if (action.kind != ActionKind::kNodes || plan_.step.device_of(action) != device || at < ended_[action.track])
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
    // Chunks of a prompt: a device tells a failure of one at the next call, which may belong to a later one.
    if (plan_.step.slots > 1 && ended_[track] < step) text += ", or a step before it";
    return text;
}

template <typename Body>
void Tracks::name_work(ActionId id, uint64_t step, Body&& body) const {
    try {
        body();
    } catch (const Error& error) {
        fail(error.code(), "{}: {}", work_text(plan_.step.actions[id].track, past(id, step)), error.what());
    }
}

// The host has waited for the action, and so for what the action waited for.
void Tracks::note_end(ActionId id, uint64_t step) {
    const auto note = [&](ActionId other) {
        uint64_t& ended = ended_[plan_.step.actions[other].track];
        ended = std::max(ended, past(other, step));
    };
    note(id);
    for (const ActionId other : plan_.step.actions[id].after) note(other);
}

void Tracks::wait(TrackIndex track, ActionId other, uint64_t step) {
    OpenDevice& owner = device(plan_.step.actions[other].track);
    if (track == 0) {
        name_work(other, step, [&] { owner.wait(event(other, step)); });
        note_end(other, step);
    } else {
        name_work(other, step, [&] { device(track).wait_before(queues_[track], owner, event(other, step)); });
    }
}

void Tracks::signal(ActionId id, uint64_t step) {
    const TrackIndex track = plan_.step.actions[id].track;
    name_work(id, step, [&] { device(track).record(queues_[track], event(id, step)); });
}

void Tracks::finish(uint64_t step) {
    for (const ActionId id : plan_.step.last) {
        name_work(id, step, [&] { device(plan_.step.actions[id].track).wait(event(id, step)); });
        note_end(id, step);
    }
}

std::vector<Error> Tracks::drain() noexcept {
    std::vector<Error> failures;
    for (TrackIndex track = 1; track < queues_.size(); ++track) {
        const bool told = device(track).is_lost();
        const std::optional<Error> failure = device(track).drain(queues_[track]);
        try {
            if (failure && !told) {
                const bool idle = given_[track] <= ended_[track];
                failures.emplace_back(
                    failure->code(),
                    idle ? failure->what() : fmt::format("{}: {}", work_text(track, given_[track]), failure->what()));
            }
        } catch (const std::exception&) {
            // That message is lost: there is no memory for it.
        }
    }
    ended_ = given_;
    return failures;
}

}  // namespace tessera
