#include "core/run/init_runner.hpp"

#include "core/base/checked.hpp"
#include "core/plan/init_nodes.hpp"
#include "core/registry/plugin_log.hpp"
#include "core/run/fetch_groups.hpp"
#include "core/run/for_weight.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace tessera {

// Names the weights that the node reads; the node names itself.
template <typename Body>
void InitRunner::for_node(const PlannedNode& node, Body&& body) const {
    std::string weights;
    for (size_t i = 0; i < plan_.graph.nodes()[node.node].inputs.size(); ++i) {
        if (node.operands[i]) weights += (weights.empty() ? "" : " and ") + storage(node.operands[i]).name;
    }
    for_weight(weights, body);
}

uint64_t InitRunner::bytes(const PlannedNode& node) const {
    return storage(node.operands.front()).bytes;
}

void InitRunner::run_on_host(const PlannedNode& planned, const Put& put) {
    const size_t inputs = plan_.graph.nodes()[planned.node].inputs.size();
    std::map<InstanceId, std::byte*> places;
    uint64_t used = 0;
    for (const InstanceId id : planned.operands) {
        if (!id || !places.try_emplace(id, buffers_.data() + used).second) continue;
        used += checked_align_up(storage(id).bytes, 64, "loading");
    }
    for_node(planned, [&] {
        for (size_t i = 0; i < inputs; ++i) {
            const InstanceId id = planned.operands[i];
            if (!id) continue;
            read_rows(source_, registry_, storage(id), 0, {places[id], storage(id).bytes},
                      {buffers_.data() + used, unpacking_bytes(storage(id), registry_)});
        }
        const PreparedNode node(plan_, registry_, planned, nullptr, [&](InstanceId id) -> PreparedNode::Bound {
            return {places[id], ""};
        });
        run(node, buffers_.data() + used);
    });
    for (size_t i = inputs; i < planned.operands.size(); ++i) {
        const InstanceId id = planned.operands[i];
        if (!id) continue;
        for (const Instance& instance : plan_.instances) {
            if (instance.storage == plan_.instances[id].storage && instance.place != Place::kLoading &&
                !is_made_there(plan_, instance))
                put(instance, {places[id], storage(id).bytes});
        }
    }
}

void InitRunner::run(const PreparedNode& node, void* workspace) {
    const tsr_range ranges[TSR_RANGE_COUNT] = {};
    std::optional<Error> failure;
    std::mutex mutex;
    const auto keep = [&](const Error& error) {
        const std::scoped_lock lock(mutex);
        if (!failure) failure = error;
    };
    auto work = [&](uint32_t worker, uint32_t workers) {
        const WorkerInStep in_step;
        tsr_run run{sizeof(tsr_run), 0,       nullptr, nullptr,       ranges,      workspace,
                    worker,          workers, &team_,  Team::barrier, Team::piece, nullptr};
        const tsr_status* status = nullptr;
        try {
            status = node.run(run);
        } catch (const Error& error) {
            keep(error);
            return team_.leave();
        }
        try {
            check_call(node.running(), status);
        } catch (const Error& error) {
            keep(error);
        }
        if (!team_.end_of_call())
            keep(Error(TSR_INTERNAL, describe(node.running()) + ": its workers did not pass the same barriers"));
    };
    team_.run(0, work);
    print_plugin_log();
    if (failure) node.fail(*failure);
}

void InitRunner::run_on_device(const PlannedNode& planned) {
    const size_t inputs = plan_.graph.nodes()[planned.node].inputs.size();
    OpenDevice& device = *memory_.device(planned.device);
    auto* const begin = static_cast<std::byte*>(memory_.deriving(planned.device));
    const InitMemory at = init_memory(plan_, planned);
    std::map<InstanceId, std::byte*> places;
    for (size_t i = 0; i < planned.operands.size(); ++i) {
        const InstanceId id = planned.operands[i];
        if (id && plan_.instances[id].place == Place::kLoading) places.emplace(id, begin + at.operands[i]);
    }
    for_node(planned, [&] {
        const PreparedNode node(plan_, registry_, planned, &device, [&](InstanceId id) -> PreparedNode::Bound {
            const auto place = places.find(id);
            return {place == places.end() ? memory_.address(plan_.instances[id]) : place->second, ""};
        });
        try {
            const tsr_range ranges[TSR_RANGE_COUNT] = {};
            device.upload_now(begin, std::as_bytes(std::span(ranges)));
            for (size_t i = 0; i < inputs; ++i) {
                const InstanceId id = planned.operands[i];
                if (places.contains(id)) upload(id, device, places[id]);
            }
            device.load_now([&] {
                const int32_t bounds[TSR_RANGE_COUNT] = {};
                tsr_launch launch{};
                launch.struct_size = sizeof launch;
                launch.ranges = reinterpret_cast<const tsr_range*>(begin);
                launch.row_bounds = bounds;
                launch.workspace = begin + at.workspace;
                launch.queue = device.loading_queue();
                node.enqueue(launch);
                for (size_t i = inputs; i < planned.operands.size(); ++i) {
                    const InstanceId id = planned.operands[i];
                    if (!id) continue;
                    const auto* rows = places.contains(id)
                                           ? places[id]
                                           : static_cast<const std::byte*>(memory_.address(plan_.instances[id]));
                    pack_result(id, rows, device);
                }
            });
        } catch (const Error& error) {
            node.fail(error);
        }
    });
}

// A canonical copy of an input, through the first of the loading buffers.
void InitRunner::upload(InstanceId input, OpenDevice& device, std::byte* to) {
    const Packing rows(storage(input), "", device.info(), registry_);
    fetch_groups(source_, registry_, storage(input), rows, 0, rows.groups(), buffers_.first(plan_.loading.piece),
                 [&](uint64_t row, std::span<const std::byte> part) {
                     device.upload_now(to + row * rows.canonical_bytes, part);
                 });
}

// Puts the packing of a result on the queue, for each of its instances on the device but the one that was made.
void InitRunner::pack_result(InstanceId made, const std::byte* rows, OpenDevice& device) {
    const Instance& from = plan_.instances[made];
    for (const Instance& to : plan_.instances) {
        if (to.storage != from.storage || to.device != from.device || to.place == Place::kLoading || to.layout.empty())
            continue;
        const Packing packing(plan_, registry_, to);
        device.pack(packing, memory_.address(to), rows, packing.groups());
    }
}

}  // namespace tessera
