#include "core/setup/plan_json.hpp"

#include "core/graph/types.hpp"
#include "core/plan/fit.hpp"
#include "core/plan/predict.hpp"
#include "core/plan/step_check.hpp"
#include "core/setup/assumed_constants.hpp"
#include "core/setup/plan_lines.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace tessera {
namespace {

namespace json = boost::json;

std::string_view role_name(tsr_role role) {
    switch (role) {
        case TSR_ROLE_ACTIVATION:
            return "activation";
        case TSR_ROLE_WEIGHT:
            return "weight";
        case TSR_ROLE_INPUT:
            return "input";
        case TSR_ROLE_CACHE:
            return "cache";
    }
    return "";
}

std::string_view type_text(tsr_type type) {
    const TypeInfo* info = find_type(type);
    return info ? info->name : "none";
}

std::string_view packing_text(PackWeights when) {
    switch (when) {
        case PackWeights::kAtLoad:
            return "at load";
        case PackWeights::kBetweenSteps:
            return "between steps";
        case PackWeights::kNever:
            return "never";
    }
    return "";
}

json::array rejections(const std::vector<Rejection>& rejected) {
    json::array all;
    for (const Rejection& r : rejected) all.push_back(json::object{{"candidate", r.candidate}, {"reason", r.reason}});
    return all;
}

json::object operand(const Plan& plan, Value value, InstanceId id) {
    if (value == 0) return {{"absent", true}};
    const tsr_tensor& tensor = plan.graph.tensor(value);
    const Storage& storage = plan.graph.storage(plan.graph.storage_of(value));
    json::array dims;
    for (uint32_t i = 0; i < tensor.rank; ++i) dims.push_back(tensor.dims[i]);
    return {{"storage", storage.name},
            {"role", role_name(storage.role)},
            {"type", type_text(tensor.type)},
            {"dims", std::move(dims)},
            {"layout", plan.instances[id].layout}};
}

template <typename Nodes>
json::array nodes(const PlanReport& report, const Nodes& planned) {
    const Plan& plan = report.planned.plan;
    json::array all;
    for (const PlannedNode& node : planned) {
        const Node& what = plan.graph.nodes()[node.node];
        json::array inputs, outputs;
        for (size_t i = 0; i < what.inputs.size(); ++i)
            inputs.push_back(operand(plan, what.inputs[i], node.operands[i]));
        for (size_t i = 0; i < what.outputs.size(); ++i) {
            outputs.push_back(operand(plan, what.outputs[i], node.operands[what.inputs.size() + i]));
        }
        all.push_back(json::object{{"name", what.name},
                                   {"op", what.op},
                                   {"layer", what.layer},
                                   {"device", plan.devices[node.device]->id},
                                   {"plugin", report.registry.owner(*node.kernel).manifest.name},
                                   {"kernel", node.kernel->name},
                                   {"variant", node.variant},
                                   {"seconds_one_row", node.estimate.seconds_one_row},
                                   {"seconds_all_rows", node.estimate.seconds_all_rows},
                                   {"seconds_one_row_full", node.estimate.seconds_one_row_full},
                                   {"seconds_all_rows_full", node.estimate.seconds_all_rows_full},
                                   {"bytes_one_row", node.estimate.bytes_one_row},
                                   {"bytes_all_rows", node.estimate.bytes_all_rows},
                                   {"workspace_bytes", node.workspace_bytes},
                                   {"minimum_scratch_bytes", node.minimum_scratch_bytes},
                                   {"inputs", std::move(inputs)},
                                   {"outputs", std::move(outputs)},
                                   {"rejected", rejections(node.rejected)}});
    }
    return all;
}

json::array devices(const Plan& plan) {
    json::array all;
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        const DeviceMemory& memory = plan.memory[device];
        const tsr_device_info& info = *plan.devices[device];
        all.push_back(json::object{{"id", info.id},
                                   {"kind", info.kind},
                                   {"name", info.name},
                                   {"compute_capability", info.compute_capability},
                                   {"memory_bytes", info.memory_bytes},
                                   {"context_bytes", context_bytes(plan.devices, device)},
                                   {"usable_bytes", usable_bytes(plan.devices, device)},
                                   {"weights", memory.weights},
                                   {"cache", memory.cache},
                                   {"activations", memory.activations},
                                   {"workspace", memory.workspace},
                                   {"staging", memory.staging},
                                   {"streaming", memory.streaming},
                                   {"loading", memory.loading},
                                   {"packing", memory.packing},
                                   {"deriving", memory.deriving},
                                   {"allocated", memory.allocated()},
                                   {"mapped", memory.mapped}});
    }
    return all;
}

