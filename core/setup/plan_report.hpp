// A plan as people and programs read it.
#pragma once

#include "core/registry/registry.hpp"
#include "core/session/engine.hpp"
#include "core/setup/model_sizes.hpp"

#include <boost/json/object.hpp>

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

// A constant of the prediction that nobody has measured on such a device: of kernels' estimates, as their plugin says
// (tessera/extensions/estimate_constants.h), or the core's own.
struct AssumedConstant {
    std::string plugin, device;  // "core", "" of the core's
    std::string name, unit;      // "graph node", "us"
    double value;
};
std::vector<AssumedConstant> assumed_constants(const PlanReport& report);
// All of them as one line; empty if there are none.
std::string assumed_line(const PlanReport& report);

std::string plan_text(const PlanReport& report, bool why);
boost::json::object plan_json(const PlanReport& report);

// Element types that the caches have: "q8_0", "q8_0 and f16".
std::string cache_types(const Plan& plan);
// Why the cache holds more than the context that was asked for; empty where it does not.
std::string further_pages(const Plan& plan);
// Bytes of each device by what they are for, as a table.
std::string memory_text(const Plan& plan);
// "mla_attention: variant 3 of mla, layers 0-26, CPU", ..., one line each.
std::vector<std::string> lowering_lines(const Plan& plan);
// Which experts of the CPU are computed on which device in steps of many rows.
std::vector<std::string> streaming_lines(const Plan& plan);

}  // namespace tessera
