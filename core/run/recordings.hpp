// Recordings of generation steps: for each bucket of rows and tokens and each run of nodes on a device, what the
// kernels put on its queue, captured once and replayed.
#pragma once

#include "core/registry/registry.hpp"
#include "core/run/prepared_node.hpp"
#include "core/run/step_bounds.hpp"
#include "core/run/tracks.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

class Recordings {
  public:
    // Puts the nodes of an action on its queue, for these bounds.
    using Enqueue = std::function<void(ActionId, const StepBounds&)>;

    // Records what `enqueue` does for steps of 1, 2, 4, ... rows up to `maximum_rows`, each of sequences of up to 4,096
    // tokens and of any length, on every device that offers it. A device that refuses has none, which is a warning in
    // the log, with what it costs if the kernels' plugin says it. Called when each node has run once.
    void record(const Plan& plan, const Registry& registry, const Tracks& tracks, int32_t maximum_rows,
                const Enqueue& enqueue);

    // The bounds to which those of a step are rounded up; its own if nothing is recorded for it.
    StepBounds bounds_of(const StepBounds& step) const;
    // nullptr: there is none.
    tsr_recording find(ActionId action, const StepBounds& bounds) const;

  private:
    struct Bucket {
        StepBounds bounds;
        std::vector<tsr_recording> actions;  // an action each
    };
    std::vector<Bucket> buckets_;  // by rising rows, then tokens
};

}  // namespace tessera
