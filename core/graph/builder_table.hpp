// The host's side of tsr_builder: what a plugin writes goes into a graph.
#pragma once

#include "core/graph/graph.hpp"

#include <tessera/graph.h>

#include <cstdint>
#include <span>

namespace tessera {

// Of one call. All that it points to outlives the table.
struct BuilderSession {
    Graph& graph;
    std::span<const Value> inputs, caches;
    std::span<Value> outputs;  // what the plugin says they are; 0 before
    uint32_t abi_minor;        // of the plugin: its structs are no longer than those of that version
    bool only_run = false;     // nodes of the other stage are refused
};

// Throws Error(TSR_INVALID_ARGUMENT) if the graph has more tensors than any model needs: a plugin that adds them for
// ever gets an error.
void require_room(const Graph& graph);

tsr_builder builder_table(BuilderSession& session) noexcept;

}  // namespace tessera
