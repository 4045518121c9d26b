// The host's side of tsr_builder: a lowering writes into a graph of its own.
#pragma once

#include "core/graph/graph.hpp"
#include "core/plan/options.hpp"

#include <tessera/graph.h>

#include <string>
#include <vector>

namespace tessera {

// What a lowering wrote for one node. The graph holds copies of the node's operands first.
struct Written {
    Graph graph;
    std::vector<Value> inputs;        // of the lowered node, in `graph`
    std::vector<StorageId> storages;  // by storage of the node's graph: the copy in `graph`, 0 if none
    std::vector<Value> outputs;       // of the lowered node, in `graph`
};

// Who brings a lowering.
struct LoweringOwner {
    const char* plugin;  // its name, which outlives the call; "(core)" for the core's own
    uint32_t abi_minor;  // the version that it was built for
};

// Runs the lowering for `node` of `from`. Throws Error with the
// code and message of a lowering that declines.
Written write_lowering(const Graph& from, const Node& node, const tsr_lowering& lowering, const LoweringOwner& owner,
                       const ScheduleOptions& options, bool derive_weights);

}  // namespace tessera
