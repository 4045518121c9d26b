// The lowerings that may replace a node: the core's own and those that plugins bring.
#pragma once

#include "core/plan/options.hpp"
#include "core/registry/registry.hpp"

#include <tessera/graph.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// A lowering with the plugin that brings it; "core" for the core's own.
struct LoweringCandidate {
    const tsr_lowering* lowering = nullptr;
    std::string plugin;
    uint32_t abi_minor = 0;
    uint32_t preference = 0;  // of the plugin in the configuration: the smaller goes first
    bool is_named = false;    // the user named it

    // "lowering PLUGIN/NAME (its summary)"; a plugin may bring several of one name.
    std::string text() const;
};

// Lowerings of the op, best first: the one that the user named, then by the configuration's preference of plugins, then
// by priority.
std::vector<LoweringCandidate> lowering_candidates(const tsr_operator& op, const Registry& registry,
                                                   const ScheduleOptions& options);

}  // namespace tessera
