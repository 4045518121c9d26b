#include "core/session/samplers/temperature.hpp"

#include "core/session/sampling_math.hpp"

namespace tessera::session {

void apply_temperature(Candidates& candidates, float temperature) {
    if (temperature == 0.0f) {
        const auto best = std::ranges::min_element(candidates, by_logit);
        candidates.front() = *best;
        candidates.resize(1);
        return;
    }
    // Relative to the best, so that no temperature, however small, overflows.
    const float best = best_logit(candidates);
    for (Candidate& one : candidates) one.logit = finite((one.logit - best) / temperature);
}

void apply_dynamic_temperature(Candidates& candidates, float temperature, float range, float exponent) {
    if (candidates.size() == 1) return;
    const double total = weigh(candidates);
    const auto best = static_cast<double>(best_logit(candidates));
    double sum = 0.0;
    for (const Candidate& one : candidates) sum += one.weight * (static_cast<double>(one.logit) - best);
    const double entropy = logarithm(total) - sum / total;
    const double share = std::clamp(entropy / logarithm(static_cast<double>(candidates.size())), 0.0, 1.0);
    const double lowest = std::max(0.0, static_cast<double>(temperature) - static_cast<double>(range));
    const double highest = static_cast<double>(temperature) + static_cast<double>(range);
    apply_temperature(
        candidates,
        static_cast<float>(lowest + (highest - lowest) * power_below_one(share, static_cast<double>(exponent))));
}

}  // namespace tessera::session
