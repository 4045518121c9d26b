#include "core/plan/cache_groups.hpp"

#include "core/base/error.hpp"

#include <tessera/ops.h>

#include <algorithm>

namespace tessera {
namespace {

constexpr size_t kPageTableOperand = 3;  // of TSR_OP_CACHE_WRITE

CacheGroup& group_of(const Graph& graph, std::vector<CacheGroup>& groups, StorageId page_table) {
    const auto at = std::ranges::find(groups, page_table, &CacheGroup::page_table);
    if (at != groups.end()) return *at;
    groups.push_back({page_table, graph.storage(page_table).caches, 0, {}});
    return groups.back();
}

}  // namespace

std::vector<CacheGroup> cache_groups_of(const Graph& graph) {
    std::vector<CacheGroup> groups;
    for (const Node& node : graph.nodes()) {
        if (node.op != TSR_OP_CACHE_WRITE || node.inputs.size() <= kPageTableOperand || node.outputs.empty()) continue;
        CacheGroup& group = group_of(graph, groups, graph.storage_of(node.inputs[kPageTableOperand]));
        const StorageId cache = graph.storage_of(node.outputs.front());
        const Storage& storage = graph.storage(cache);
        for (const CacheGroup& other : groups) {
            if (&other != &group && std::ranges::find(other.caches, cache) != other.caches.end())
                fail(TSR_INVALID_ARGUMENT, "{}: its rows are written by two page tables, {} and {}", storage.name,
                     graph.storage(other.page_table).name, graph.storage(group.page_table).name);
        }
        const auto pages = static_cast<uint32_t>(storage.bytes / storage.row_bytes);
        if (group.caches.empty()) group.pages = pages;
        if (pages != group.pages)
            fail(TSR_INVALID_ARGUMENT, "{}: it has {} pages, others with the page table {} have {}", storage.name,
                 pages, graph.storage(group.page_table).name, group.pages);
        if (std::ranges::find(group.caches, cache) == group.caches.end()) group.caches.push_back(cache);
    }
    return groups;
}

uint32_t pages_of_caches(const CacheRule& rule, const ScheduleOptions& options) {
    if (rule.keeps_all()) return options.cache_pages;
    // A page more for each sequence: one that is shared in part is copied before it is written.
    const uint64_t sequences = options.max_sequences * (2 * rule.pages_of_sequence(0) + 1);
    const uint64_t pages = sequences + pages_for(2 * uint64_t{options.max_rows}) + options.max_sequences;
    return static_cast<uint32_t>(std::min<uint64_t>(pages, options.cache_pages));
}

}  // namespace tessera
