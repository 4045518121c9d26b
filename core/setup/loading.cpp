#include "core/setup/loading.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/types.hpp"
#include "core/plan/fit.hpp"
#include "core/setup/file_sampling.hpp"
#include "core/setup/model_check.hpp"
#include "core/setup/plan_lines.hpp"
#include "core/setup/plan_report.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace tessera {
namespace {

constexpr uint64_t kDefaultContext = 4096;
// Room for an answer whose length is not given, after a prompt that fills the default context.
constexpr uint64_t kRoomForAnswer = 1024;
constexpr size_t kNotesShown = 1;

uint64_t whole_pages(uint64_t tokens) {
    return tokens / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS;
}

std::string loading_line(const Plan& plan, DeviceIndex device) {
    const DeviceMemory& memory = plan.memory[device];
    std::string parts =
        fmt::format("cache {}, work {}", size_text(memory.cache),
                    size_text(memory.activations + memory.workspace + memory.staging + memory.streaming));
    if (memory.weights) parts = fmt::format("weights {}, {}", size_text(memory.weights), parts);
    if (memory.mapped) parts += fmt::format("; plus {} in the mapped file", size_text(memory.mapped));
    return fmt::format("{}: uses {} of {} available ({})", plan.devices[device]->id, size_text(memory.allocated()),
                       size_text(usable_bytes(plan.devices, device)), parts);
}

void report_details(const PlannedModel& planned, const Machine& machine, const NoticeSink& say) {
    const Plan& plan = planned.plan;
    std::string plugins;
    for (const PluginRecord& record : machine.registry.plugins()) {
        if (record.table) plugins += (plugins.empty() ? "" : ", ") + record.manifest.name;
    }
    say(fmt::format("configuration: {}", machine.config.file.empty() ? "none" : machine.config.file.string()));
    say(fmt::format("plugins: {}", plugins));
    for (const std::string& line : lowering_lines(plan)) say(line);
    for (const std::string& line : cache_group_lines(plan)) say(line);
    for (const std::string& line : streaming_lines(plan)) say(line);
    say(fmt::format("steps: at most {} rows; {}, {}", plan.options.max_rows, counted(plan.nodes.size(), "node"),
                    counted(plan.step.actions.size(), "action")));
    if (!plan.deferred.empty())
        say(Notice("weights are packed for their kernels between the first steps", {{AdviceCode::kPackAtLoad, ""}}));
}

void report_plan(const PlannedModel& planned, const OpenedModel& model, const Machine& machine, bool verbose,
                 const NoticeSink& say) {
    const Plan& plan = planned.plan;
    const ModelInfo& info = planned.info;
    say(fmt::format("{}: {} layers ({}), {}; context {} tokens, cached as {}",
                    info.name.empty() ? model.path.filename().string() : printable(info.name), info.layers,
                    info.architecture, size_text(model.file.file_bytes()), planned.context, cache_types(plan)));
    if (const std::string line = further_pages(plan); !line.empty()) say(line);
    for (const std::string& note : planned.file_notes) say(note);
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        if (plan.memory[device].allocated() + plan.memory[device].mapped > 0) say(loading_line(plan, device));
    }
    if (verbose) report_details(planned, machine, say);
    std::vector<Notice> notices(plan.notes.begin(), plan.notes.end());
    notices.insert(notices.end(), planned.notices.begin(), planned.notices.end());
    const size_t shown = verbose ? notices.size() : std::min(notices.size(), kNotesShown);
    for (size_t i = 0; i < shown; ++i) {
        Notice notice = notices[i];
        if (i + 1 == shown && shown < notices.size()) {
            notice.text += fmt::format(" (and {} more)", counted(notices.size() - shown, "note"));
            notice.advice.push_back({AdviceCode::kSeeAllNotes, ""});
        }
        say(notice);
    }
}

}  // namespace

