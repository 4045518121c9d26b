#include "core/plan/packing.hpp"

#include "core/base/checked.hpp"
#include "core/base/error.hpp"
#include "core/graph/types.hpp"
#include "core/plan/arena.hpp"
#include "core/plan/init_nodes.hpp"

#include <tessera/cpp/plan_fault.hpp>

namespace tessera {
namespace {

uint64_t aligned(uint64_t bytes, uint64_t alignment) {
    return checked_align_up(bytes, alignment, "bytes for loading");
}

// Operands of an init node on the host, and after them its workspace, or what unpacks its inputs before it runs.
uint64_t init_bytes(const Plan& plan, const PlannedNode& node, const Registry& registry) {
    uint64_t bytes = 0, after = node.workspace_bytes;
    for (const InstanceId id : node.operands) {
        if (id == 0) continue;
        bytes = checked_add(bytes, aligned(plan.instances[id].bytes, kHostAlignment), "bytes for loading");
        after = std::max(after, unpacking_bytes(plan.graph.storage(plan.instances[id].storage), registry));
    }
    return checked_add(bytes, after, "bytes for loading");
}

}  // namespace

Packing::Packing(const Storage& weight, const std::string& name, const tsr_device_info& device,
                 const Registry& registry)
    : elements(weight.row_elements) {
    const uint64_t row = row_bytes(weight.type, elements);
    rows = weight.bytes / row;
    canonical_bytes = packed_bytes = row;
    if (name.empty()) return;
    const tsr_layout* known = registry.find_layout(name);
    if (!known) fail(TSR_INTERNAL, "{}: no plugin brings the layout '{}'", weight.name, name);
    layout = registry.find_device_layout(name, registry.interop_of(device));
    on = layout ? PackedOn::kDevice : PackedOn::kHost;
    if (!layout) layout = known;
    group_rows = layout->group_rows;
    if (layout->type != weight.type) {
        fail(TSR_INTERNAL, "{}: rows of {} cannot be packed as '{}', a layout of {}", weight.name,
             type_info(weight.type).name, name, type_info(layout->type).name);
    }
    if (on == PackedOn::kHost && !layout->pack)
        fail(TSR_INTERNAL, "{}: no plugin packs rows as '{}' for {}", weight.name, name, device.id);
    const auto group_bytes = [&] {
        packed_bytes = call_plugin(registry.call(*layout, "group_bytes"),
                                   [&] { return layout->group_bytes(layout, static_cast<int64_t>(elements)); });
        return packed_bytes;
    };
    if (std::string why = sdk::packing_fault(*layout, rows, elements, group_bytes); !why.empty())
        fail(TSR_INTERNAL, "{}: layout '{}' cannot hold {}", weight.name, name, why);
    canonical_bytes = checked_mul(row, group_rows, "bytes of a group of rows");
    call = registry.call(*layout, on == PackedOn::kDevice ? "enqueue_pack" : "pack");
}

Packing::Packing(const Plan& plan, const Registry& registry, const Instance& instance)
    : Packing(plan.graph.storage(instance.storage), instance.layout, *plan.devices[instance.device], registry) {}

void Packing::pack(std::span<const std::byte> rows_of_groups, std::byte* to) const {
    call_plugin(call, [&] {
        layout->pack(layout, static_cast<int64_t>(elements),
                     static_cast<int64_t>(rows_of_groups.size() / canonical_bytes), rows_of_groups.data(), to);
    });
}

bool holds_source_bytes(const Plan& plan, const Instance& instance) {
    const Storage& storage = plan.graph.storage(instance.storage);
    return instance.place == Place::kMapped || instance.place == Place::kDeferred ||
           (!storage.derived && instance.layout == storage.source_layout);
}

uint64_t unpacking_bytes(const Storage& weight, const Registry& registry) {
    const tsr_layout* layout = weight.source_layout.empty() ? nullptr : registry.find_layout(weight.source_layout);
    if (!layout) return 0;
    constexpr uint64_t kMinimum = 128 << 10;  // so that reads of files are of some size
    const uint64_t row = row_bytes(weight.type, weight.row_elements);
    const uint64_t group = checked_mul(row, uint64_t{layout->group_rows}, "bytes of a group of rows");
    return std::max(kMinimum, checked_mul(group, uint64_t{2}, "bytes for loading"));
}

void reserve_loading(Plan& plan, const Registry& registry) {
    LoadingBuffers& buffers = plan.loading;
    buffers = {};
    std::vector<uint64_t> staged(plan.devices.size(), 0);
    for (const InstanceId id : plan.deferred) plan.instances[id].packed_on = PackedOn::kHost;
    // Pieces are of one size, so that of the largest group is known before what a piece of packed groups takes.
    for (const bool sizes : {false, true}) {
        for (Instance& it : plan.instances) {
            // Init nodes of devices are given canonical copies through pieces as well.
            const bool loading = it.place == Place::kLoading;
            if (it.storage == 0 || (loading && it.device == 0) ||
                plan.graph.storage(it.storage).role != TSR_ROLE_WEIGHT || (!loading && holds_source_bytes(plan, it)))
                continue;
            const Packing packing(plan, registry, it);
            if (!sizes) it.packed_on = packing.on;
            if (is_made_there(plan, it)) continue;
            if (!sizes) {
                const uint64_t unpacking = unpacking_bytes(plan.graph.storage(it.storage), registry);
                buffers.piece =
                    std::max(buffers.piece, checked_add(packing.canonical_bytes, unpacking, "bytes for loading"));
                continue;
            }
            if (it.device == 0 || !packing.layout) continue;
            const uint64_t groups = packing.groups_of(buffers.piece);
            uint64_t& bytes = it.packed_on == PackedOn::kDevice ? staged[it.device] : buffers.packed;
            bytes = std::max(
                bytes,
                checked_mul(groups, it.packed_on == PackedOn::kDevice ? packing.canonical_bytes : packing.packed_bytes,
                            "bytes for packing"));
        }
    }
    uint64_t first = buffers.piece;
    for (const PlannedNode& node : plan.init_nodes) {
        if (node.device == 0) first = std::max(first, init_bytes(plan, node, registry));
    }
    buffers.packed = aligned(buffers.packed, kDeviceAlignment);
    // Devices are loaded before the host, by one thread.
    const uint64_t threads = std::max<uint64_t>(plan.devices[0]->threads, 1);
    plan.memory[0].loading =
        std::max(checked_mul(buffers.piece, threads, "bytes for loading"),
                 checked_add(aligned(first, kDeviceAlignment), buffers.packed, "bytes for loading"));
    for (DeviceIndex device = 1; device < plan.devices.size(); ++device) {
        DeviceMemory& memory = plan.memory[device];
        memory.packing = aligned(staged[device], kDeviceAlignment);
        const bool has_room = memory.packing <= std::max(memory.activations, memory.workspace);
        memory.loading = has_room ? 0 : memory.packing;
    }
}

}  // namespace tessera
