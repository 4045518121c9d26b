// Iterates over the actions of a step: for the executor, and for the checker of its order.
#pragma once

#include "core/plan/step.hpp"

namespace tessera {

// Calls, for each action in the order of the list, visitor.wait(action, other, step) for all that it comes after, then
// visitor.run(action), then visitor.signal(action) if it is waited for. `number` counts steps from 0.
template <typename Visitor>
void walk_step(const Step& step, uint64_t number, Visitor& visitor) {
    for (ActionId id = 0; id < step.actions.size(); ++id) {
        const Action& action = step.actions[id];
        if (number > 0) {
            for (const ActionId other : action.after_previous) visitor.wait(id, other, number - 1);
        }
        for (const ActionId other : action.after) visitor.wait(id, other, number);
        visitor.run(id);
        if (action.signals && action.track != 0) visitor.signal(id);
    }
}

}  // namespace tessera
