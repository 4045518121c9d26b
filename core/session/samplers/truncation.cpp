#include "core/session/samplers/truncation.hpp"

#include <cmath>
#include <utility>

namespace tessera::session {

void keep_top_p(Candidates& candidates, float share, size_t minimum) {
    keep_until(candidates, static_cast<double>(share) * weigh(candidates), minimum, by_logit);
}

void keep_min_p(Candidates& candidates, float share, size_t minimum) {
    weigh(candidates);
    const auto enough = [&](const Candidate& one) { return one.weight >= static_cast<double>(share); };
    if (minimum > 1 && std::cmp_less(std::ranges::count_if(candidates, enough), minimum))
        return keep_best(candidates, minimum);
    std::erase_if(candidates, [&](const Candidate& one) { return !enough(one); });
}

void keep_typical(Candidates& candidates, float share, size_t minimum) {
    const double total = weigh(candidates);
    // |-log p - entropy| is how far a logit is from the mean logit: the logarithm of the sum cancels.
    double mean = 0.0;
    for (const Candidate& one : candidates) mean += one.weight * static_cast<double>(one.logit);
    mean /= total;
    keep_until(candidates, static_cast<double>(share) * total, minimum, [mean](const Candidate& a, const Candidate& b) {
        const double left = std::abs(static_cast<double>(a.logit) - mean);
        const double right = std::abs(static_cast<double>(b.logit) - mean);
        return left != right ? left < right : a.token < b.token;
    });
}

}  // namespace tessera::session