ContextWish wish_context(std::span<const size_t> prompts, uint32_t at_once, std::optional<uint32_t> given,
                         int64_t predict, uint32_t model) {
    const uint64_t made_for = model == 0 ? std::numeric_limits<uint32_t>::max() : model;
    ContextWish wish;
    const bool fixed = given && *given > 0;
    const uint64_t all = fixed ? *given : given ? made_for : 0;  // 0: to be found
    for (const size_t prompt : prompts) {
        uint64_t own = predict >= 0 ? prompt + static_cast<uint64_t>(predict)
                                    : std::max<uint64_t>(kDefaultContext, prompt + kRoomForAnswer);
        if (all) {
            // A single unlimited answer gets all. Of several each gets an equal share, but what is given to all does
            // not say that one may have more than the model was made for.
            if (predict < 0)
                own =
                    at_once == 1 ? all : std::max<uint64_t>(std::min(whole_pages(all / at_once), made_for), prompt + 1);
            own = std::min(own, all);
        } else {
            own = std::min(own, made_for);
        }
        wish.requests.push_back(static_cast<uint32_t>(
            std::min<uint64_t>(std::max<uint64_t>(own, 1), std::numeric_limits<uint32_t>::max())));
    }
    if (all) {
        wish.all = static_cast<uint32_t>(all);
        return wish;
    }
    std::vector<uint32_t> largest(wish.requests);
    std::ranges::sort(largest, std::greater());
    largest.resize(std::min<size_t>(largest.size(), at_once));
    uint64_t sum = 0;
    for (const uint32_t own : largest) sum += (uint64_t{own} + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS;
    wish.all = static_cast<uint32_t>(
        std::clamp<uint64_t>(sum, std::min(kDefaultContext, made_for), std::numeric_limits<int32_t>::max()));
    return wish;
}

namespace {

// `why`: "CPU needs 9 GiB, 8 GiB available: 1 GiB missing", of which the last part would read as if it still were.
Notice used_in_place(std::string_view why) {
    why = why.substr(0, why.rfind(": "));
    return {
        fmt::format("packed weights do not fit ({}), so they are used as they lie in the file, which is slower", why),
        {{AdviceCode::kWeightsInPlace, "already"}}};
}

}  // namespace

PlannedModel plan_to_fit(const gguf::GgufFile& file, const Machine& machine, EngineOptions& options,
                         const NoticeSink& say) {
    PlannedModel planned = plan_model(file, machine.registry, machine.hardware, options);
    const std::vector<Excess> excesses = excess_of(planned.plan);
    if (excesses.empty() || options.pack_weights == PackWeights::kNever) return planned;
    EngineOptions in_place = options;
    in_place.pack_weights = PackWeights::kNever;
    PlannedModel other = plan_model(file, machine.registry, machine.hardware, in_place);
    if (!excess_of(other.plan).empty()) return planned;
    const std::optional<Notice> misfits = misfit(planned.plan, excesses.front().device);
    say(used_in_place(misfits ? misfits->text : ""));
    if (const uint64_t missing = mapped_excess(other.plan); missing > 0) {
        say(
            fmt::format("the file is larger than the memory that is left by {}: parts of it are read from disk again "
                        "and again",
                        size_text(missing)));
    }
    options.pack_weights = PackWeights::kNever;
    return other;
}

std::unique_ptr<Engine> load_engine(OpenedModel model, const Machine& machine, EngineOptions options, bool may_shrink,
                                    uint32_t minimum, bool verbose, const NoticeSink& say,
                                    const LoadProgress& progress) {
    // A context that may shrink does so by up to a half before packed weights are given up.
    PlannedModel planned = may_shrink ? plan_model(model.file, machine.registry, machine.hardware, options)
                                      : plan_to_fit(model.file, machine, options, say);
    try {
        check_fit(planned.plan);
    } catch (const Error& error) {
        if (error.code() != TSR_DOES_NOT_FIT || !may_shrink) throw;
        const uint32_t wanted = planned.context;
        const auto largest_of = [&](const EngineOptions& tried) {
            if (excess_of(plan_model(model.file, machine.registry, machine.hardware, tried).plan).empty())
                return wanted;
            return largest_context(model.file, machine.registry, machine.hardware, tried);
        };
        bool in_place = false;
        uint32_t largest = largest_of(options);
        if (largest < std::max(minimum, wanted / 2) && options.pack_weights != PackWeights::kNever) {
            EngineOptions other = options;
            other.pack_weights = PackWeights::kNever;
            if (const uint32_t more = largest_of(other); more > largest) {
                in_place = true;
                options = other;
                largest = more;
            }
        }
        if (largest < std::max(minimum, 1u)) throw;
        if (largest < wanted) {
            say(fmt::format("a context of {} tokens does not fit; using the largest that does, {}", wanted, largest));
            options.context = largest;
        } else if (!in_place) {
            throw;
        }
        if (in_place) say(used_in_place(error.what()));
        planned = plan_model(model.file, machine.registry, machine.hardware, options);
    }
    report_plan(planned, model, machine, verbose, say);
    constexpr uint64_t kLookedAt = uint64_t{64} << 20;
    if (const std::string zeros = zero_tail_text(model.file, kLookedAt); !zeros.empty())
        say(Notice(zeros, {{AdviceCode::kCheckFile, ""}}));
    auto engine = std::make_unique<Engine>(std::move(model.file), std::move(planned), machine.registry,
                                           machine.hardware, options, progress);
    for (const std::string& note : engine->notes()) say(note);
    return engine;
}

std::vector<std::string> timing_lines(const session::GenerationTimings& t, const PackingProgress& packing) {
    std::vector<std::string> lines;
    const auto line = [](std::string_view what, uint64_t tokens, double seconds) {
        return fmt::format("{}: {} in {:.3f} s, {:.2f} tokens/s", what, counted(tokens, "token"), seconds,
                           seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0);
    };
    if (packing.done_bytes) {
        const std::string of =
            packing.done_bytes < packing.total_bytes ? fmt::format(" of {}", size_text(packing.total_bytes)) : "";
        lines.push_back(fmt::format("packing: {}{} of weights between steps in {:.3f} s, included in the times below",
                                    size_text(packing.done_bytes), of, packing.seconds));
    }
    lines.push_back(line("prompt", t.prompt_tokens, t.prompt_seconds) +
                    (t.reused_tokens ? fmt::format(" ({} more were in the cache)", t.reused_tokens) : ""));
    lines.push_back(line("generation", t.generated_tokens, t.generation_seconds));
    if (t.drafted_tokens)
        lines.back() += fmt::format("; {} of {} drafted tokens were accepted", t.accepted_tokens, t.drafted_tokens);
    return lines;
}

std::vector<std::string> comparison_lines(const StepComparisons& compared) {
    std::vector<std::string> lines;
    const auto add = [&](std::string_view what, const ComparedSteps& steps) {
        if (steps.steps == 0) return;
        const auto tokens = static_cast<double>(steps.tokens);
        lines.push_back(
            fmt::format("{} beside the prediction, {}: {:.2f} tokens/s, predicted {:.2f}; in the median {:.2f} of it",
                        what, counted(steps.steps, "step"), tokens / steps.measured_seconds,
                        tokens / steps.predicted_seconds, steps.ratio));
    };
    add("prompt", compared.prompts);
    add("generation", compared.generation);
    return lines;
}

session::SamplingParameters sampling_parameters(const ModelSettings& settings, bool bundled,
                                                const text::Tokenizer& tokenizer, const gguf::Metadata& metadata,
                                                const LineSink& say) {
    session::SamplingParameters p = settings.sampling;
    for (const std::string& line : take_file_sampling(metadata, tokenizer.size(), settings, p)) say(line);
    // The bundled model is small enough that its second choice is often a wrong one.
    const auto& given = settings.sampling_given;
    if (bundled && std::ranges::find(given, "temperature") == given.end()) p.temperature = 0;
    if (settings.ignore_end) {
        for (const text::Token end : tokenizer.generation_ends())
            p.logit_bias.emplace_back(end, -std::numeric_limits<float>::infinity());
    }
    session::check_sampling_parameters(p, tokenizer.size());
    return p;
}

}  // namespace tessera
