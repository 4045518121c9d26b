// Which caches share a page table.
#pragma once

#include "core/plan/plan.hpp"

#include <vector>

namespace tessera {

// Of a graph of primitives, in the order in which nodes write them. Throws Error(TSR_INVALID_ARGUMENT) for a cache that
// is written by two page tables, or has another number of pages than others of its group.
std::vector<CacheGroup> cache_groups_of(const Graph& graph);

// Pages of caches with that rule, of options.cache_pages at most: what every sequence needs at once, as many again for
// beginnings that others share, and the rows of two steps.
uint32_t pages_of_caches(const CacheRule& rule, const ScheduleOptions& options);

}  // namespace tessera
