// What a value of a graph is computed from.
#pragma once

#include "core/graph/graph.hpp"

#include <set>

namespace tessera {

// The storages that `value` depends on, its own among them.
std::set<StorageId> storages_needed_by(const Graph& graph, Value value);

}  // namespace tessera
