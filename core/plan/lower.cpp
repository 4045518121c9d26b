#include "core/plan/lower.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/plan/kernels.hpp"
#include "core/plan/lowering_builder.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

namespace tessera {
namespace {

// How one node is computed: by a kernel, or by what a lowering wrote, whose nodes have a choice each.
struct Choice {
    DeviceIndex device = 0;
    double seconds = std::numeric_limits<double>::infinity();  // infinite: it cannot be computed
    const tsr_lowering* lowering = nullptr;                    // null: by a kernel
    std::unique_ptr<Written> written;
    std::vector<Choice> parts;
    std::vector<Rejection> rejected;

    bool feasible() const { return seconds != std::numeric_limits<double>::infinity(); }
};

// Copies of one graph's tensors in the result.
struct Mapping {
    std::vector<StorageId> storages;
    std::vector<Value> values;
};

class Lowerer {
  public:
    Lowerer(const Graph& model, const Placement& placement, const Registry& registry,
            std::span<const tsr_device_info* const> devices, const ScheduleOptions& options)
        : model_(model),
          placement_(placement),
          registry_(registry),
          devices_(devices),
          options_(options),
          result_{Graph(model.ops()), {}, {}, {}, {}} {
        for (StorageId id = 1; id < model.storage_count(); ++id) {
            const Storage& storage = model.storage(id);
            if (storage.role == TSR_ROLE_WEIGHT) weight_device_[storage.name] = placement.storage_device[id];
        }
    }

    LoweredGraph run() {
        Mapping mapping;
        for (const Value value : model_.inputs()) result_.graph.import(model_, value, mapping.storages, mapping.values);
        for (const Node& node : model_.nodes()) {
            Choice choice = choose(model_, node, placement_.device_of_layer(node.layer));
            if (!choice.feasible()) refuse(node, choice);
            report(node, choice);
            emit(model_, node, choice, mapping);
        }
        for (const auto& [name, value] : model_.outputs()) {
            result_.graph.set_output(name, result_.graph.import(model_, value, mapping.storages, mapping.values));
        }
        result_.weight_device.assign(result_.graph.storage_count(), 0);
        for (StorageId id = 1; id < result_.graph.storage_count(); ++id) {
            const auto at = weight_device_.find(result_.graph.storage(id).name);
            if (at != weight_device_.end()) result_.weight_device[id] = at->second;
        }
        return std::move(result_);
    }

  private:
    // A node follows its matrices, the largest first; one without any follows what it belongs to.
    DeviceIndex device_of(const Graph& graph, const Node& node, DeviceIndex otherwise) const {
        if (node.stage == TSR_STAGE_INIT) return 0;
        DeviceIndex device = otherwise;
        uint64_t largest = 0;
        for (const Value value : node.inputs) {
            const Storage& storage = graph.storage(graph.storage_of(value));
            if (value == 0 || storage.role != TSR_ROLE_WEIGHT || graph.tensor(value).rank < 2) continue;
            const auto at = weight_device_.find(storage.name);
            if (at != weight_device_.end() && storage.bytes > largest) {
                largest = storage.bytes;
                device = at->second;
            }
        }
        return device;
    }

    bool matrices_apart(const Graph& graph, const Node& node) const {
        std::optional<DeviceIndex> first;
        for (const Value value : node.inputs) {
            const Storage& storage = graph.storage(graph.storage_of(value));
            if (value == 0 || storage.role != TSR_ROLE_WEIGHT || graph.tensor(value).rank < 2) continue;
            const auto at = weight_device_.find(storage.name);
            if (at == weight_device_.end()) continue;
            if (first && *first != at->second) return true;
            first = at->second;
        }
        return false;
    }

    Choice choose(const Graph& graph, const Node& node, DeviceIndex inherited) {
        Choice best;
        best.device = device_of(graph, node, inherited);
        const tsr_operator* op = graph.ops().find(node.op);
        const NodeView view(graph, node);

        // With lowerings at hand a node whose matrices lie apart is split; else the smaller ones get a copy where it
        // runs.
        if (op->lowering_count > 0 && matrices_apart(graph, node)) {
            best.rejected.push_back({"one kernel", "its weights lie on different devices"});
        } else {
            KernelCandidates kernels = find_kernels(view.abi(), *devices_[best.device], registry_);
            best.seconds = kernels.seconds();
            best.rejected = std::move(kernels.unable);
        }
        const bool by_kernel = best.feasible();

        const auto asked = options_.lowerings.find(node.op);
        const bool named = asked != options_.lowerings.end();
        for (const tsr_lowering* lowering : in_order(*op, named ? asked->second : "")) {
            Choice way = try_lowering(graph, node, best.device, *lowering);
            if (!way.feasible()) {
                std::string reason;
                for (const Rejection& r : way.rejected)
                    reason += (reason.empty() ? "" : "; ") + r.candidate + ": " + r.reason;
                best.rejected.push_back({fmt::format("lowering {}", lowering->name), reason});
                continue;
            }
            // Abstract ops go by the order; a fused op is split only if its parts are faster.
            if (by_kernel && way.seconds >= best.seconds) {
                best.rejected.push_back(
                    {fmt::format("lowering {}", lowering->name), "slower than one kernel, by estimate"});
                continue;
            }
            way.device = best.device;
            way.rejected = std::move(best.rejected);
            return way;
        }
        return best;
    }

    static std::vector<const tsr_lowering*> in_order(const tsr_operator& op, std::string_view named) {
        std::vector<const tsr_lowering*> all(op.lowerings, op.lowerings + op.lowering_count);
        std::ranges::stable_sort(all, [&](const tsr_lowering* a, const tsr_lowering* b) {
            const bool a_named = a->name == named, b_named = b->name == named;
            return a_named != b_named ? a_named : a->priority > b->priority;
        });
        return all;
    }

