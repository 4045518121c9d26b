// How the rows of a weight become the bytes of one of its instances, and how many of them are worked on at a time.
#pragma once

#include "core/plan/plan.hpp"
#include "core/registry/registry.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera {

struct Packing {
    const tsr_layout* layout;  // null: rows as they are
    uint64_t elements;         // of a row
    uint64_t rows;
    uint64_t group_rows;
    uint64_t canonical_bytes;  // of a group
    uint64_t packed_bytes;     // of a group
    PluginCall packing;        // a call of the layout's pack

    Packing(const Plan& plan, const Registry& registry, const Instance& instance);

    uint64_t groups() const noexcept { return rows / group_rows; }
    // Groups of at most `bytes` canonical bytes together, but one at least.
    uint64_t groups_of(uint64_t bytes) const noexcept { return std::max<uint64_t>(bytes / canonical_bytes, 1); }
    // Packs canonical rows, whole groups of them.
    void pack(std::span<const std::byte> rows_of_groups, std::byte* to) const;
};

}  // namespace tessera
