// Rows of a weight from its source, in parts that can be packed.
#pragma once

#include "core/plan/packing.hpp"
#include "core/run/loader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera {

// Fetches canonical rows of groups [first, first + groups) of a weight, calls use(group, rows) with them part by part,
// each a number of whole groups, and releases what it acquired. Mapped rows are used where they are; others are read to
// `buffer`, which has room for a group and for unpacking_bytes, in parts that stay in the second-level cache. Without a
// buffer the source has to map its weights. Throws what the source throws.
template <typename Use>
void fetch_groups(const WeightSource& source, const Registry& registry, const Storage& weight, const Packing& packing,
                  uint64_t first, uint64_t groups, std::span<std::byte> buffer, Use&& use) {
    constexpr uint64_t kReadAtOnce = 256 << 10;
    const uint64_t offset = first * packing.canonical_bytes, bytes = groups * packing.canonical_bytes;
    if (weight.source_layout.empty()) {
        std::span<const std::byte> rows = source.acquire(weight.name, offset, bytes);
        if (rows.empty() && buffer.empty()) rows = {source.mapped(weight.name) + offset, bytes};
        if (!rows.empty()) {
            use(first, rows);
            source.release(weight.name, offset, bytes);
            return;
        }
    }
    const std::span<std::byte> scratch = buffer.last(unpacking_bytes(weight, registry));
    const uint64_t at_once = packing.groups_of(std::min<uint64_t>(kReadAtOnce, buffer.size() - scratch.size()));
    for (uint64_t group = 0; group < groups; group += at_once) {
        const auto rows = buffer.first(std::min(at_once, groups - group) * packing.canonical_bytes);
        read_rows(source, registry, weight, offset + group * packing.canonical_bytes, rows, scratch);
        use(first + group, std::span<const std::byte>(rows));
    }
}

}  // namespace tessera