json::array cache_groups(const Plan& plan) {
    json::array all;
    for (const CacheGroup& group : plan.cache_groups) {
        json::array caches;
        for (const StorageId cache : group.caches) caches.push_back(json::value(plan.graph.storage(cache).name));
        json::object bytes;
        for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
            if (const uint64_t taken = plan.cache_bytes(group, device); taken > 0)
                bytes[plan.devices[device]->id] = taken;
        }
        all.push_back(json::object{{"window", group.rule.window},
                                   {"pages", group.pages},
                                   {"bytes", std::move(bytes)},
                                   {"caches", std::move(caches)}});
    }
    return all;
}

std::string_view name_of_kind(ActionKind kind) {
    constexpr std::string_view kNames[] = {"inputs", "nodes", "upload", "download", "outputs"};
    return kNames[static_cast<size_t>(kind)];
}

json::array ids(const std::vector<ActionId>& list) {
    json::array all;
    for (const ActionId id : list) all.emplace_back(id);
    return all;
}

json::array actions(const Plan& plan) {
    json::array all;
    for (ActionId id = 0; id < plan.step.actions.size(); ++id) {
        const Action& action = plan.step.actions[id];
        json::object line{{"kind", name_of_kind(action.kind)},
                          {"device", plan.devices[plan.step.device_of(action)]->id},
                          {"what", action_name(plan, id)},
                          {"after", ids(action.after)},
                          {"after_previous_step", ids(action.after_previous)}};
        if (action.kind == ActionKind::kNodes) {
            line["first_node"] = action.first;
            line["nodes"] = action.count;
        } else if (action.from != 0) {
            line["maximum_bytes"] = action.maximum_bytes;
        }
        all.push_back(std::move(line));
    }
    return all;
}

json::array streamed(const Plan& plan) {
    json::array all;
    for (const StreamedNode& one : plan.streamed) {
        const Node& node = plan.graph.nodes()[plan.nodes[one.node].node];
        all.push_back(json::object{{"name", node.name},
                                   {"layer", node.layer},
                                   {"device", plan.devices[one.device]->id},
                                   {"rows_from", one.rows_from},
                                   {"experts_at_once", one.experts_at_once}});
    }
    return all;
}

// Where a weight gets its layout; empty: it has that of the file.
std::string_view packed_on_name(PackedOn on) {
    switch (on) {
        case PackedOn::kNowhere:
            break;
        case PackedOn::kHost:
            return "host";
        case PackedOn::kDevice:
            return "device";
    }
    return "";
}

// What lies where for good: weights and caches.
json::array storages(const Plan& plan) {
    json::array all;
    for (InstanceId id = 1; id < plan.instances.size(); ++id) {
        const Instance& instance = plan.instances[id];
        const Storage& storage = plan.graph.storage(instance.storage);
        if (instance.place == Place::kLoading || (storage.role != TSR_ROLE_WEIGHT && storage.role != TSR_ROLE_CACHE))
            continue;
        all.push_back(json::object{{"name", storage.name},
                                   {"role", role_name(storage.role)},
                                   {"type", type_text(storage.type)},
                                   {"layer", storage.layer},
                                   {"device", plan.devices[instance.device]->id},
                                   {"layout", instance.layout},
                                   {"bytes", instance.bytes},
                                   {"mapped", instance.place == Place::kMapped},
                                   {"packed_on", packed_on_name(instance.packed_on)},
                                   {"deferred", instance.place == Place::kDeferred},
                                   {"derived", storage.derived},
                                   {"why_copy", instance.why_copy}});
    }
    return all;
}

json::array lowerings(const Plan& plan) {
    json::array all;
    for (const LoweringChoice& choice : plan.lowerings) {
        all.push_back(json::object{{"node", choice.node},
                                   {"op", choice.op},
                                   {"layer", choice.layer},
                                   {"device", plan.devices[choice.device]->id},
                                   {"lowering", choice.lowering},
                                   {"plugin", choice.plugin},
                                   {"summary", choice.summary},
                                   {"cache_family", choice.family},
                                   {"asked", choice.asked},
                                   {"rejected", rejections(choice.rejected)}});
    }
    return all;
}

