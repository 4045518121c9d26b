#include "core/plan/step_check.hpp"

#include "core/plan/step_walk.hpp"

#include <algorithm>

namespace tessera {

StepChecker::StepChecker(const Plan& plan)
    : plan_(plan),
      checker_(plan.step.tracks.size(), [&plan](uint32_t arena) { return arena_name(plan, arena); }),
      events_(std::max<uint32_t>(plan.step.slots, 2),
              std::vector<VectorClock>(plan.step.actions.size(), VectorClock(plan.step.tracks.size(), 0))) {
    for (const Action& action : plan.step.actions) touches_.push_back(touches_of(plan, action));
}

VectorClock& StepChecker::event(ActionId id, uint64_t step) {
    return events_[step % events_.size()][id];
}

void StepChecker::wait(ActionId id, ActionId other, uint64_t step) {
    checker_.wait(plan_.step.actions[id].track, event(other, step));
}

void StepChecker::run(ActionId id, uint64_t step) {
    const Action& action = plan_.step.actions[id];
    checker_.start(action.track);
    const std::string what = fmt::format("{} (step {})", action_name(plan_, id), step);
    const auto slot = static_cast<uint32_t>(step % plan_.step.slots);
    for (const Touch& touch : touches_[id]) checker_.access(action.track, access_of(plan_, touch, slot), what);
    checker_.access(action.track, workspace_of(plan_, action), what);
}

void StepChecker::signal(ActionId id, uint64_t step) {
    event(id, step) = checker_.record(plan_.step.actions[id].track);
}

void StepChecker::finish(uint64_t step) {
    for (const ActionId id : plan_.step.last) checker_.wait(0, event(id, step));
}

void StepChecker::drain() {
    for (TrackIndex track = 1; track < plan_.step.tracks.size(); ++track)
        checker_.wait(0, VectorClock(checker_.record(track)));
}

std::vector<std::string> check_step(const Plan& plan, uint64_t steps, const std::optional<OmittedWait>& omitted) {
    Step changed = plan.step;
    if (omitted) {
        Action& action = changed.actions.at(omitted->action);
        std::vector<ActionId>& waits = omitted->previous ? action.after_previous : action.after;
        waits.erase(waits.begin() + static_cast<ptrdiff_t>(omitted->index));
    }
    StepChecker checker(plan);
    struct Player {
        const Plan& plan;
        StepChecker& checker;
        uint64_t number;
        bool outputs;
        void wait(ActionId id, ActionId other, uint64_t step) {
            if (plan.step.actions[id].kind != ActionKind::kOutputs || outputs) checker.wait(id, other, step);
        }
        // Outputs are read of the last step alone: others of those under way have none.
        void run(ActionId id) {
            if (plan.step.actions[id].kind != ActionKind::kOutputs || outputs) checker.run(id, number);
        }
        void signal(ActionId id) { checker.signal(id, number); }
    };
    for (uint64_t number = 0; number < steps; ++number) {
        if (number >= plan.step.slots) checker.finish(number - plan.step.slots);
        Player player{plan, checker, number, number + 1 == steps};
        walk_step(changed, number, player);
    }
    return checker.faults();
}

std::string action_name(const Plan& plan, ActionId id) {
    const Action& action = plan.step.actions[id];
    const char* device = plan.devices[plan.step.device_of(action)]->id;
    const auto storage = [&](InstanceId instance) {
        return instance ? plan.graph.storage(plan.instances[instance].storage).name : std::string("inputs");
    };
    switch (action.kind) {
        case ActionKind::kInputs:
            return "writing of inputs on the host";
        case ActionKind::kOutputs:
            return "reading of outputs on the host";
        case ActionKind::kUpload:
            return fmt::format("upload of {} to {}", storage(action.to), device);
        case ActionKind::kDownload:
            return fmt::format("download of {} from {}", storage(action.from), device);
        case ActionKind::kNodes:
            break;
    }
    const auto name = [&](uint32_t node) { return plan.graph.nodes()[plan.nodes[node].node].name; };
    return action.count == 1
               ? fmt::format("{} on {}", name(action.first), device)
               : fmt::format("{} to {} on {}", name(action.first), name(action.first + action.count - 1), device);
}

}  // namespace tessera
