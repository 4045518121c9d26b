#include "core/plan/layouts.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace tessera {
namespace {

// A consumer may get this much slower so that a weight needs no second copy.
constexpr double kSlowdownForSharing = 1.5;

struct Use {
    uint32_t node;
    uint32_t operand;
};

class Chooser {
  public:
    Chooser(const LoweredGraph& lowered, const Registry& registry, std::span<const tsr_device_info* const> devices,
            bool pack)
        : lowered_(lowered), registry_(registry), devices_(devices), pack_(pack) {}

    std::deque<ChosenNode> run() {
        collect();
        for (auto& [key, uses] : uses_) settle(key.first, uses);
        for (size_t i = 0; i < chosen_.size(); ++i) {
            chosen_[i].candidate = candidates_[i].front();
            for (size_t k = 1; k < candidates_[i].size(); ++k) {
                chosen_[i].rejected.push_back({name_of(candidates_[i][k]), "slower, by estimate or priority"});
            }
        }
        return std::move(chosen_);
    }

  private:
    std::string name_of(const KernelCandidate& candidate) const {
        return fmt::format("{}/{}", registry_.owner(*candidate.kernel).manifest.name, candidate.kernel->name);
    }

    void collect() {
        const Graph& graph = lowered_.graph;
        uint32_t index = 0;
        for (const Node& node : graph.nodes()) {
            const NodeView view(graph, node);
            const DeviceIndex device = lowered_.node_device[index];
            KernelCandidates found = find_kernels(view.abi(), *devices_[device], registry_);
            if (found.able.empty()) fail(TSR_INTERNAL, "{} ({}) has lost its kernels", node.name, node.op);
            ChosenNode& chosen = chosen_.emplace_back();
            chosen.layouts.resize(view.operand_count());
            chosen.why_copy.resize(chosen.layouts.size());
            chosen.rejected = std::move(found.unable);
            candidates_.push_back(std::move(found.able));
            for (uint32_t i = 0; i < chosen.layouts.size(); ++i) {
                const tsr_tensor& t = sdk::operand(view.abi(), i);
                if (!sdk::present(&t)) continue;
                if (node.stage == TSR_STAGE_INIT || !has_layout(t)) {
                    keep(index, i, "");  // activations, inputs, vectors and what init nodes read are canonical
                } else {
                    const Value value = i < node.inputs.size() ? node.inputs[i] : node.outputs[i - node.inputs.size()];
                    uses_[{graph.storage_of(value), device}].push_back({index, i});
                }
            }
            ++index;
        }
    }

    static bool has_layout(const tsr_tensor& t) {
        return t.role == TSR_ROLE_CACHE || (t.role == TSR_ROLE_WEIGHT && t.rank >= 2);
    }

    // Drops candidates that cannot take the operand in that layout.
    void keep(uint32_t node, uint32_t operand, std::string_view layout) {
        std::vector<KernelCandidate>& list = candidates_[node];
        const std::string best = list.empty() ? "" : name_of(list.front());
        std::erase_if(list, [&](const KernelCandidate& c) { return !c.accepts(operand, layout); });
        if (list.empty()) {
            fail(TSR_UNSUPPORTED, "{}: {} does not take operand {} in layout '{}'", lowered_.graph.nodes()[node].name,
                 best, operand, layout);
        }
        chosen_[node].layouts[operand] = layout;
    }

    // What a use costs in a layout, and how many others its kernel prefers.
    struct Cost {
        double seconds = std::numeric_limits<double>::infinity();
        size_t preferred = 0;
    };
    Cost cost_with(const Use& use, std::string_view layout) const {
        for (const KernelCandidate& candidate : candidates_[use.node]) {
            if (!candidate.accepts(use.operand, layout)) continue;
            const std::vector<std::string> names = candidate.layouts(use.operand);
            return {candidate.seconds(), static_cast<size_t>(std::ranges::find(names, layout) - names.begin())};
        }
        return {};
    }

    void settle(StorageId storage, const std::vector<Use>& uses) {
        std::vector<std::string> offered;
        for (const Use& use : uses) {
            for (const KernelCandidate& candidate : candidates_[use.node]) {
                for (std::string& layout : candidate.layouts(use.operand)) {
                    if (std::ranges::find(offered, layout) == offered.end()) offered.push_back(std::move(layout));
                }
            }
        }
        const Storage& what = lowered_.graph.storage(storage);
        const bool cache = what.role == TSR_ROLE_CACHE;
        // Weights keep the layout of the file if every reader accepts it.
        if (!pack_ && !cache && !what.derived) {
            const auto readable = [&](const Use& use) {
                return cost_with(use, what.source_layout).seconds < std::numeric_limits<double>::infinity();
            };
            if (std::ranges::all_of(uses, readable)) {
                for (const Use& use : uses) keep(use.node, use.operand, what.source_layout);
                return;
            }
        }
        const std::string* best = nullptr;
        // Estimates do not tell the layouts of one kernel apart; its order of them does.
        Cost least;
        for (const std::string& layout : offered) {
            Cost all{0, 0};
            for (const Use& use : uses) {
                const Cost here = cost_with(use, layout);
                const bool slow = here.seconds > kSlowdownForSharing * candidates_[use.node].front().seconds();
                all.seconds += slow && !cache ? std::numeric_limits<double>::infinity() : here.seconds;
                all.preferred += here.preferred;
            }
            if (all.seconds < least.seconds ||
                (all.seconds == least.seconds && best && all.preferred < least.preferred)) {
                least = all;
                best = &layout;
            }
        }
        if (best) {
            for (const Use& use : uses) keep(use.node, use.operand, *best);
            return;
        }
        if (cache) {
            std::string readers;
            for (const Use& use : uses) {
                readers += fmt::format("\n  {}: {}", lowered_.graph.nodes()[use.node].name,
                                       name_of(candidates_[use.node].front()));
            }
            fail(TSR_UNSUPPORTED, "no arrangement of cache pages serves all that use {}:{}",
                 lowered_.graph.storage(storage).name, readers);
        }
        for (const Use& use : uses) {
            const std::string layout = candidates_[use.node].front().layouts(use.operand).front();
            keep(use.node, use.operand, layout);
            chosen_[use.node].why_copy[use.operand] = fmt::format(
                "{} reads it as '{}'", lowered_.graph.nodes()[use.node].op, layout.empty() ? "canonical" : layout);
        }
    }

    const LoweredGraph& lowered_;
    const Registry& registry_;
    std::span<const tsr_device_info* const> devices_;
    bool pack_;
    std::deque<ChosenNode> chosen_;
    std::deque<std::vector<KernelCandidate>> candidates_;
    std::map<std::pair<StorageId, DeviceIndex>, std::vector<Use>> uses_;
};

}  // namespace

std::deque<ChosenNode> choose_kernels(const LoweredGraph& lowered, const Registry& registry,
                                      std::span<const tsr_device_info* const> devices, bool pack) {
    return Chooser(lowered, registry, devices, pack).run();
}

}  // namespace tessera
