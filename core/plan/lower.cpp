#include "core/plan/lower.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/plan/kernels.hpp"
#include "core/plan/lowering_builder.hpp"
#include "core/plan/lowering_candidates.hpp"
#include "core/plan/node_devices.hpp"
#include "core/plan/predict.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tessera {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// How one node is computed: by a kernel, or by what a lowering wrote, whose nodes have a choice each.
struct Choice {
    DeviceIndex device = 0;
    double seconds = kInfinite;                  // infinite: it cannot be computed
    uint32_t preference = UINT32_MAX;            // of the plugin that computes it, or most of its parts
    bool preferred = false;                      // by plugins.prefer rather than by estimate
    std::optional<LoweringCandidate> candidate;  // none: by a kernel
    std::unique_ptr<Written> written;
    std::vector<Choice> parts;
    std::vector<Rejection> rejected;
    std::optional<DeviceIndex> moved_from;  // of a kernel's node: where its weights are, which cannot compute it

    bool feasible() const { return seconds != kInfinite; }

    double cache_bytes() const {
        double bytes = 0;
        for (StorageId id = 1; written && id < written->graph.storage_count(); ++id) {
            const Storage& storage = written->graph.storage(id);
            if (storage.role == TSR_ROLE_CACHE) bytes += static_cast<double>(storage.bytes);
        }
        return bytes;
    }
};

