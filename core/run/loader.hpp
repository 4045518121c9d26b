// Loads weights from their source into the arenas of a plan: read, packed into the layout of their kernels, derived.
#pragma once

#include "core/plan/plan.hpp"
#include "core/run/memory.hpp"
#include "core/run/team.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace tessera {

// Where weights come from, by the names of the graph's weights: in the canonical layout, or in Storage::source_layout
// where that is set.
class WeightSource {
  public:
    virtual ~WeightSource() = default;
    // Fills `to` from byte `offset` of the weight on. Several threads at once. Throws Error(TSR_IO_ERROR).
    virtual void read(const std::string& name, uint64_t offset, std::span<std::byte> to) const = 0;
    // The weight in the mapped file; nullptr if the source does not map. Valid as long as the source.
    virtual const std::byte* mapped(const std::string& name) const = 0;
    // A range of the weight in the mapped file, with its pages resident; empty if the source maps nothing, and read()
    // has to be used. Pages that are released no longer count as resident. Several threads at once. Throws
    // Error(TSR_IO_ERROR).
    virtual std::span<const std::byte> acquire(const std::string&, uint64_t, uint64_t) const { return {}; }
    virtual void release(const std::string&, uint64_t, uint64_t) const {}
};

// Canonical bytes from byte `offset` of the weight on. Rows that the source interleaves are unpacked through
// `scratch`, which has unpacking_bytes. Throws Error: what the source throws; TSR_UNSUPPORTED if no plugin unpacks
// them.
void read_rows(const WeightSource& source, const Registry& registry, const Storage& weight, uint64_t offset,
               std::span<std::byte> to, std::span<std::byte> scratch);

// Called from the loading thread, a few times a second at most, and at the end. What it throws ends loading.
using LoadProgress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

// Runs init nodes and fills every weight instance of the plan. Throws what the source throws.
void load_weights(const Plan& plan, const Registry& registry, PlanMemory& memory, const WeightSource& source,
                  Team& team, const LoadProgress& progress);

}  // namespace tessera
