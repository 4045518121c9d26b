#include "core/plan/order.hpp"

#include <algorithm>

namespace tessera {

StepOrder::StepOrder(Step& step)
    : step_(step),
      tracks_(step.tracks.size()),
      track_previous_(step.actions.size(), kNone),
      host_previous_(step.actions.size(), kNone),
      ancestors_(step.actions.size(), ActionSet(step.actions.size())),
      previous_(step.actions.size(), ActionSet(step.actions.size())) {
    ActionId host = kNone;
    for (ActionId id = 0; id < step.actions.size(); ++id) {
        const Action& action = step.actions[id];
        std::vector<ActionId>& track = tracks_[action.track];
        host_previous_[id] = host;
        if (!track.empty()) track_previous_[id] = track.back();
        if (action.kind == ActionKind::kOutputs) continue;
        track.push_back(id);
        if (action.track == 0) host = id;
    }
}

// The ancestors of an action follow from those of the actions that it comes after.
void StepOrder::inherit(ActionId id) {
    const auto follow = [&](ActionId other) {
        if (other == kNone) return;
        ancestors_[id].insert(ancestors_[other]);
        ancestors_[id].insert(other);
    };
    follow(track_previous_[id]);
    follow(host_previous_[id]);
    for (const ActionId other : step_.actions[id].after) follow(other);
}

void StepOrder::inherit_previous(ActionId id) {
    const auto follow_previous = [&](ActionId other) {
        previous_[id].insert(ancestors_[other]);
        previous_[id].insert(other);
    };
    const auto follow = [&](ActionId other) {
        if (other != kNone) previous_[id].insert(previous_[other]);
    };
    const std::vector<ActionId>& track = tracks_[step_.actions[id].track];
    // The first action of a track comes after the last one of the step before, as the host's actions do after its own.
    if (track_previous_[id] == kNone && !track.empty()) follow_previous(track.back());
    if (host_previous_[id] == kNone && !tracks_[0].empty()) follow_previous(tracks_[0].back());
    follow(track_previous_[id]);
    follow(host_previous_[id]);
    for (const ActionId other : step_.actions[id].after) follow(other);
    for (const ActionId other : step_.actions[id].after_previous) follow_previous(other);
}

void StepOrder::add_waits(const Conflict& conflict) {
    for (ActionId id = 0; id < step_.actions.size(); ++id) {
        Action& action = step_.actions[id];
        action.after.clear();
        ancestors_[id] = ActionSet(step_.actions.size());
        inherit(id);
        // Later ones first: what they come after need not be waited for again. What the host did has ended.
        for (ActionId other = id; other-- > 0;) {
            if (step_.actions[other].track == 0 || ancestors_[id].contains(other) || !conflict(other, id)) continue;
            action.after.push_back(other);
            inherit(id);
        }
        // One that was found early may since be implied by another track's.
        std::erase_if(action.after, [&](ActionId one) {
            return std::ranges::any_of(action.after,
                                       [&](ActionId other) { return other != one && before(one, other); });
        });
        std::ranges::sort(action.after);
    }
}

void StepOrder::add_waits_for_previous(const Conflict& conflict) {
    for (ActionId id = 0; id < step_.actions.size(); ++id) {
        Action& action = step_.actions[id];
        action.after_previous.clear();
        previous_[id] = ActionSet(step_.actions.size());
        inherit_previous(id);
        for (auto other = static_cast<ActionId>(step_.actions.size()); other-- > 0;) {
            const Action& earlier = step_.actions[other];
            if (earlier.track == 0 || previous_[id].contains(other) || !conflict(other, id)) continue;
            action.after_previous.push_back(other);
            inherit_previous(id);
        }
        std::erase_if(action.after_previous, [&](ActionId one) {
            return std::ranges::any_of(action.after_previous,
                                       [&](ActionId other) { return other != one && before(one, other); });
        });
        std::ranges::sort(action.after_previous);
    }
}

void StepOrder::finish() {
    step_.last.clear();
    for (Action& action : step_.actions) action.signals = false;
    for (TrackIndex track = 1; track < tracks_.size(); ++track) {
        if (!tracks_[track].empty()) step_.last.push_back(tracks_[track].back());
    }
    for (const ActionId id : step_.last) step_.actions[id].signals = true;
    for (const Action& action : step_.actions) {
        for (const ActionId other : action.after) step_.actions[other].signals = true;
        for (const ActionId other : action.after_previous) step_.actions[other].signals = true;
    }
}

}  // namespace tessera
