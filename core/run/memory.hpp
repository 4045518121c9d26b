// Allocates the arenas of a plan: exactly the planned bytes.
#pragma once

#include "core/plan/plan.hpp"
#include "core/run/host_memory.hpp"
#include "core/run/open_device.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class PlanMemory {
  public:
    // Throws Error(TSR_DOES_NOT_FIT) naming device and bytes. `plan` outlives this.
    PlanMemory(const Plan& plan, const Registry& registry);

    // Start of an instance; an address of its device. Inputs on the host: in that slot's block. Instances in loading
    // memory and in mapped files have none here.
    void* address(const Instance& instance, uint32_t slot = 0) const;
    // The block of inputs; on devices there is one, whatever the slot.
    std::byte* input_block(DeviceIndex device, uint32_t slot = 0) const;
    void* workspace(DeviceIndex device) const { return arenas_[device].workspace; }
    // Where rows are packed on a device while loading: DeviceMemory::packing bytes, until release_loading.
    void* packing(DeviceIndex device) const { return arenas_[device].packing; }
    // For init nodes of a device: DeviceMemory::deriving bytes, as long as no step has begun.
    void* deriving(DeviceIndex device) const { return arenas_[device].deriving; }
    // For experts that are copied to a device; nullptr where none are.
    void* streaming(DeviceIndex device) const { return arenas_[device].streaming; }
    std::byte* host_streaming() const { return host_streaming_.data; }
    // Gives back what only loading needed on devices. No work may be under way.
    void release_loading() noexcept;
    // A line for each device on which more than context_bytes is gone beside the arenas.
    std::vector<std::string> context_notes() const;
    // nullptr for the CPU, and for devices that the plan does not use.
    OpenDevice* device(DeviceIndex device) const { return devices_[device].get(); }

    // Writes to every page of the host's arenas, so that the system has committed them before the first step.
    void touch_host();
    // Page-locks the host memory that devices copy from and to, or replaces it by page-locked memory of a device, where
    // devices offer either. False if a device can do neither. Addresses of activations, inputs and staging on the host
    // may change: called before they are used.
    bool pin_host();
    // Locks the host's arenas in memory. False if the system allows only part of it.
    bool lock_host() const;

  private:
    struct Arenas {
        void* weights = nullptr;
        void* cache = nullptr;
        void* activations = nullptr;
        void* workspace = nullptr;
        void* packing = nullptr;
        void* deriving = nullptr;
        void* streaming = nullptr;
        void* loading = nullptr;  // what `packing` has of its own
    };

    // Host memory that devices copy from and to: the host's own, or page-locked memory of a device.
    struct CopiedBlock {
        HostBlock block;
        std::byte* data = nullptr;
        uint64_t bytes = 0;

        CopiedBlock() = default;
        CopiedBlock(uint64_t size, std::string_view what) : block(size, what), data(block.data()), bytes(size) {}
        bool pin(OpenDevice& device, bool replaceable);
    };

    // Of those that were opened.
    bool is_first_of_card(DeviceIndex device) const;

    const Plan& plan_;
    // Host memory is released after the devices that may have page-locked it.
    HostBlock host_weights_, host_cache_, host_workspace_;
    CopiedBlock host_activations_, host_staging_, host_streaming_;
    std::vector<std::unique_ptr<OpenDevice>> devices_;
    std::vector<Arenas> arenas_;
    std::vector<std::optional<uint64_t>> free_before_;  // bytes of each card before one was opened
};

}  // namespace tessera
