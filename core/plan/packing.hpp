// How the canonical rows of a weight become the bytes of one of its instances, and what memory that takes.
#pragma once

#include "core/plan/plan.hpp"
#include "core/registry/registry.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tessera {

struct Packing {
    PackedOn on = PackedOn::kNowhere;
    const tsr_layout* layout = nullptr;  // whose functions pack; null: rows as they are
    uint64_t elements = 0;               // of a row
    uint64_t rows = 0;
    uint64_t group_rows = 1;
    uint64_t canonical_bytes = 0;  // of a group
    uint64_t packed_bytes = 0;     // of a group
    PluginCall call{};             // of the function that packs

    // Throws Error(TSR_INTERNAL) if the layout is not known, or its groups do not fit the weight.
    Packing(const Storage& weight, const std::string& layout, const tsr_device_info& device, const Registry& registry);
    Packing(const Plan& plan, const Registry& registry, const Instance& instance);

    uint64_t groups() const noexcept { return rows / group_rows; }
    // Groups of at most `bytes` canonical bytes together, but one at least and no more than there are.
    uint64_t groups_of(uint64_t bytes) const noexcept {
        return std::clamp<uint64_t>(bytes / canonical_bytes, 1, std::max<uint64_t>(groups(), 1));
    }
    // Packs canonical rows, whole groups of them, on the host.
    void pack(std::span<const std::byte> rows_of_groups, std::byte* to) const;
};

// Whether the instance holds what its source has, so that nothing is converted.
bool holds_source_bytes(const Plan& plan, const Instance& instance);

// Bytes through which rows are unpacked that the source of a weight interleaves; 0 for other sources.
uint64_t unpacking_bytes(const Storage& weight, const Registry& registry);

// Fills in the memory that loading takes: Plan::loading and the `loading` of all devices. All else is planned already.
void reserve_loading(Plan& plan, const Registry& registry);

}  // namespace tessera
