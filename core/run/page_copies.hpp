// Copies of whole pages: within caches, out of them and into them.
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

    // Of a page in every cache of the group, one after the other, in the order of the caches' names.
    uint64_t page_bytes(uint32_t group) const;
    // page_bytes() of a page to or from host memory, after what is on the devices' queues; done on return. Throws
    // Error naming the cache and bytes; no copy is under way then.
    void download(uint32_t group, uint32_t page, std::span<std::byte> to) const;
    void upload(uint32_t group, uint32_t page, std::span<const std::byte> from) const;

  private:
    template <typename Copy>
    void each_part(uint32_t group, uint32_t page, Copy&& copy) const;

    const Plan& plan_;
    const PlanMemory& memory_;
    const Tracks& tracks_;
    std::vector<std::vector<InstanceId>> instances_;  // of each group
};

}  // namespace tessera
