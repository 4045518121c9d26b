// From logits to the next token.
//
// The chain: logit bias; then the steps in the order asked for; then a draw. Temperature 0 is greedy: bias and
// penalties apply, the rest cannot change which token is best.
//
// Results are the same on every machine for the same logits, parameters and seed: random numbers are std::mt19937_64,
// whose output the C++ standard fixes, one for each token drawn, its upper 53 bits scaled to [0, 1); weights come from
// our own exponential (sampling_math.hpp), as the C library's may differ in the last bit.
#pragma once

#include "core/session/sampling_parameters.hpp"
#include "core/session/token_constraint.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace tessera::session {

// Throws Error(TSR_INTERNAL) naming the token if a logit is NaN or +infinity.
void check_logits(std::span<const float> logits);

// One sequence each; not for several threads at once. Allocates when constructed and never afterwards.
class Sampler {
  public:
    struct Candidate {
        int32_t token;
        float logit;
        double weight;  // share of the probability times a factor common to all
    };

    // Throws what check_sampling_parameters throws.
    Sampler(SamplingParameters parameters, size_t vocabulary_size);

    // Draws from `logits`, one a token of the vocabulary, those alone that are allowed. Does not accept(). Throws
    // Error(TSR_INVALID_ARGUMENT) if their number is wrong, and Error(TSR_INTERNAL) if one is NaN or +infinity, or if
    // all that are allowed are -infinity.
    int32_t sample(std::span<const float> logits, TokenMask allowed = {});

    // Adds `token` to the text that penalties consider; call it for the prompt's tokens too, if they are to count.
    // Throws Error(TSR_INVALID_ARGUMENT) outside the vocabulary.
    void accept(int32_t token);

    // Back to how it was constructed: nothing accepted, the seed at its start.
    void reset();

    const SamplingParameters& parameters() const noexcept { return parameters_; }

    // What the last sample() drew from (greedy: the best alone). Valid until the next call.
    std::span<const Candidate> candidates() const noexcept { return candidates_; }

  private:
    void check(std::span<const float> logits) const;
    // The `limit` best, best first, or in the order of the vocabulary if `limit` is all of it.
    void collect(std::span<const float> logits, TokenMask allowed, bool penalize, size_t limit);
    float penalized(float logit, uint32_t count) const;
    void apply(SamplingStep step);
    void apply_penalties();
    void keep_top_k();
    void keep_typical();
    void keep_top_p();
    void keep_min_p();
    void apply_temperature();
    // Fills in weights, the best having 1; returns their sum.
    double weigh();
    // Keeps the fewest first candidates, in the order of `better`, whose weights reach `target`.
    template <typename Better>
    void keep_until(double target, Better better);
    float best_logit() const;

    SamplingParameters parameters_;
    size_t vocabulary_size_;
    bool penalties_on_;
    std::mt19937_64 random_;
    std::vector<Candidate> candidates_;
    std::vector<float> bias_;       // by token; empty without bias
    std::vector<uint32_t> counts_;  // by token: how often in the window; empty without penalties
    std::vector<int32_t> window_;   // ring of the last penalty_last_n tokens; empty without penalties or limit
    size_t window_fill_ = 0;
    size_t window_next_ = 0;
};

}  // namespace tessera::session
