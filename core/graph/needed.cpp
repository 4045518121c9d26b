#include "core/graph/needed.hpp"

#include <algorithm>

namespace tessera {

std::set<StorageId> storages_needed_by(const Graph& graph, Value value) {
    std::set<StorageId> needed = {graph.storage_of(value)};
    for (size_t i = graph.nodes().size(); i-- > 0;) {
        const Node& node = graph.nodes()[i];
        const auto is_needed = [&](Value one) { return one && needed.contains(graph.storage_of(one)); };
        if (std::ranges::none_of(node.outputs, is_needed)) continue;
        for (const Value one : node.inputs) {
            if (one) needed.insert(graph.storage_of(one));
        }
    }
    return needed;
}

}  // namespace tessera
