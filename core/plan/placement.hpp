// The device of each weight: the user's rules first, then what the flags say, the rest in the memory that is
// given.
#pragma once

#include "core/graph/graph.hpp"
#include "core/plan/options.hpp"

#include <tessera/device.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera {

struct Placement {
    std::vector<uint32_t> storage_device;  // a storage of the model's graph each; 0 is the CPU
    std::vector<int32_t> storage_rule;     // the user's rule that placed it, in PlacementOptions::rules; -1: none
    std::vector<uint32_t> layer_device;    // a layer each; the last entry is for nodes past the last layer
    std::vector<std::string> notes;

    // Whether every weight of a layer lies on another device than the CPU.
    bool layers_on_devices(const Graph& model) const;

    uint32_t device_of_layer(int layer) const {
        return layer >= 0 && static_cast<size_t>(layer) < layer_device.size() ? layer_device[layer] : 0;
    }
};

// Bytes that weights and caches may take of each device; 0 of one that is not to be used. That of the CPU is not looked
// at: it takes what is left.
struct Room {
    std::vector<uint64_t> bytes;
    std::vector<uint64_t> layer_cache;  // bytes of each layer's cache

    // Where the parts of a layer that every token reads go, before any routed experts.
    enum class Shape : uint8_t {
        kSpread,   // neighbouring layers on each device, as many as leave its share of the experts room beside them
        kStacked,  // on the first devices alone; the others hold experts
        // Whole layers, as kSpread where all find room, but so that no device has longer to compute than it must:
        // chunks of a prompt follow each other as fast as the device with most to do allows. By layer_seconds.
        kBalanced,
    };
    Shape shape = Shape::kSpread;
    std::vector<std::vector<double>> layer_seconds;  // of a prompt's step, by device and layer
    std::vector<uint32_t> order;                     // devices but the CPU, in the order in which they are filled
};

// Places weights whole: a stack of experts is one weight, but gate, up and down of a layer are three. Experts that find
// no room lie on the CPU. Throws Error: TSR_NOT_FOUND for a rule naming a device that is not there (listing those that
// are), TSR_INVALID_ARGUMENT for a malformed regular expression.
Placement place(const Graph& model, std::span<const tsr_device_info* const> devices, const PlacementOptions& asked,
                const Room& room);

// As -ngl, -ts and --n-cpu-moe say it, whatever fits.
Placement place_as_asked(const Graph& model, std::span<const tsr_device_info* const> devices,
                         const PlacementOptions& asked, const Room& room);

// Storages of weights with one matrix an expert, by storage.
std::vector<bool> find_experts(const Graph& model);

// The weight whose rows are looked up before the first layer; 0: there is none.
StorageId find_embedding(const Graph& model);

}  // namespace tessera
