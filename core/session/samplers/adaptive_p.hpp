// Adaptive-p: prefers tokens whose probability is near a target, which moves against what was drawn before so that the
// mean of the probabilities drawn comes near it (llama.cpp pull request 17927).
#pragma once

#include "core/session/samplers/candidates.hpp"

namespace tessera::session {

class AdaptiveP {
  public:
    // target: 0 to 1. decay: 0 to 0.99, the weight that what was drawn keeps with each further token.
    AdaptiveP(float target, float decay);

    // Fills in the weights to draw with; logits stay. Returns the weights' sum.
    double weigh_near_target(Candidates& candidates);

    // The probability that a candidate had before weigh_near_target().
    double probability_of(const Candidate& candidate) const noexcept;

    // `probability`: of the token that was drawn.
    void accept(double probability) noexcept;
    void reset() noexcept;

  private:
    double target_, decay_;
    double probabilities_, weights_;  // of the tokens drawn, the latest counting most
    double best_ = 0, total_ = 1;     // of the candidates' softmax
};

}  // namespace tessera::session
