#include "apps/tessera/commands.hpp"
#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/load_with_progress.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/perplexity.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/tessera/step_canceller.hpp"
#include "apps/tessera/text_input.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/session/cache_range.hpp"
#include "core/session/sampler.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/prompts.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tessera::app {
namespace {

constexpr uint32_t kPerplexityContext = 512;
constexpr uint32_t kMinimumContext = 4;
// Rows of a step with logits; for a vocabulary of 129,280 they take 132 MB.
constexpr uint32_t kMaximumOutputRows = 256;
constexpr uint32_t kChunksOfLine = 6;

struct Asked {
    std::optional<std::string> base;  // --kl-divergence-base
    bool compares = false;            // with it; else it is written
    std::optional<uint32_t> chunks;
};

Asked read_asked(Arguments& arguments, const ModelSettings& settings) {
    Asked asked{arguments.text("kl-divergence-base"), arguments.has("kl-divergence"), {}};
    if (const auto chunks = arguments.integer("chunks", -1, 1 << 24); chunks && *chunks > 0)
        asked.chunks = static_cast<uint32_t>(*chunks);
    if (asked.compares && !asked.base)
        throw UsageError("--kl-divergence: expected the run to compare with as --kl-divergence-base FILE");
    if (asked.base == "-") {
        throw UsageError(
            "--kl-divergence-base -: the run is not written to standard output, which has the results; name "
            "a file or a pipe");
    }
    if (asked.compares && settings.file) arguments.remark("-f: the text is in the saved run");
    if (!asked.compares && !settings.file) throw UsageError("nothing to score: give a text with -f FILE");
    return asked;
}

// The text as chunks of one context each.
SavedRunHead read_chunks(const ModelSettings& settings, const text::Tokenizer& tokenizer, uint32_t context) {
    const std::string given = read_text(*settings.file);
    std::vector<Token> tokens = tokenizer.encode(given, {.add_special = true, .parse_special = false});
    if (tokenizer.adds_bos() && given.starts_with(tokenizer.spelling(tokenizer.bos())) &&
        tokenizer.type(tokenizer.bos()) == text::TokenType::kControl) {
        say(
            fmt::format("{} begins with {}, which is scored as text after the token of that name: control tokens in a "
                        "text are not parsed here",
                        *settings.file, tokenizer.spelling(tokenizer.bos())));
    }
    if (tokenizer.adds_eos() && !tokens.empty() && tokens.back() == tokenizer.eos()) tokens.pop_back();
    if (tokens.size() < context) {
        fail(TSR_INVALID_ARGUMENT,
             "{}: expected at least {} tokens, one context, found {}: give a longer text or a smaller -c",
             *settings.file, context, tokens.size());
    }
    tokens.resize(tokens.size() / context * context);
    return {context, static_cast<uint32_t>(tokenizer.size()), std::move(tokens)};
}

struct Estimate {
    double value, error;
};
// exp of a mean, with its error to first order.
Estimate exp_of(const Mean& mean) {
    return {std::exp(mean.mean()), std::exp(mean.mean()) * mean.error()};
}
std::string estimate_text(Estimate e, int digits) {
    return fmt::format("{:.{}f} +/- {:.{}f}", e.value, digits, e.error, digits);
}
Estimate plain_number(const Mean& mean, double factor = 1) {
    return {factor * mean.mean(), factor * mean.error()};
}
// The root of a mean of squares.
Estimate root_of(const Mean& mean, double factor) {
    const double root = std::sqrt(mean.mean());
    return {factor * root, root > 0 ? factor * mean.error() / (2 * root) : 0};
}

// The state after a chunk. Lines fit 80 columns; print_divergence has more digits.
std::string chunk_line(uint32_t chunk, const Divergence& d) {
    const auto short_text = [](Estimate e, int digits) {
        return fmt::format("{:.{}f} ± {:.{}f}", e.value, digits, e.error, digits);
    };
    const Estimate ppl = exp_of(d.nll);
    return fmt::format("{:>5} {:>15} {:>16} {:>15} {:>12} {:>12}\n", chunk, short_text(ppl, ppl.value < 100 ? 3 : 0),
                       short_text(plain_number(d.nll_difference), 4), short_text(plain_number(d.divergence), 4),
                       short_text(root_of(d.change_squared, 100), 2), short_text(plain_number(d.same_best, 100), 1));
}

void print_divergence(Divergence& d) {
    std::ranges::sort(d.divergences);
    std::ranges::sort(d.changes);
    std::string text = "\n====== Perplexity statistics ======\n";
    const auto line = [&](std::string_view name, const std::string& value) {
        text += fmt::format("{:<29} : {}\n", name, value);
    };
    line("Mean PPL(Q)", estimate_text(exp_of(d.nll), 6));
    line("Mean PPL(base)", estimate_text(exp_of(d.base_nll), 6));
    line("Mean ln(PPL(Q)/PPL(base))", estimate_text(plain_number(d.nll_difference), 6));
    line("Mean PPL(Q)/PPL(base)", estimate_text(exp_of(d.nll_difference), 6));
    constexpr double kShares[] = {1, 0.999, 0.99, 0.95, 0.9, 0.5, 0.1, 0.05, 0.01, 0.001, 0};
    const auto quantiles = [&](std::string_view what, std::span<const float> sorted, double factor, int digits,
                               std::string_view unit) {
        for (const double share : kShares) {
            const std::string name = share == 1     ? "Maximum"
                                     : share == 0   ? "Minimum"
                                     : share == 0.5 ? "Median"
                                                    : fmt::format("{:.1f} %", 100 * share);
            line(fmt::format("{} {}", name, what),
                 fmt::format("{:.{}f}{}", factor * quantile(sorted, share), digits, unit));
        }
    };
    text += "\n====== KL divergence statistics ======\n";
    line("Mean KLD", estimate_text(plain_number(d.divergence), 6));
    quantiles("KLD", d.divergences, 1, 6, "");
    text += "\n====== Token probability statistics ======\n";
    line("Mean change of p", estimate_text(plain_number(d.change, 100), 4) + " %");
    quantiles("change of p", d.changes, 100, 3, " %");
    line("RMS change of p", estimate_text(root_of(d.change_squared, 100), 4) + " %");
    line("Same top p", estimate_text(plain_number(d.same_best, 100), 3) + " %");
    print(text);
}

void check_logits(std::span<const float> logits, const Engine& engine) {
    try {
        session::check_logits(logits);
    } catch (const Error& error) {
        throw session::with_cache_advice(error, engine.plan().options);
    }
}

// Logits of -infinity are fine unless the token that follows has one.
void check_result(const Mean& mean) {
    if (!std::isfinite(mean.mean()))
        fail(TSR_INTERNAL, "the result is {}: tokens of the text have no probability", mean.mean());
}

}  // namespace

