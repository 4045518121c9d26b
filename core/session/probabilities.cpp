#include "core/session/probabilities.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera::session {

TokenProbabilities probabilities_of(std::span<const float> logits, Token token, uint32_t count) {
    const float largest = *std::ranges::max_element(logits);
    if (!std::isfinite(largest)) fail(TSR_INTERNAL, "the logits of a step are not finite");
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit - largest));
    const double log_sum = static_cast<double>(largest) + std::log(sum);
    const auto log_probability = [&](Token of) {
        return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(of)]) - log_sum);
    };
    TokenProbabilities result{token, log_probability(token), {}};
    if (count == 0) return result;
    std::vector<Token> best(logits.size());
    std::iota(best.begin(), best.end(), 0);
    const size_t kept = std::min<size_t>(count, best.size());
    std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(kept), [&](Token a, Token b) {
        const float left = logits[static_cast<size_t>(a)], right = logits[static_cast<size_t>(b)];
        return left > right || (left == right && a < b);
    });
    for (size_t i = 0; i < kept; ++i) result.best.emplace_back(best[i], log_probability(best[i]));
    return result;
}

TokenProbabilities probabilities_of(std::span<const Sampler::Candidate> candidates, Token token, uint32_t count) {
    double sum = 0;
    for (const Sampler::Candidate& one : candidates) sum += one.weight;
    if (!(sum > 0)) fail(TSR_INTERNAL, "no token was left to be drawn");
    const auto log_probability = [&](double weight) { return static_cast<float>(std::log(weight / sum)); };
    const auto drawn = std::ranges::find(candidates, token, &Sampler::Candidate::token);
    TokenProbabilities result{token, log_probability(drawn == candidates.end() ? 0 : drawn->weight), {}};
    std::vector<Sampler::Candidate> best(std::min<size_t>(count, candidates.size()));
    std::ranges::partial_sort_copy(candidates, best, [](const auto& a, const auto& b) {
        return a.weight > b.weight || (a.weight == b.weight && a.token < b.token);
    });
    for (const Sampler::Candidate& one : best) {
        if (one.weight > 0) result.best.emplace_back(one.token, log_probability(one.weight));
    }
    return result;
}

}  // namespace tessera::session
