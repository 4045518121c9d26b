#include "core/setup/plan_lines.hpp"

#include "core/base/text.hpp"
#include "core/graph/types.hpp"
#include "core/setup/model_sizes.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tessera {

bool is_without_choice(const LoweringChoice& choice) {
    return choice.plugin.empty() || (choice.plugin == "core" && choice.lowering == "parts");
}

std::vector<std::string> lowering_lines(const Plan& plan) {
    std::map<std::tuple<std::string, std::string, std::string, DeviceIndex>, std::set<int>> found;
    for (const LoweringChoice& choice : plan.lowerings) {
        if (is_without_choice(choice)) continue;
        found[{choice.op, choice.plugin, choice.lowering, choice.device}].insert(choice.layer);
    }
    std::vector<std::string> lines;
    for (const auto& [key, layers] : found) {
        const auto& [op, plugin, lowering, device] = key;
        lines.push_back(fmt::format("{}: variant {} of {}, layers {}, {}", op, lowering, plugin,
                                    ranges_text({layers.begin(), layers.end()}), plan.devices[device]->id));
    }
    return lines;
}

std::vector<std::string> streaming_lines(const Plan& plan) {
    std::map<std::pair<DeviceIndex, uint32_t>, std::set<int>> layers;
    for (const StreamedNode& streamed : plan.streamed)
        layers[{streamed.device, streamed.rows_from}].insert(plan.graph.nodes()[plan.nodes[streamed.node].node].layer);
    std::vector<std::string> lines;
    for (const auto& [key, found] : layers) {
        const auto& [device, rows] = key;
        lines.push_back(fmt::format(
            "steps of {} rows or more copy the experts of layers {} to {}, through {}, and compute them there", rows,
            ranges_text({found.begin(), found.end()}), plan.devices[device]->id,
            size_text(plan.memory[device].streaming)));
    }
    return lines;
}

std::vector<std::string> cache_group_lines(const Plan& plan) {
    if (std::ranges::all_of(plan.cache_groups, [](const CacheGroup& group) { return group.rule.keeps_all(); }))
        return {};
    std::vector<std::string> lines;
    for (const CacheGroup& group : plan.cache_groups) {
        std::set<int> layers;
        for (const StorageId cache : group.caches) layers.insert(plan.graph.storage(cache).layer);
        std::string sizes;
        for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
            if (const uint64_t bytes = plan.cache_bytes(group, device); bytes > 0)
                sizes += fmt::format(", {} {}", plan.devices[device]->id, size_text(bytes));
        }
        const std::string kept =
            group.rule.keeps_all() ? "all tokens" : fmt::format("a window of {} tokens", group.rule.window);
        lines.push_back(fmt::format("cache of {}: layers {}, {} of {} tokens{}", kept,
                                    ranges_text({layers.begin(), layers.end()}), counted(group.pages, "page"),
                                    TSR_PAGE_TOKENS, sizes));
    }
    return lines;
}

std::string cache_types(const Plan& plan) {
    std::set<tsr_type> types;
    for (StorageId id = 1; id < plan.graph.storage_count(); ++id) {
        if (plan.graph.storage(id).role == TSR_ROLE_CACHE) types.insert(plan.graph.storage(id).type);
    }
    std::string names;
    for (const tsr_type type : types) names += (names.empty() ? "" : " and ") + std::string(type_info(type).name);
    return names;
}

std::string further_pages(const Plan& plan) {
    const uint32_t further = plan.options.max_sequences - 1;
    if (further == 0) return {};
    return fmt::format(
        "of the context, {} are a page of {} for each further sequence: each fills its last page in part",
        counted(uint64_t{further} * TSR_PAGE_TOKENS, "token"), TSR_PAGE_TOKENS);
}

}  // namespace tessera
