// Mirostat (Basu et al., arXiv:2007.14966): cuts candidates off where they surprise more than a bound, which follows
// the surprises of the tokens drawn so that their mean comes near a target. Surprise: -log2 of the probability.
#pragma once

#include "core/session/samplers/candidates.hpp"

namespace tessera::session {

class Mirostat {
  public:
    // version: 1 estimates from the best 100 how probabilities fall with the rank (Zipf's law) and keeps as many
    // candidates as the bound then allows; 2 compares surprises themselves. target: bits. rate: share of an error that
    // the bound is changed by.
    Mirostat(int version, float target, float rate, size_t vocabulary_size);

    // Leaves out what surprises too much and fills in weights; returns their sum.
    double truncate(Candidates& candidates);

    // `probability`: that the token drawn had among the candidates left.
    void accept(double probability) noexcept;
    void reset() noexcept;

    double bound() const noexcept { return bound_; }

  private:
    void keep_by_rank(Candidates& candidates) const;
    void keep_by_surprise(Candidates& candidates) const;

    int version_;
    double target_, rate_, vocabulary_size_;
    double bound_ = 0;
};

}  // namespace tessera::session
