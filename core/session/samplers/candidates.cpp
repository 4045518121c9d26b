#include "core/session/samplers/candidates.hpp"

#include "core/session/sampling_math.hpp"

namespace tessera::session {

float best_logit(const Candidates& candidates) noexcept {
    float best = candidates.front().logit;
    for (const Candidate& one : candidates) best = std::max(best, one.logit);
    return best;
}

double weigh(Candidates& candidates) noexcept {
    const auto best = static_cast<double>(best_logit(candidates));
    double total = 0.0;
    for (Candidate& one : candidates) {
        one.weight = exp_of_negative(static_cast<double>(one.logit) - best);
        total += one.weight;
    }
    return total;
}

void keep_best(Candidates& candidates, size_t count) {
    if (count >= candidates.size()) return;
    std::ranges::nth_element(candidates, candidates.begin() + static_cast<ptrdiff_t>(count), by_logit);
    candidates.resize(count);
    // The order after nth_element depends on the library.
    std::ranges::sort(candidates, by_logit);
}

}  // namespace tessera::session
