// What the actions of a step read and write.
#pragma once

#include "core/plan/plan.hpp"

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// An instance, or the block of inputs of a device.
struct Touch {
    uint32_t what = 0;
    bool writes = false;

    auto operator<=>(const Touch&) const = default;
};

// By `what`, each once. Weights are constant and not among them.
std::vector<Touch> touches_of(const Plan& plan, const Action& action);

// Bytes of one arena of one device.
struct Access {
    uint32_t arena = 0;  // distinct for each kind of memory of each device
    uint64_t begin = 0, end = 0;
    bool writes = false;

    bool overlaps(const Access& other) const { return arena == other.arena && begin < other.end && other.begin < end; }
};

// The planned address of that access. Block `slot` of inputs on the host follows the first by `slot` blocks.
Access access_of(const Plan& plan, const Touch& touch, uint32_t slot = 0);
// The scratch memory of the nodes of an action; an empty range for other actions.
Access workspace_of(const Plan& plan, const Action& action);

// "CUDA0, activations", of Access::arena.
std::string arena_name(const Plan& plan, uint32_t arena);

// Whether the actions touch the same instance and one of them writes to it.
bool conflict_in_step(const std::vector<Touch>& a, const std::vector<Touch>& b);

}  // namespace tessera
