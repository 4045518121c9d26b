#include "core/plan/lowering_candidates.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <string_view>

namespace tessera {
namespace {

// A user says "3", or "PLUGIN/3" where two plugins have one of that name.
bool is_called(const LoweringCandidate& candidate, std::string_view name) {
    return name == candidate.lowering->name || name == candidate.plugin + "/" + candidate.lowering->name;
}

}  // namespace

std::string LoweringCandidate::text() const {
    const std::string summary = lowering->summary ? fmt::format(" ({})", printable(lowering->summary)) : "";
    return fmt::format("lowering {}/{}{}", plugin, lowering->name, summary);
}

std::vector<LoweringCandidate> lowering_candidates(const tsr_operator& op, const Registry& registry,
                                                   const ScheduleOptions& options) {
    const auto asked = options.lowerings.find(op.name);
    std::vector<LoweringCandidate> candidates;
    const auto add = [&](const tsr_lowering* lowering, const PluginRecord* owner) {
        LoweringCandidate& candidate = candidates.emplace_back();
        candidate.lowering = lowering;
        candidate.plugin = owner ? owner->manifest.name : "core";
        candidate.abi_minor = owner ? owner->table->abi_minor : TSR_ABI_MINOR;
        candidate.preference = owner ? registry.preference(*lowering) : registry.no_preference();
        candidate.is_named = asked != options.lowerings.end() && is_called(candidate, asked->second);
    };
    const std::span brought = registry.lowerings(op.name);
    for (uint32_t i = 0; i < op.lowering_count; ++i) {
        if (std::ranges::find(brought, op.lowerings[i]) == brought.end()) add(op.lowerings[i], nullptr);
    }
    for (const tsr_lowering* lowering : brought) add(lowering, &registry.owner(*lowering));
    std::ranges::stable_sort(candidates, [](const LoweringCandidate& a, const LoweringCandidate& b) {
        if (a.is_named != b.is_named) return a.is_named;
        if (a.preference != b.preference) return a.preference < b.preference;
        return a.lowering->priority > b.lowering->priority;
    });
    return candidates;
}

}  // namespace tessera
