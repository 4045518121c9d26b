// Where init nodes run: on the devices that hold what they make, or on the host.
#pragma once

#include "core/plan/plan.hpp"
#include "core/registry/registry.hpp"

#include <vector>

namespace tessera {

// Where an init node of a device finds what it reads and writes there, but for weights that are used where they lie:
// offsets in the DeviceMemory::deriving of its device.
struct InitMemory {
    std::vector<uint64_t> operands;  // of each that is in loading memory; others 0
    uint64_t workspace = 0;
    uint64_t bytes = 0;  // of all; the ranges of the launch are at its beginning
};
// Throws Error(TSR_CORRUPT_DATA) for sizes that overflow.
InitMemory init_memory(const Plan& plan, const PlannedNode& node);

// Whether an init node makes the instance on its own device, so that nothing is copied there.
bool is_made_there(const Plan& plan, const Instance& instance);

// Fills in Plan::init_nodes, whose entries are for the host and have no operands yet: those of the host first, then
// those of devices, in the order of the graph. A node runs on each device that has its results, if a kernel there takes
// canonical operands, what it needs beside weights fits where steps have their activations or workspace later, and it
// is not slower, by estimate, than a run on the host and the copy of the results; for results that are left, on the
// host. All memory of steps, and all weights, have their places already. Throws Error(TSR_UNSUPPORTED) for a node of
// the host that reads what another one makes.
void plan_init_nodes(Plan& plan, const Registry& registry);

}  // namespace tessera