json::object step_json(const Plan& plan, const StepTime& time, double seconds) {
    json::array devices;
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        devices.push_back(json::object{{"id", plan.devices[device]->id}, {"seconds", time.busy[device]}});
    }
    return {{"seconds", time.seconds}, {"interval", seconds},           {"devices", std::move(devices)},
            {"memory", time.memory},   {"arithmetic", time.arithmetic}, {"cached", time.cached},
            {"calls", time.calls},     {"copies", time.copies},         {"bound", bound_text(plan, time, seconds)}};
}

json::array speeds(const Plan& plan) {
    json::array all;
    for (const Speed& speed : predict(plan)) {
        all.push_back(
            json::object{{"depth", speed.depth},
                         {"prompt", speed.prompt},
                         {"generation", speed.generation},
                         {"prompt_step", step_json(plan, speed.prompt_step, speed.prompt_interval)},
                         {"generation_step", step_json(plan, speed.generation_step, speed.generation_step.seconds)}});
    }
    return all;
}

json::array assumed(const PlanReport& report) {
    json::array all;
    for (const AssumedConstant& constant : assumed_constants(report)) {
        all.push_back(json::object{{"plugin", constant.plugin},
                                   {"device", constant.device},
                                   {"name", constant.name},
                                   {"unit", constant.unit},
                                   {"value", constant.value}});
    }
    return all;
}

json::object earlier(const EarlierRuns& runs) {
    json::object all;
    const auto add = [&](std::string_view kind, const EarlierRatio& ratio) {
        if (ratio.runs > 0) all[kind] = json::object{{"ratio", ratio.ratio}, {"runs", ratio.runs}};
    };
    add("prompt", runs.prompts);
    add("generation", runs.generation);
    return all;
}

json::array strings(const std::vector<std::string>& lines) {
    return json::array(lines.begin(), lines.end());
}

json::array all_notes(const PlannedModel& planned) {
    json::array notes = strings(planned.plan.notes);
    for (const Notice& notice : planned.notices) notes.emplace_back(notice.text);
    return notes;
}

}  // namespace

json::object plan_json(const PlanReport& report) {
    const Plan& plan = report.planned.plan;
    const ModelInfo& info = report.planned.info;
    json::array too_much;
    for (const Excess& excess : excess_of(plan)) {
        too_much.push_back(json::object{{"device", plan.devices[excess.device]->id}, {"bytes", excess.bytes}});
    }
    const bool fits = too_much.empty();
    return {{"model",
             {{"path", report.path},
              {"name", info.name},
              {"architecture", info.architecture},
              {"layers", info.layers},
              {"embedding", info.embedding},
              {"vocabulary", info.vocabulary},
              {"context", info.context},
              {"weights", report.sizes.weights},
              {"bytes", report.sizes.bytes}}},
            {"machine", report.machine},
            {"context", report.planned.context},
            {"rows", plan.options.max_rows},
            {"sequences", plan.options.max_sequences},
            {"cache_type_k", type_text(plan.options.cache_type_k)},
            {"cache_type_v", type_text(plan.options.cache_type_v)},
            {"pack_weights", packing_text(plan.options.pack_weights)},
            {"hadamard_keys", plan.options.hadamard_keys},
            {"hadamard_values", plan.options.hadamard_values},
            {"flash_attention", plan.options.flash_attention},
            {"scratch_bytes", plan.options.scratch_bytes},
            {"minimum_scratch_bytes", minimum_scratch(plan)},
            {"fits", fits},
            {"too_much", std::move(too_much)},
            {"mapped_too_much", mapped_excess(plan)},
            {"largest_context", report.largest_context},
            {"devices", devices(plan)},
            {"cache_groups", cache_groups(plan)},
            {"speed", speeds(plan)},
            {"assumed", assumed(report)},
            {"earlier_runs", earlier(report.earlier)},
            {"prompt_rows_from", plan.prompt_rows_from},
            {"rules", strings(plan.rules)},
            {"lowerings", lowerings(plan)},
            {"init_nodes", nodes(report, plan.init_nodes)},
            {"nodes", nodes(report, plan.nodes)},
            {"streamed", streamed(plan)},
            {"steps_under_way", plan.step.slots},
            {"actions", actions(plan)},
            {"storages", storages(plan)},
            {"file_notes", strings(report.planned.file_notes)},
            {"notes", all_notes(report.planned)},
            {"remarks", strings(report.remarks)}};
}

}  // namespace tessera