int perplexity_command(Arguments& arguments) {
    ModelSettings settings = read_model_settings(arguments);
    const Asked asked = read_asked(arguments, settings);
    const Machine machine(settings.common, {}, asked_threads(settings.engine), settings.engine.numa);
    OpenedModel model = open_model(settings.common);
    settle(arguments, settings, model, machine);
    for (const std::string& line : arguments.remarks()) say(line);

    const auto tokenizer = make_tokenizer(model.file);
    const uint32_t vocabulary = read_model_info(model.file, machine.registry).vocabulary;
    std::optional<SavedRunReader> base;
    SavedRunHead head;
    if (asked.compares) {
        base.emplace(*asked.base);
        head = base->head();
        if (head.vocabulary != vocabulary) {
            fail(TSR_INVALID_ARGUMENT, "{}: expected a run of this vocabulary of {} tokens, found one of {}",
                 *asked.base, vocabulary, head.vocabulary);
        }
        if (settings.context && *settings.context != head.context)
            throw UsageError(fmt::format("-c: the saved run has chunks of {} tokens", head.context));
    } else {
        uint32_t context = settings.context.value_or(kPerplexityContext);
        if (context == 0) context = read_model_info(model.file, machine.registry).context;
        if (context < kMinimumContext)
            throw UsageError(fmt::format("-c: expected at least {} tokens, found {}", kMinimumContext, context));
        head = read_chunks(settings, *tokenizer, context);
        head.vocabulary = vocabulary;
    }
    if (asked.chunks) head.tokens.resize(std::min<size_t>(head.chunks(), *asked.chunks) * head.context);
    const Token bos = tokenizer->adds_bos() ? tokenizer->bos() : text::kNoToken;

    std::optional<SavedRunWriter> writer;
    if (asked.base && !asked.compares) writer.emplace(*asked.base, head);
    EngineOptions options = settings.engine;
    options.context = head.context;
    options.output_rows = std::min({options.rows, head.context, kMaximumOutputRows});
    const auto engine =
        load_engine(std::move(model), machine, options, false, options.context, settings.common.verbose);
    say(fmt::format("{} of {} tokens, of which {} are scored", counted(head.chunks(), "chunk"), head.context,
                    scored_places(head.context).count()));

    const InterruptScope interrupt;
    const StepCanceller canceller(*engine);
    Mean nll;
    Divergence divergence;
    uint32_t chunk = 0;
    try {
        if (base)
            print(fmt::format("{:>5} {:>15} {:>16} {:>15} {:>12} {:>12}\n", "chunk", "PPL", "ln(PPL/base)",
                              "KL divergence", "RMS dp, %", "same top, %"));
        for (; chunk < head.chunks(); ++chunk) {
            score_chunk(*engine, std::span(head.tokens).subspan(size_t{chunk} * head.context, head.context), bos,
                        options.output_rows, interrupt.flag(), [&](std::span<const float> logits, Token next) {
                            check_logits(logits, *engine);
                            if (base) {
                                divergence.add(logits, base->next(), next);
                            } else {
                                nll.add(log_sum_exp(logits) - logits[static_cast<size_t>(next)]);
                                if (writer) writer->add(logits);
                            }
                        });
            print(base ? chunk_line(chunk + 1, divergence)
                       : fmt::format("[{}]{:.4f},{}", chunk + 1, std::exp(nll.mean()),
                                     (chunk + 1) % kChunksOfLine == 0 ? "\n" : ""));
        }
    } catch (const Error& error) {
        if (error.code() != TSR_CANCELLED) throw;
        if (chunk == 0) {
            say("stopped before the first chunk was scored: there is no result");
            return kExitInterrupted;
        }
        say("stopped");
    }
    check_result(base ? divergence.divergence : nll);
    if (base && divergence.nll.count() > 0) print_divergence(divergence);
    if (!base)
        print(fmt::format("\nFinal estimate: PPL = {} over {}\n", estimate_text(exp_of(nll), 4),
                          counted(chunk, "chunk")));
    if (writer && interrupt.interrupted()) {
        say(fmt::format("{}: not saved, since not all chunks were scored", *asked.base));
    } else if (writer) {
        writer->finish();
        say(fmt::format("saved in {}", *asked.base));
    }
    return interrupt.interrupted() ? kExitInterrupted : kExitDone;
}

}  // namespace tessera::app
