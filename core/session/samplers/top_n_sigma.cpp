#include "core/session/samplers/truncation.hpp"

#include <cmath>

namespace tessera::session {

void keep_top_n_sigma(Candidates& candidates, float width) {
    const auto count = static_cast<double>(candidates.size());
    double mean = 0.0;
    for (const Candidate& one : candidates) mean += static_cast<double>(one.logit);
    mean /= count;
    double variance = 0.0;
    for (const Candidate& one : candidates) {
        const double distance = static_cast<double>(one.logit) - mean;
        variance += distance * distance;
    }
    variance /= count;
    const double least = static_cast<double>(best_logit(candidates)) - static_cast<double>(width) * std::sqrt(variance);
    std::erase_if(candidates, [least](const Candidate& one) { return static_cast<double>(one.logit) < least; });
}

}  // namespace tessera::session
