#include "core/plan/layouts.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/plan/packing.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

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
            for (const Dropped& dropped : dropped_[i]) {
                chosen_[i].rejected.push_back(
                    {dropped.name, dropped.reason + ": " + compared(i, dropped.seconds), true});
            }
            for (size_t k = 1; k < candidates_[i].size(); ++k) {
                const KernelCandidate& other = candidates_[i][k];
                chosen_[i].rejected.push_back({name_of(other), why_after(i, other), true});
            }
        }
        return std::move(chosen_);
    }

  private:
    // A kernel that is able to compute a node, but not with an operand in the layout that it has.
    struct Dropped {
        std::string name;
        double seconds;
        std::string reason;
    };

    static std::string layout_text(std::string_view layout) {
        return layout.empty() ? "canonical rows" : fmt::format("'{}'", printable(layout, 64));
    }

    static std::string time_text(double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); }

    // The estimates of a kernel that was not chosen and of the one that was.
    std::string compared(size_t node, double seconds) const {
        return fmt::format("{}, not {}, by estimate", time_text(seconds), time_text(chosen_[node].candidate.seconds()));
    }

    static std::string why_dropped(const KernelCandidate& candidate, uint32_t operand, std::string_view here) {
        std::string wanted;
        for (const std::string& layout : candidate.layouts(operand))
            wanted += (wanted.empty() ? "" : " or ") + layout_text(layout);
        return fmt::format("it reads operand {} as {}, {}", operand, wanted, here);
    }

    // Why a kernel that could have been taken comes after the one that was.
    std::string why_after(size_t node, const KernelCandidate& other) const {
        const KernelCandidate& taken = chosen_[node].candidate;
        const uint32_t place = registry_.preference(*taken.kernel), later = registry_.preference(*other.kernel);
        std::string why = (other.seconds() > taken.seconds() ? "slower than " : "no faster than ") + name_of(taken);
        if (place != later) {
            why = fmt::format("plugins.prefer puts {} before it", registry_.owner(*taken.kernel).manifest.name);
        } else if (taken.kernel->priority != other.kernel->priority) {
            why = fmt::format("its priority is {}, that of {} is {}", other.kernel->priority, name_of(taken),
                              taken.kernel->priority);
        }
        return why + ": " + compared(node, other.seconds());
    }

    // Whether the user or a plugin's author puts `a` before `b`, whatever they cost.
    bool goes_before(const KernelCandidate& a, const KernelCandidate& b) const {
        const uint32_t place_a = registry_.preference(*a.kernel), place_b = registry_.preference(*b.kernel);
        return place_a != place_b ? place_a < place_b : a.kernel->priority > b.kernel->priority;
    }

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
            dropped_.emplace_back();
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
        std::erase_if(list, [&](const KernelCandidate& c) {
            if (c.accepts(operand, layout)) return false;
            dropped_[node].push_back(
                {name_of(c), c.seconds(), why_dropped(c, operand, "which is kept as " + layout_text(layout))});
            return true;
        });
        if (list.empty()) {
            fail(TSR_UNSUPPORTED, "{}: {} does not take operand {} in layout '{}'", lowered_.graph.nodes()[node].name,
                 best, operand, layout);
        }
        chosen_[node].layouts[operand] = layout;
    }

    // What a use costs in a layout, how many others its kernel prefers, and whether a kernel that goes before that one
    // is passed over.
    struct Cost {
        double seconds = std::numeric_limits<double>::infinity();
        size_t preferred = 0;
        size_t passed_over = 0;
    };
    Cost cost_with(const Use& use, std::string_view layout) const {
        for (const KernelCandidate& candidate : candidates_[use.node]) {
            if (!candidate.accepts(use.operand, layout)) continue;
            const std::vector<std::string> names = candidate.layouts(use.operand);
            return {candidate.seconds(), static_cast<size_t>(std::ranges::find(names, layout) - names.begin()),
                    goes_before(candidates_[use.node].front(), candidate) ? size_t{1} : 0};
        }
        return {};
    }

    // Whether the whole storage can be in a layout that kernels accept for views of it.
    bool holds(const Storage& what, const std::string& layout, uint32_t node) const {
        if (what.role != TSR_ROLE_WEIGHT || layout.empty()) return true;
        try {
            const Packing packing(what, layout, *devices_[lowered_.node_device[node]], registry_);
            return true;
        } catch (const Error&) {
            return false;
        }
    }

    // Of the layouts that the candidates of a use accept, those that the storage can have; candidates that accept no
    // such one are dropped.
    std::vector<std::string> possible_layouts(const Storage& what, const Use& use) {
        std::vector<std::string> possible;
        std::erase_if(candidates_[use.node], [&](const KernelCandidate& candidate) {
            bool any = false;
            for (std::string& layout : candidate.layouts(use.operand)) {
                const bool known = std::ranges::find(possible, layout) != possible.end();
                if (!known && !holds(what, layout, use.node)) continue;
                any = true;
                if (!known) possible.push_back(std::move(layout));
            }
            if (any) return false;
            dropped_[use.node].push_back(
                {name_of(candidate), candidate.seconds(),
                 why_dropped(candidate, use.operand, "which cannot hold all of " + what.name)});
            return true;
        });
        if (!possible.empty()) return possible;
        const std::vector<Dropped>& dropped = dropped_[use.node];  // all of them: there was at least one candidate
        std::string why;
        for (const Dropped& one : dropped) why += fmt::format("\n  {}: {}", one.name, one.reason);
        fail(TSR_UNSUPPORTED, "{}: no kernel takes {} as it can be kept on {}:{}",
             lowered_.graph.nodes()[use.node].name, what.name, devices_[lowered_.node_device[use.node]]->id, why);
    }

    void settle(StorageId storage, const std::vector<Use>& uses) {
        const Storage& what = lowered_.graph.storage(storage);
        std::vector<std::string> offered;
        for (const Use& use : uses) {
            for (std::string& layout : possible_layouts(what, use)) {
                if (std::ranges::find(offered, layout) == offered.end()) offered.push_back(std::move(layout));
            }
        }
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
            Cost all{0, 0, 0};
            for (const Use& use : uses) {
                const Cost here = cost_with(use, layout);
                const bool slow = here.seconds > kSlowdownForSharing * candidates_[use.node].front().seconds();
                // A weight gets a second copy for such a kernel; a cache cannot.
                const bool apart = (slow || here.passed_over > 0) && !cache;
                all.seconds += apart ? std::numeric_limits<double>::infinity() : here.seconds;
                all.preferred += here.preferred;
                all.passed_over += here.passed_over;
            }
            if (all.seconds == std::numeric_limits<double>::infinity()) continue;
            const auto rank = [](const Cost& cost) {
                return std::tuple(cost.passed_over, cost.seconds, cost.preferred);
            };
            if (!best || rank(all) < rank(least)) {
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
            const std::vector<std::string> wanted = candidates_[use.node].front().layouts(use.operand);
            const std::string layout = *std::ranges::find_if(
                wanted, [&](const std::string& name) { return std::ranges::find(offered, name) != offered.end(); });
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
    std::deque<std::vector<Dropped>> dropped_;  // of each node
    std::map<std::pair<StorageId, DeviceIndex>, std::vector<Use>> uses_;
};

}  // namespace

std::deque<ChosenNode> choose_kernels(const LoweredGraph& lowered, const Registry& registry,
                                      std::span<const tsr_device_info* const> devices, bool pack) {
    return Chooser(lowered, registry, devices, pack).run();
}

}  // namespace tessera
