// core/setup/loading.hpp for a terminal: reports and progress go to standard error.
#pragma once

#include "apps/tessera/read_settings.hpp"
#include "core/session/generator_options.hpp"
#include "core/setup/draft_model.hpp"
#include "core/setup/drafts.hpp"
#include "core/setup/loading.hpp"

#include <memory>

namespace tessera::app {

// tessera::load_engine with a progress bar.
std::unique_ptr<Engine> load_engine(OpenedModel model, const Machine& machine, EngineOptions options, bool may_shrink,
                                    uint32_t minimum, bool verbose);

// tessera::load_draft_model with a progress bar.
std::shared_ptr<session::DraftSource> load_draft_model(const ModelSettings& settings, Machine& machine,
                                                       const text::Tokenizer& tokenizer, DraftUse use);

// With the drafts that the settings ask for; says where they may change answers.
session::GeneratorOptions generator_options(const ModelSettings& settings, const Engine& engine,
                                            std::shared_ptr<session::DraftSource> draft_model);

// Prompt and generation in tokens per second, and the time spent on packing.
void say_timings(const session::GenerationTimings& timings, const PackingProgress& packing);

// tessera::keep_run.
void keep_run(const Machine& machine, const Engine& engine);

// Measured speed beside the predicted one.
void say_comparison(const StepComparisons& compared);

// The seed that repeats an answer; nothing where the best token is always taken.
void say_seed(const session::SamplingParameters& sampling);

// tessera::sampling_parameters; throws UsageError for what flags say, and Error for what is wrong in the file.
session::SamplingParameters sampling_for(const ModelSettings& settings, const OpenedModel& model,
                                         const text::Tokenizer& tokenizer);

}  // namespace tessera::app
