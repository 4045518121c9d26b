#include "core/run/packing.hpp"

#include "core/graph/types.hpp"

namespace tessera {

Packing::Packing(const Plan& plan, const Registry& registry, const Instance& instance)
    : layout(instance.layout.empty() ? nullptr : registry.find_layout(instance.layout)) {
    const Storage& storage = plan.graph.storage(instance.storage);
    elements = storage.row_elements;
    const uint64_t row = row_bytes(storage.type, elements);
    rows = storage.bytes / row;
    group_rows = layout ? layout->group_rows : 1;
    canonical_bytes = row * group_rows;
    packed_bytes = canonical_bytes;
    if (!layout) return;
    packing = registry.call(*layout, "pack");
    packed_bytes = call_plugin(registry.call(*layout, "group_bytes"),
                               [&] { return layout->group_bytes(layout, static_cast<int64_t>(elements)); });
}

void Packing::pack(std::span<const std::byte> rows_of_groups, std::byte* to) const {
    call_plugin(packing, [&] {
        layout->pack(layout, static_cast<int64_t>(elements),
                     static_cast<int64_t>(rows_of_groups.size() / canonical_bytes), rows_of_groups.data(), to);
    });
}

}  // namespace tessera
