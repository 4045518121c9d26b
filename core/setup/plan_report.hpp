// What reports on a plan are made of.
#pragma once

#include "core/registry/registry.hpp"
#include "core/session/engine.hpp"
#include "core/setup/earlier_runs.hpp"
#include "core/setup/model_sizes.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct PlanReport {
    std::string path;
    std::string machine;  // the rig's file; empty: this machine
    ModelSizes sizes;
    PlannedModel planned;
    const Registry& registry;
    uint32_t largest_context = 0;  // with all else as it is; 0: none fits
    std::vector<std::string> remarks;
    EarlierRuns earlier = {};  // none for a rig
};

struct Excess {
    DeviceIndex device;
    uint64_t bytes;  // more than the device has
};
std::vector<Excess> excess_of(const Plan& plan);

// The smallest limit on attention's scratch (-amb) that every kernel of the plan accepts.
uint64_t minimum_scratch(const Plan& plan);

// Whether mapped weights are more than what the CPU's memory has left beside what is allocated, by how many bytes.
uint64_t mapped_excess(const Plan& plan);

}  // namespace tessera
