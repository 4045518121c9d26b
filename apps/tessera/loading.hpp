// Loading a model for a command that generates, and saying so in plain words.
#pragma once

#include "apps/tessera/settings.hpp"
#include "apps/tessera/setup.hpp"
#include "core/session/engine.hpp"
#include "core/session/generation.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace tessera::app {

// Tokens that a request may hold in the cache, and all of them together.
struct ContextWish {
    std::vector<uint32_t> requests;  // each
    uint32_t all = 0;
};

// For prompts of these many tokens, of which `at_once` are worked on at a time. `given`: -c; `predict`: -n, negative:
// until the end. `model`: what the model was made for, 0: unknown.
ContextWish wish_context(std::span<const size_t> prompts, uint32_t at_once, std::optional<uint32_t> given,
                         int64_t predict, uint32_t model);

// Plans, says what was planned, and loads with a progress bar. If the context was not given (`may_shrink`) and does not
// fit, the largest that does is taken, if it holds `least` tokens. Throws what Engine throws.
std::unique_ptr<Engine> load_engine(OpenedModel model, const Machine& machine, EngineOptions options, bool may_shrink,
                                    uint32_t least, bool verbose);

// Prompt and generation in tokens a second, and what packing took of that, on standard error.
void say_timings(const session::GenerationTimings& timings, const PackingProgress& packing);

// Sampling as the settings and the model's default have it.
session::SamplingParameters sampling_for(const ModelSettings& settings, bool bundled, const text::Tokenizer& tokenizer);

}  // namespace tessera::app
