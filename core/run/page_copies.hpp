// Copies of whole pages within caches.
#pragma once

#include "core/run/memory.hpp"
#include "core/run/tracks.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tessera {

class PageCopies {
  public:
    // All outlive this.
    PageCopies(const Plan& plan, const PlanMemory& memory, const Tracks& tracks);

    // {from, to} in every cache of the group. Those on devices are put on their queues, so that later steps come after
    // them; those on the host are done on return. Throws Error naming the cache and bytes.
    void enqueue(uint32_t group, std::span<const std::pair<uint32_t, uint32_t>> pages) const;

  private:
    const Plan& plan_;
    const PlanMemory& memory_;
    const Tracks& tracks_;
    std::vector<std::vector<InstanceId>> instances_;  // of each group
};

}  // namespace tessera