// The candidate of a rejection that says why a node is not moved to another device.
constexpr const char* kAnotherDevice = "another device";

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
          where_(model, placement, registry, devices, options),
          result_{Graph(model.ops()), {}, {}, {}, {}} {}

    LoweredGraph run() {
        Mapping mapping;
        for (const Value value : model_.inputs()) result_.graph.import(model_, value, mapping.storages, mapping.values);
        const CacheDevices caches = where_.cache_devices(model_, std::nullopt, false);
        for (const Node& node : model_.nodes()) {
            Choice choice = choose_for_model(node, caches);
            if (!choice.feasible()) refuse(node, choice);
            for (const Value value : node.outputs) {
                if (value) written_on_[model_.storage_of(value)] = choice.device;
            }
            report(node, choice);
            emit(model_, node, choice, mapping);
        }
        for (const auto& [name, value] : model_.outputs()) {
            result_.graph.set_output(name, result_.graph.import(model_, value, mapping.storages, mapping.values));
        }
        result_.weight_device.assign(result_.graph.storage_count(), 0);
        for (StorageId id = 1; id < result_.graph.storage_count(); ++id) {
            if (const auto at = where_.weight_device(result_.graph.storage(id).name)) result_.weight_device[id] = *at;
        }
        return std::move(result_);
    }

  private:
    // With every part of the node where its weights are; if that cannot be, with those that cannot be computed there on
    // other devices.
    Choice choose_for_model(const Node& node, const CacheDevices& caches) {
        const DeviceIndex inherited = inherited_device(node);
        Choice best = choose(model_, node, inherited, caches);
        if (best.feasible()) return best;
        moving_ = true;
        Choice moved = choose(model_, node, inherited, where_.cache_devices(model_, std::nullopt, true));
        moving_ = false;
        if (moved.feasible()) return moved;
        for (Rejection& r : moved.rejected) {
            if (r.candidate == kAnotherDevice) best.rejected.push_back(std::move(r));
        }
        return best;
    }

    // The layer's; of a node between the embedding and the layers, that of what it reads.
    DeviceIndex inherited_device(const Node& node) const {
        if (node.layer >= 0) return placement_.device_of_layer(node.layer);
        for (const Value value : node.inputs) {
            if (!value) continue;
            if (const auto at = written_on_.find(model_.storage_of(value)); at != written_on_.end()) return at->second;
        }
        return 0;
    }

    Choice choose(const Graph& graph, const Node& node, DeviceIndex inherited, const CacheDevices& caches) {
        Choice best;
        const auto cache = touches_cache(graph, node) ? caches.find(node.layer) : caches.end();
        const DeviceIndex usual = where_.device_of(graph, node, inherited);
        best.device = cache != caches.end() ? cache->second : usual;
        const std::vector<LoweringCandidate> candidates =
            lowering_candidates(*graph.ops().find(node.op), registry_, options_);

        // With lowerings at hand a node whose matrices lie apart is split; else the smaller ones get a copy where it
        // runs.
        if (!candidates.empty() && where_.matrices_apart(graph, node)) {
            best.rejected.push_back({"one kernel", "its weights lie on different devices"});
        } else {
            by_kernel(graph, node, best);
        }
        if (!candidates.empty()) {
            by_lowering(graph, node, candidates, best);
        } else if (!best.feasible() && moving_ && cache == caches.end() && node.stage == TSR_STAGE_RUN) {
            move(graph, node, best);
        } else if (best.feasible() && moving_ && cache != caches.end() && best.device != usual) {
            // It went with its cache: for its own sake, or for that of another node of the cache.
            const NodeView view(graph, node);
            KernelCandidates there = find_kernels(view.abi(), *devices_[usual], registry_);
            if (there.able.empty()) {
                best.moved_from = usual;
                best.rejected = std::move(there.unable);
            }
        }
        return best;
    }

    void by_kernel(const Graph& graph, const Node& node, Choice& choice) const {
        const NodeView view(graph, node);
        KernelCandidates kernels = find_kernels(view.abi(), *devices_[choice.device], registry_);
        choice.rejected.insert(choice.rejected.end(), kernels.unable.begin(), kernels.unable.end());
        if (kernels.able.empty()) return;
        // Rows of prompts do not hold up generation, and vice versa.
        const int32_t range = working_range(graph, node);
        const KernelCandidate& first = kernels.able.front();
        choice.preference = registry_.preference(*first.kernel);
        choice.seconds = range == TSR_RANGE_PROMPT_ROWS       ? first.prompt_seconds()
                         : range == TSR_RANGE_GENERATION_ROWS ? first.generation_seconds()
                                                              : first.seconds();
    }

    // The fastest lowering by estimate, if it is faster than the kernel in `best`; the one that
    // the user named if it can be had, and none of a plugin that the configuration prefers less than one that can.
    void by_lowering(const Graph& graph, const Node& node, const std::vector<LoweringCandidate>& candidates,
                     Choice& best) {
        const std::string key = same_problem(graph, node, best.device);
        const auto known = decided_.find(key);
        std::vector<Choice> tried;
        if (known != decided_.end()) {
            const auto candidate = std::ranges::find(candidates, known->second.lowering, &LoweringCandidate::lowering);
            Choice choice = try_lowering(graph, node, best.device, *candidate);
            if (choice.feasible()) {
                choice.preferred = known->second.preferred;
                tried.push_back(std::move(choice));
                best.rejected = for_layer(known->second, node.layer);
            }
        }
        if (tried.empty()) tried = try_all(graph, node, candidates, best);
        if (tried.empty()) return;
        Choice& fastest = fastest_of(tried, best);
        // A fused op is split only if its parts are faster, or if the user named a lowering or prefers a plugin.
        const bool is_slower = fastest.seconds >= best.seconds;
        const bool equal = best.preference == fastest.preference;
        if (best.feasible() && !fastest.candidate->is_named &&
            (best.preference < fastest.preference || (equal && is_slower))) {
            const std::string why =
                equal ? "slower than one kernel" : "plugins.prefer puts the plugin of one kernel first";
            best.rejected.push_back(
                {fastest.candidate->text(),
                 fmt::format("{}, by estimate: {:.3g} ms, not {:.3g}", why, 1e3 * fastest.seconds, 1e3 * best.seconds),
                 true});
            best.preferred = !is_slower;
            return;
        }
        // A lowering that writes the op again is chosen by what it is inside of, which the key does not tell.
        if (known == decided_.end() && !moving_ && entered_.empty())
            decided_[key] = {fastest.candidate->lowering, node.layer, fastest.preferred, best.rejected};
        if (best.feasible()) {
            const bool named = fastest.candidate->is_named;
            fastest.preferred = fastest.preferred || (!named && is_slower);
            const std::string why = named       ? "a lowering was asked for"
                                    : is_slower ? "plugins.prefer puts another plugin first"
                                                : "slower than " + fastest.candidate->text();
            best.rejected.push_back(
                {"one kernel",
                 fmt::format("{}, by estimate: {:.3g} ms, not {:.3g}", why, 1e3 * best.seconds, 1e3 * fastest.seconds),
                 true});
        }
        fastest.rejected = std::move(best.rejected);
        best = std::move(fastest);
    }

    // Those that can be had; why the others cannot goes to `best`.
    std::vector<Choice> try_all(const Graph& graph, const Node& node, const std::vector<LoweringCandidate>& candidates,
                                Choice& best) {
        std::vector<Choice> tried;
        for (const LoweringCandidate& candidate : candidates) {
            if (!tried.empty() && is_decided(*graph.ops().find(node.op), *tried.front().candidate, candidate)) {
                for (Choice& choice : tried)
                    choice.preferred = !choice.candidate->is_named && choice.preference < candidate.preference;
                break;
            }
            Choice choice = try_lowering(graph, node, best.device, candidate);
            if (choice.feasible()) {
                tried.push_back(std::move(choice));
                continue;
            }
            best.rejected.push_back({candidate.text(), reasons(choice.rejected)});
            for (Rejection& r : choice.rejected) {
                if (r.candidate == kAnotherDevice) best.rejected.push_back(std::move(r));
            }
        }
        return tried;
    }

    // Whether `later` need not be tried once `found` is feasible: the user named `found`, or prefers its plugin.
    // Instead of what the user named and cannot have comes what the plugin puts next to it.
    bool is_decided(const tsr_operator& op, const LoweringCandidate& found, const LoweringCandidate& later) const {
        if (found.is_named != later.is_named || found.preference != later.preference) return true;
        return !found.is_named && options_.lowerings.contains(op.name);
    }

    // Why the others are not taken goes to `best`.
    static Choice& fastest_of(std::vector<Choice>& tried, Choice& best) {
        // Only the user may choose a larger cache: memory decides what fits.
        constexpr double kLargerCache = 1.25;
        // Nearly as fast is as fast: the order decides.
        constexpr double kFaster = 0.97;
        double smallest = kInfinite;
        for (const Choice& choice : tried) smallest = std::min(smallest, choice.cache_bytes());
        const auto is_large = [&](const Choice& choice) { return choice.cache_bytes() > kLargerCache * smallest; };
        Choice* fastest = nullptr;
        for (Choice& choice : tried) {
            if (is_large(choice)) {
                best.rejected.push_back(
                    {choice.candidate->text(),
                     fmt::format("its cache is {:.1f} times as large", choice.cache_bytes() / smallest), true});
            } else if (!fastest || choice.seconds < kFaster * fastest->seconds) {
                fastest = &choice;
            }
        }
        for (const Choice& choice : tried) {
            if (&choice == fastest || is_large(choice)) continue;
            best.rejected.push_back(
                {choice.candidate->text(),
                 fmt::format("slower than {}, by estimate: {:.3g} ms, not {:.3g}", fastest->candidate->text(),
                             1e3 * choice.seconds, 1e3 * fastest->seconds),
                 true});
        }
        return *fastest;
    }

    struct Decided {
        const tsr_lowering* lowering;
        int layer;
        bool preferred;
        std::vector<Rejection> rejected;
    };

    // What was rejected for one layer, with the names of another one's parts.
    static std::vector<Rejection> for_layer(const Decided& decided, int layer) {
        std::vector<Rejection> rejected = decided.rejected;
        const std::string from = fmt::format(".{}.", decided.layer), to = fmt::format(".{}.", layer);
        for (Rejection& r : rejected) {
            for (std::string* text : {&r.candidate, &r.reason}) {
                for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size())
                    text->replace(at, from.size(), to);
            }
        }
        return rejected;
    }

    // What a choice of lowerings depends on: nodes of equal text get the same one.
    std::string same_problem(const Graph& graph, const Node& node, DeviceIndex device) const {
        std::string text = fmt::format("{} {}", node.op, device);
        for (const Value value : node.inputs) {
            if (!value) {
                text += " -";
                continue;
            }
            const tsr_tensor& t = graph.tensor(value);
            const Storage& storage = graph.storage(graph.storage_of(value));
            text += fmt::format(" {}:{}x{}x{}x{}:{}:{}:{}", t.type, t.dims[0], t.dims[1], t.dims[2], t.dims[3], t.range,
                                storage.source_layout, where_.weight_device(storage.name).value_or(device));
        }
        for (const tsr_attribute& a : node.attributes) text += fmt::format(" {}={}/{}", a.name, a.i, a.f);
        return text;
    }

    // To the device that computes the node soonest, copies included; not away from where a rule of the user put its
    // weights.
    void move(const Graph& graph, const Node& node, Choice& choice) const {
        const DeviceIndex from = choice.device;
        if (const std::string rule = where_.rule_that_holds(graph, node); !rule.empty()) {
            choice.rejected.push_back({kAnotherDevice, rule});
            return;
        }
        for (DeviceIndex other = 0; other < devices_.size(); ++other) {
            if (other == from) continue;
            Choice there;
            there.device = other;
            by_kernel(graph, node, there);
            const double seconds = there.seconds + where_.crossing_seconds(graph, node, from, other);
            if (!there.feasible() || seconds >= choice.seconds) continue;
            choice.seconds = seconds;
            choice.device = other;
            choice.moved_from = from;
        }
    }

    // The cheaper of using weights as they are and deriving new ones at load. Infeasible: `rejected` says why.
    Choice try_lowering(const Graph& graph, const Node& node, DeviceIndex device, const LoweringCandidate& candidate) {
        Choice best;
        // A lowering may write the op that it replaces, or another lowering that writes it: that would never end.
        if (std::ranges::find(entered_, candidate.lowering) != entered_.end()) {
            best.rejected.push_back({"here", "the node is one that this lowering wrote"});
            return best;
        }
        const Entered entered(entered_, candidate.lowering);
        for (const bool derive : {false, true}) {
            Choice split;
            split.device = device;
            split.candidate = candidate;
            try {
                split.written = std::make_unique<Written>(
                    write_lowering(graph, node, *candidate.lowering, {candidate.plugin.c_str(), candidate.abi_minor},
                                   options_, derive));
            } catch (const Error& error) {
                // What a plugin does wrong costs its lowering the place, and nothing else.
                if (error.code() != TSR_UNSUPPORTED) {
                    if (candidate.plugin == "core") throw;
                    log().warn("{}; the lowering is not used", error.what());
                }
                best.rejected.push_back({derive ? "with derived weights" : "as it is", error.what()});
                continue;
            }
            double seconds = 0, longest = 0;
            split.preference = candidate.preference;
            const CacheDevices caches = where_.cache_devices(split.written->graph, device, moving_);
            for (const Node& part : split.written->graph.nodes()) {
                Choice& choice = split.parts.emplace_back(choose(split.written->graph, part, device, caches));
                if (!choice.feasible()) {
                    best.rejected.push_back({part.op + " (" + part.name + ")", reasons(choice.rejected)});
                    for (const Rejection& r : choice.rejected) {
                        if (r.candidate == kAnotherDevice) best.rejected.push_back(r);
                    }
                }
                if (part.stage == TSR_STAGE_RUN || !choice.feasible()) {
                    seconds += choice.seconds;
                    if (choice.seconds > longest) {
                        longest = choice.seconds;
                        split.preference = std::min(candidate.preference, choice.preference);
                    }
                }
            }
            if (seconds < best.seconds) {
                split.seconds = seconds;
                split.rejected = std::move(best.rejected);
                best = std::move(split);
            }
        }
        if (best.feasible()) best.rejected.clear();
        return best;
    }

    static std::string reasons(const std::vector<Rejection>& rejected) {
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
        const std::vector<LoweringCandidate> candidates =
            lowering_candidates(*model_.ops().find(node.op), registry_, options_);
        if (candidates.empty()) return;
        LoweringChoice& line = result_.choices.emplace_back();
        line.node = node.name;
        line.op = node.op;
        line.layer = node.layer;
        line.device = choice.device;
        line.lowering = "kernel";
        if (choice.candidate) {
            line.lowering = choice.candidate->lowering->name;
            line.plugin = choice.candidate->plugin;
            line.summary = choice.candidate->lowering->summary ? printable(choice.candidate->lowering->summary) : "";
            line.family = choice.candidate->lowering->family ? printable(choice.candidate->lowering->family) : "";
            line.asked = choice.candidate->is_named;
        }
        line.preferred = choice.preferred;
        line.rejected = choice.rejected;
        if (named && !line.asked && noted_.insert({node.op, choice.device}).second) {
            std::string why;
            for (const LoweringCandidate& candidate : candidates) {
                for (const Rejection& r : choice.rejected) {
                    if (candidate.is_named && r.candidate == candidate.text()) why = r.reason;
                }
            }
            result_.notes.push_back(fmt::format(
                "{} '{}' was asked for and cannot be used on {} ({}); '{}' is used instead", node.op, asked->second,
                devices_[choice.device]->id, why.empty() ? "there is no such lowering" : why, line.lowering));
        }
    }

    void report_move(const Node& node, const Choice& choice) {
        if (!noted_.insert({node.op, *choice.moved_from}).second) return;
        result_.notes.push_back(fmt::format("{} ({}) runs on {}: {} cannot compute it: {}", node.name, node.op,
                                            devices_[choice.device]->id, devices_[*choice.moved_from]->id,
                                            reasons(choice.rejected)));
    }

    void emit(const Graph& from, const Node& node, const Choice& choice, Mapping& mapping) {
        Graph& out = result_.graph;
        if (!choice.candidate) {
            std::vector<Value> inputs, outputs;
            for (const Value v : node.inputs) inputs.push_back(out.import(from, v, mapping.storages, mapping.values));
            for (const Value v : node.outputs) outputs.push_back(out.import(from, v, mapping.storages, mapping.values));
            if (choice.moved_from) report_move(node, choice);
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

    struct Entered {
        Entered(std::vector<const tsr_lowering*>& all, const tsr_lowering* one) : list(all) { list.push_back(one); }
        ~Entered() { list.pop_back(); }
        Entered(const Entered&) = delete;
        Entered& operator=(const Entered&) = delete;
        std::vector<const tsr_lowering*>& list;
    };

    std::vector<const tsr_lowering*> entered_;  // whose nodes are being chosen for, the outermost first
    const Graph& model_;
    const Placement& placement_;
    const Registry& registry_;
    std::span<const tsr_device_info* const> devices_;
    const ScheduleOptions& options_;
    NodeDevices where_;
    LoweredGraph result_;
    std::map<StorageId, DeviceIndex> written_on_;  // of the model, so far
    std::set<std::pair<std::string, DeviceIndex>> noted_;
    std::map<std::string, Decided> decided_;  // by same_problem
    bool moving_ = false;                     // nodes may run elsewhere than where their weights are
};

}  // namespace

LoweredGraph lower_graph(const Graph& model, const Placement& placement, const Registry& registry,
                         std::span<const tsr_device_info* const> devices, const ScheduleOptions& options) {
    return Lowerer(model, placement, registry, devices, options).run();
}

}  // namespace tessera
