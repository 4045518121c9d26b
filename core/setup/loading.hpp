// Loads a model for an application that generates, with a report in plain language.
#pragma once

#include "core/session/engine.hpp"
#include "core/session/generation.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/settings.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Tokens that a request may hold in the cache, and all of them together.
struct ContextWish {
    std::vector<uint32_t> requests;  // each
    uint32_t all = 0;
};

// For prompts of these many tokens, of which `at_once` are worked on at a time. `given`: -c; `predict`: -n, negative:
// until the end. `model`: what the model was made for, 0: unknown.
ContextWish wish_context(std::span<const size_t> prompts, uint32_t at_once, std::optional<uint32_t> given,
                         int64_t predict, uint32_t model);

// Takes one line of a report, without its line end. Called by the thread that loads.
using LineSink = std::function<void(std::string_view line)>;
// The same of notices.
using NoticeSink = std::function<void(const Notice& notice)>;

// Plans. If the plan does not fit and one with the weights as they lie in the file does, which needs no copy of them,
// sets `options` so, tells `say`, and returns that. Throws what plan_model throws; what does not fit is returned.
PlannedModel plan_to_fit(const gguf::GgufFile& file, const Machine& machine, EngineOptions& options,
                         const NoticeSink& say);

// Plans as plan_to_fit() does, reports what was planned, and loads. If the context was not given (`may_shrink`) and
// does not fit, the largest that fits is taken, if it holds at least `minimum` tokens. Throws what Engine throws.
std::unique_ptr<Engine> load_engine(OpenedModel model, const Machine& machine, EngineOptions options, bool may_shrink,
                                    uint32_t minimum, bool verbose, const NoticeSink& say,
                                    const LoadProgress& progress);

// Prompt and generation in tokens a second, and what packing took of that: a line each.
std::vector<std::string> timing_lines(const session::GenerationTimings& timings, const PackingProgress& packing);

// Measured speed of the steps that were compared beside the predicted one: a line for each kind of which there are any.
std::vector<std::string> comparison_lines(const StepComparisons& compared);

// Sampling as the settings have it, what they leave open as the file recommends it. Throws Error(TSR_INVALID_ARGUMENT).
session::SamplingParameters sampling_parameters(const ModelSettings& settings, bool bundled,
                                                const text::Tokenizer& tokenizer, const gguf::Metadata& metadata,
                                                const LineSink& say);

}  // namespace tessera
