#include "core/session/samplers/adaptive_p.hpp"

#include "core/session/sampling_math.hpp"

#include <cmath>

namespace tessera::session {

AdaptiveP::AdaptiveP(float target, float decay)
    : target_(static_cast<double>(target)), decay_(static_cast<double>(decay)) {
    reset();
}

void AdaptiveP::reset() noexcept {
    // As if the target had been met for ever.
    weights_ = 1.0 / (1.0 - decay_);
    probabilities_ = target_ * weights_;
}

double AdaptiveP::weigh_near_target(Candidates& candidates) {
    // Quadratic near the target, linear far from it.
    constexpr double kWidth = 0.3, kSharpness = 10.0;
    best_ = static_cast<double>(best_logit(candidates));
    total_ = weigh(candidates);
    const double aim = std::clamp(2.0 * target_ - probabilities_ / weights_, 0.0, 1.0);
    double nearest = std::numeric_limits<double>::infinity();
    for (Candidate& one : candidates) {
        const double distance = std::abs(one.weight / total_ - aim) / kWidth;
        one.weight = kSharpness * distance * distance / (1.0 + distance);
        nearest = std::min(nearest, one.weight);
    }
    double sum = 0.0;
    for (Candidate& one : candidates) {
        one.weight = exp_of_negative(nearest - one.weight);
        sum += one.weight;
    }
    return sum;
}

double AdaptiveP::probability_of(const Candidate& candidate) const noexcept {
    return exp_of_negative(static_cast<double>(candidate.logit) - best_) / total_;
}

void AdaptiveP::accept(double probability) noexcept {
    probabilities_ = probability + decay_ * probabilities_;
    weights_ = 1.0 + decay_ * weights_;
}

}  // namespace tessera::session
