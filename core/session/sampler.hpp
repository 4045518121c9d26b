// From logits to the next token.
//
// The chain: logit bias; then the steps in the order asked for; then a draw. Temperature 0 is greedy: bias, penalties
// and DRY apply, and steps before the temperature that may leave the best token out (typ_p, xtc). With mirostat the
// chain is penalties, DRY, temperature, mirostat.
//
// Results are the same on every machine for the same logits, parameters and seed: random numbers are std::mt19937_64,
// whose output the C++ standard fixes, one for each token drawn and one for each time that XTC is asked, its upper 53
// bits scaled to [0, 1); exponentials, logarithms and powers are our own (sampling_math.hpp), as the C library's may
// differ in the last bit.
#pragma once

#include "core/session/samplers/adaptive_p.hpp"
#include "core/session/samplers/candidates.hpp"
#include "core/session/samplers/dry.hpp"
#include "core/session/samplers/mirostat.hpp"
#include "core/session/samplers/penalties.hpp"
#include "core/session/sampling_parameters.hpp"
#include "core/session/token_constraint.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace tessera::session {

// Throws Error(TSR_INTERNAL) naming the token if a logit is NaN or +infinity.
void check_logits(std::span<const float> logits);

// What DRY needs to know beside the parameters.
struct DryText {
    size_t context = 0;                                // tokens that a text may hold: bounds its window
    std::shared_ptr<const SequenceBreakers> breakers;  // SamplingParameters::dry_sequence_breakers in tokens
};

// One sequence each; not for several threads at once. Allocates when constructed and never afterwards.
class Sampler {
  public:
    using Candidate = session::Candidate;

    // Throws what check_sampling_parameters throws, and Error(TSR_INVALID_ARGUMENT) if DRY is on and `text` does not
    // say what it needs; make_sampler() does.
    Sampler(SamplingParameters parameters, size_t vocabulary_size, DryText text = {});

    // Draws from `logits`, one a token of the vocabulary, those alone that are allowed. Does not accept(). Throws
    // Error(TSR_INVALID_ARGUMENT) if their number is wrong, and Error(TSR_INTERNAL) if one is NaN or +infinity, or if
    // all that are allowed are -infinity.
    int32_t sample(std::span<const float> logits, TokenMask allowed = {});

    // Adds `token` to the text that penalties and DRY consider; call it for the prompt's tokens too, if they are to
    // count. Adaptive-p and mirostat learn from tokens that sample() returned last. Throws Error(TSR_INVALID_ARGUMENT)
    // outside the vocabulary.
    void accept(int32_t token);

    // Back to how it was constructed: nothing accepted, the seed at its start.
    void reset();

    const SamplingParameters& parameters() const noexcept { return parameters_; }

    // What the last sample() drew from (greedy: the best alone). Valid until the next call.
    std::span<const Candidate> candidates() const noexcept { return candidates_; }

  private:
    // What was drawn, and its probability as adaptive-p and mirostat have it.
    struct Drawn {
        int32_t token;
        double probability;
    };

    void choose_steps();
    void make_states(DryText text);
    bool on(SamplingStep step) const;
    void check(std::span<const float> logits) const;
    // The `limit` best, best first, or in the order of the vocabulary if `limit` is all of it; penalties and DRY are
    // applied where the chain begins with them.
    void collect(std::span<const float> logits, TokenMask allowed, size_t limit);
    // `plain`: no logit is changed.
    template <typename Adjust>
    void collect(std::span<const float> logits, TokenMask allowed, size_t limit, bool plain, Adjust adjust);
    float adjusted(SamplingStep step, int32_t token, float logit) const;
    void apply(SamplingStep step);
    // From 0 to below 1.
    double random_share();
    int32_t draw();

    SamplingParameters parameters_;
    size_t vocabulary_size_;
    std::vector<SamplingStep> steps_;  // of the order, those that are on
    size_t adjusting_ = 0;             // the first of these: penalties and DRY
    bool greedy_ = false;
    std::mt19937_64 random_;
    Candidates candidates_;
    std::vector<float> bias_;  // by token; empty without bias
    std::optional<Penalties> penalties_;
    std::optional<Dry> dry_;
    std::optional<AdaptiveP> adaptive_;
    std::optional<Mirostat> mirostat_;
    std::optional<Drawn> drawn_;
};

}  // namespace tessera::session