    // The cheaper of using weights as they are and deriving new ones at load. Infeasible: `rejected` says why.
    Choice try_lowering(const Graph& graph, const Node& node, DeviceIndex device, const tsr_lowering& lowering) {
        Choice best;
        for (const bool derive : {false, true}) {
            Choice way;
            way.device = device;
            way.lowering = &lowering;
            try {
                way.written = std::make_unique<Written>(write_lowering(graph, node, lowering, options_, derive));
            } catch (const Error& error) {
                if (error.code() != TSR_UNSUPPORTED) {
                    if (graph.ops().is_own(lowering.op)) throw;
                    log().warn("{}; the lowering is not used", error.what());
                }
                best.rejected.push_back({derive ? "with derived weights" : "as it is", error.what()});
                continue;
            }
            double seconds = 0;
            for (const Node& part : way.written->graph.nodes()) {
                Choice& choice = way.parts.emplace_back(choose(way.written->graph, part, device));
                if (!choice.feasible()) {
                    best.rejected.push_back({part.op + " (" + part.name + ")", first_line(choice.rejected)});
                }
                if (part.stage == TSR_STAGE_RUN || !choice.feasible()) seconds += choice.seconds;
            }
            if (seconds < best.seconds) {
                way.seconds = seconds;
                way.rejected = std::move(best.rejected);
                best = std::move(way);
            }
        }
        if (best.feasible()) best.rejected.clear();
        return best;
    }

    static std::string first_line(const std::vector<Rejection>& rejected) {
        if (rejected.empty()) return "no plugin brings a kernel for this op and device";
        std::string text;
        for (const Rejection& r : rejected) text += (text.empty() ? "" : "; ") + r.candidate + ": " + r.reason;
        return text;
    }

    [[noreturn]] void refuse(const Node& node, const Choice& choice) const {
        std::string table =
            fmt::format("{} ({}) cannot be computed on {}:", node.name, node.op, devices_[choice.device]->id);
        for (const Rejection& r : choice.rejected) table += fmt::format("\n  {}: {}", r.candidate, r.reason);
        if (choice.rejected.empty()) table += "\n  no plugin that was loaded brings a kernel for it";
        throw Error(TSR_UNSUPPORTED, table);
    }

    void report(const Node& node, const Choice& choice) {
        const auto asked = options_.lowerings.find(node.op);
        const bool named = asked != options_.lowerings.end();
        const tsr_operator* op = model_.ops().find(node.op);
        if (op->lowering_count == 0) return;
        LoweringChoice& line = result_.choices.emplace_back();
        line.node = node.name;
        line.op = node.op;
        line.layer = node.layer;
        line.device = choice.device;
        line.lowering = choice.lowering ? choice.lowering->name : "kernel";
        line.asked = named && line.lowering == asked->second;
        line.rejected = choice.rejected;
        if (named && !line.asked && noted_.insert({node.op, choice.device}).second) {
            std::string why;
            for (const Rejection& r : choice.rejected) {
                if (r.candidate == "lowering " + asked->second) why = r.reason;
            }
            result_.notes.push_back(fmt::format(
                "{} '{}' was asked for and cannot be used on {} ({}); '{}' is used instead", node.op, asked->second,
                devices_[choice.device]->id, why.empty() ? "there is no such lowering" : why, line.lowering));
        }
    }

    void emit(const Graph& from, const Node& node, const Choice& choice, Mapping& mapping) {
        Graph& out = result_.graph;
        if (!choice.lowering) {
            std::vector<Value> inputs, outputs;
            for (const Value v : node.inputs) inputs.push_back(out.import(from, v, mapping.storages, mapping.values));
            for (const Value v : node.outputs) outputs.push_back(out.import(from, v, mapping.storages, mapping.values));
            out.set_layer(node.layer);
            out.add(node.op, node.name, inputs, node.attributes, outputs, node.stage);
            result_.node_device.push_back(choice.device);
            return;
        }
        const Written& written = *choice.written;
        Mapping inner;
        inner.storages.assign(written.graph.storage_count(), 0);
        for (const Value v : node.inputs) out.import(from, v, mapping.storages, mapping.values);
        for (StorageId id = 1; id < written.storages.size(); ++id) {
            if (written.storages[id]) inner.storages[written.storages[id]] = mapping.storages[id];
        }
        auto part = choice.parts.begin();
        for (const Node& inside : written.graph.nodes()) emit(written.graph, inside, *part++, inner);
        // From here on the node's output is the storage that the lowering wrote.
        mapping.storages.resize(from.storage_count(), 0);
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            const StorageId made = written.graph.storage_of(written.outputs[i]);
            mapping.storages[from.storage_of(node.outputs[i])] = inner.storages.at(made);
        }
    }

    const Graph& model_;
    const Placement& placement_;
    const Registry& registry_;
    std::span<const tsr_device_info* const> devices_;
    const ScheduleOptions& options_;
    LoweredGraph result_;
    std::unordered_map<std::string, DeviceIndex> weight_device_;  // by name of the weight
    std::set<std::pair<std::string, DeviceIndex>> noted_;
};

}  // namespace

LoweredGraph lower_graph(const Graph& model, const Placement& placement, const Registry& registry,
                         std::span<const tsr_device_info* const> devices, const ScheduleOptions& options) {
    return Lowerer(model, placement, registry, devices, options).run();
}

}  // namespace tessera
