// Weights that are packed between steps instead of before the first one (Plan::deferred): the first answer does not
// wait for them, and each is as fast as ever once it is packed.
#pragma once

#include "core/plan/plan.hpp"
#include "core/run/loader.hpp"
#include "core/run/memory.hpp"
#include "core/run/team.hpp"

#include <cstdint>
#include <vector>

namespace tessera {

struct PackingProgress {
    uint64_t done_bytes = 0;  // as the file has them
    uint64_t total_bytes = 0;
    double seconds = 0;
};

// One thread at a time. All arguments outlive it.
class DeferredWeights {
  public:
    DeferredWeights(const Plan& plan, const Registry& registry, PlanMemory& memory, Team& team);

    bool empty() const noexcept { return next_ == plan_.deferred.size(); }
    // Whether kernels still read this instance's weight in the mapped file, canonical.
    bool waits(InstanceId id) const { return waits_[id]; }
    const PackingProgress& progress() const noexcept { return progress_; }

    // Packs the next one, with the whole team, and releases the file's pages; returns which it was. At least one must
    // be left. Throws what the source throws; the weight is then packed later.
    InstanceId pack_next(const WeightSource& source);

  private:
    const Plan& plan_;
    const Registry& registry_;
    PlanMemory& memory_;
    Team& team_;
    std::vector<bool> waits_;  // by instance
    size_t next_ = 0;          // in plan_.deferred
    PackingProgress progress_;
};

}  // namespace tessera
