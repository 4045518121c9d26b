#include "core/plan/lower.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
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

// A lowering with the plugin that brings it; "core" for the core's own.
struct Way {
    const tsr_lowering* lowering = nullptr;
    std::string plugin;
    uint32_t abi_minor = 0;
    uint32_t preference = 0;  // of the plugin in the configuration: the smaller goes first
    bool is_named = false;    // the user named it

    std::string text() const { return fmt::format("lowering {}/{}", plugin, lowering->name); }
};

// How one node is computed: by a kernel, or by what a lowering wrote, whose nodes have a choice each.
struct Choice {
    DeviceIndex device = 0;
    double seconds = std::numeric_limits<double>::infinity();  // infinite: it cannot be computed
    std::optional<Way> way;                                    // none: by a kernel
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
        const std::vector<Way> ways = ways_of(*op);
        if (!ways.empty() && matrices_apart(graph, node)) {
            best.rejected.push_back({"one kernel", "its weights lie on different devices"});
        } else {
            KernelCandidates kernels = find_kernels(view.abi(), *devices_[best.device], registry_);
            best.seconds = kernels.seconds();
            best.rejected = std::move(kernels.unable);
        }
        const bool by_kernel = best.feasible();

        Choice chosen;
        for (const Way& way : ways) {
            if (chosen.feasible() && is_decided(*chosen.way, way)) continue;
            Choice tried = try_lowering(graph, node, best.device, way);
            if (!tried.feasible()) {
                std::string reason;
                for (const Rejection& r : tried.rejected)
                    reason += (reason.empty() ? "" : "; ") + r.candidate + ": " + r.reason;
                best.rejected.push_back({way.text(), reason});
            } else if (by_kernel && tried.seconds >= best.seconds) {
                best.rejected.push_back({way.text(), "slower than one kernel, by estimate"});
            } else if (chosen.feasible() && tried.seconds >= chosen.seconds) {
                best.rejected.push_back({way.text(), fmt::format("slower than {}, by estimate", chosen.way->text())});
            } else {
                if (chosen.feasible()) {
                    best.rejected.push_back(
                        {chosen.way->text(), fmt::format("slower than {}, by estimate", way.text())});
                }
                chosen = std::move(tried);
            }
        }
        if (!chosen.feasible()) return best;
        chosen.rejected = std::move(best.rejected);
        return chosen;
    }

    // Whether a way that comes after the one that is chosen so far is not asked for its estimate: the user named the
    // earlier one, or prefers its plugin. Within a plugin the order is the plugin's: the larger priority goes first.
    static bool is_decided(const Way& chosen, const Way& later) {
        if (chosen.is_named != later.is_named || chosen.preference != later.preference) return true;
        return chosen.plugin == later.plugin;
    }

    // Lowerings of the op, its own and those that other plugins bring for it, best first.
    std::vector<Way> ways_of(const tsr_operator& op) const {
        const auto asked = options_.lowerings.find(op.name);
        std::vector<Way> ways;
        const auto add = [&](const tsr_lowering* lowering, const PluginRecord* owner) {
            Way& way = ways.emplace_back();
            way.lowering = lowering;
            way.plugin = owner ? owner->manifest.name : "core";
            way.abi_minor = owner ? owner->table->abi_minor : TSR_ABI_MINOR;
            way.preference = owner ? registry_.preference(*lowering) : registry_.no_preference();
            way.is_named = asked != options_.lowerings.end() && is_called(way, asked->second);
        };
        const std::span brought = registry_.lowerings(op.name);
        for (uint32_t i = 0; i < op.lowering_count; ++i) {
            if (std::ranges::find(brought, op.lowerings[i]) == brought.end()) add(op.lowerings[i], nullptr);
        }
        for (const tsr_lowering* lowering : brought) add(lowering, &registry_.owner(*lowering));
        std::ranges::stable_sort(ways, [](const Way& a, const Way& b) {
            if (a.is_named != b.is_named) return a.is_named;
            if (a.preference != b.preference) return a.preference < b.preference;
            return a.lowering->priority > b.lowering->priority;
        });
        return ways;
    }

    // A user says "3", or "PLUGIN/3" where two plugins have one of that name.
    static bool is_called(const Way& way, std::string_view name) {
        return name == way.lowering->name || name == way.plugin + "/" + way.lowering->name;
    }

    // The cheaper of using weights as they are and deriving new ones at load. Infeasible: `rejected` says why.
    Choice try_lowering(const Graph& graph, const Node& node, DeviceIndex device, const Way& lowering) {
        Choice best;
        // A lowering may write the op that it replaces, or another lowering that writes it: that would never end.
        if (std::ranges::find(under_way_, lowering.lowering) != under_way_.end()) {
            best.rejected.push_back({"here", "the node is one that this lowering wrote"});
            return best;
        }
        const UnderWay entered(under_way_, lowering.lowering);
        for (const bool derive : {false, true}) {
            Choice way;
            way.device = device;
            way.way = lowering;
            try {
                way.written = std::make_unique<Written>(write_lowering(
                    graph, node, *lowering.lowering, {lowering.plugin.c_str(), lowering.abi_minor}, options_, derive));
            } catch (const Error& error) {
                // What a plugin does wrong costs its lowering the place, and nothing else.
                if (error.code() != TSR_UNSUPPORTED) {
                    if (lowering.plugin == "core") throw;
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
        const std::vector<Way> ways = ways_of(*model_.ops().find(node.op));
        if (ways.empty()) return;
        LoweringChoice& line = result_.choices.emplace_back();
        line.node = node.name;
        line.op = node.op;
        line.layer = node.layer;
        line.device = choice.device;
        line.lowering = "kernel";
        if (choice.way) {
            line.lowering = choice.way->lowering->name;
            line.plugin = choice.way->plugin;
            line.summary = choice.way->lowering->summary ? printable(choice.way->lowering->summary) : "";
            line.family = choice.way->lowering->family ? printable(choice.way->lowering->family) : "";
            line.asked = choice.way->is_named;
        }
        line.rejected = choice.rejected;
        if (named && !line.asked && noted_.insert({node.op, choice.device}).second) {
            std::string why;
            for (const Way& way : ways) {
                for (const Rejection& r : choice.rejected) {
                    if (way.is_named && r.candidate == way.text()) why = r.reason;
                }
            }
            result_.notes.push_back(fmt::format(
                "{} '{}' was asked for and cannot be used on {} ({}); '{}' is used instead", node.op, asked->second,
                devices_[choice.device]->id, why.empty() ? "there is no such lowering" : why, line.lowering));
        }
    }

    void emit(const Graph& from, const Node& node, const Choice& choice, Mapping& mapping) {
        Graph& out = result_.graph;
        if (!choice.way) {
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

    struct UnderWay {
        UnderWay(std::vector<const tsr_lowering*>& all, const tsr_lowering* one) : list(all) { list.push_back(one); }
        ~UnderWay() { list.pop_back(); }
        UnderWay(const UnderWay&) = delete;
        UnderWay& operator=(const UnderWay&) = delete;
        std::vector<const tsr_lowering*>& list;
    };

    std::vector<const tsr_lowering*> under_way_;  // whose nodes are being chosen for, the outermost first
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
