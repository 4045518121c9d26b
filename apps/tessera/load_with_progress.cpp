#include "apps/tessera/load_with_progress.hpp"

#include "apps/tessera/output.hpp"
#include "apps/wording/wording.hpp"
#include "core/base/error.hpp"
#include "core/setup/earlier_runs.hpp"

#include <algorithm>
#include <utility>

namespace tessera::app {

std::unique_ptr<Engine> load_engine(OpenedModel model, const Machine& machine, EngineOptions options, bool may_shrink,
                                    uint32_t minimum, bool verbose) {
    ProgressBar bar("loading");
    return tessera::load_engine(
        std::move(model), machine, std::move(options), may_shrink, minimum, verbose,
        [](const Notice& notice) { say(worded(notice)); },
        [&](uint64_t done, uint64_t total) { bar.update(done, total); });
}

std::shared_ptr<session::DraftSource> load_draft_model(const ModelSettings& settings, Machine& machine,
                                                       const text::Tokenizer& tokenizer, DraftUse use) {
    ProgressBar bar("loading the draft model");
    return tessera::load_draft_model(
        settings, machine, tokenizer, use, [](const Notice& notice) { say(worded(notice)); },
        [&](uint64_t done, uint64_t total) { bar.update(done, total); });
}

session::GeneratorOptions generator_options(const ModelSettings& settings, const Engine& engine,
                                            std::shared_ptr<session::DraftSource> draft_model) {
    if (const auto notice = draft_notice(settings.drafts, engine)) say(worded(*notice));
    session::GeneratorOptions options;
    options.drafts = make_drafts(settings.drafts, std::move(draft_model));
    return options;
}

void say_timings(const session::GenerationTimings& timings, const PackingProgress& packing) {
    for (const std::string& line : timing_lines(timings, packing)) say(line);
}

void keep_run(const Machine& machine, const Engine& engine) {
    tessera::keep_run(machine, engine, [](const Notice& notice) { say(worded(notice)); });
}

void say_comparison(const StepComparisons& compared) {
    for (const std::string& line : comparison_lines(compared)) say(line);
}

void say_seed(const session::SamplingParameters& sampling) {
    if (sampling.temperature > 0) say(fmt::format("seed: {}", sampling.seed));
}

session::SamplingParameters sampling_for(const ModelSettings& settings, const OpenedModel& model,
                                         const text::Tokenizer& tokenizer) {
    try {
        session::check_sampling_parameters(settings.sampling, tokenizer.size());
    } catch (const Error& error) {
        // "top_p: expected ..." is about --top-p.
        std::string text = error.what();
        std::replace(text.begin(), text.begin() + static_cast<ptrdiff_t>(std::min(text.find(':'), text.size())), '_',
                     '-');
        throw UsageError("--" + text);
    }
    return sampling_parameters(settings, model.bundled, tokenizer, model.file.metadata(), say);
}

}  // namespace tessera::app
