// Logits and parameters that tests of sampling share.
#pragma once

#include "core/session/sampling_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tessera::session {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Everything off: a plain draw from the softmax.
inline SamplingParameters plain() {
    SamplingParameters p;
    p.temperature = 1.0f;
    p.top_k = 0;
    p.top_p = 1.0f;
    p.min_p = 0.0f;
    return p;
}

inline std::vector<float> random_logits(size_t size, uint64_t seed, float spread = 3.0f) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0.0f, spread);
    std::vector<float> logits(size);
    for (float& one : logits) one = normal(random);
    return logits;
}

inline std::vector<double> softmax(const std::vector<float>& logits) {
    const double best = *std::ranges::max_element(logits);
    std::vector<double> p(logits.size());
    double total = 0;
    for (size_t i = 0; i < p.size(); ++i) total += p[i] = std::exp(logits[i] - best);
    for (double& one : p) one /= total;
    return p;
}

}  // namespace tessera::session
