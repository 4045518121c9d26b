// Which device each weight lies on: the user's rules first, the rest fitted to the memory that is there.
#pragma once

#include "core/graph/graph.hpp"
#include "core/plan/options.hpp"

#include <tessera/device.h>

#include <span>
#include <string>
#include <vector>

namespace tessera {

struct Placement {
    std::vector<uint32_t> storage_device;  // a storage of the model's graph each; 0 is the CPU
    std::vector<uint32_t> layer_device;    // a layer each; the last entry is for nodes past the last layer
    std::vector<std::string> notes;

    uint32_t device_of_layer(int layer) const {
        return layer >= 0 && static_cast<size_t>(layer) < layer_device.size() ? layer_device[layer] : 0;
    }
};

// Throws Error: TSR_NOT_FOUND for a rule naming a device that is not there (listing those that are),
// TSR_INVALID_ARGUMENT for a malformed regular expression. `cache_bytes_layer`: what the cache of one layer takes, for
// fitting.
Placement place(const Graph& model, std::span<const tsr_device_info* const> devices, const ScheduleOptions& options,
                uint64_t cache_bytes_layer);

}  // namespace tessera
