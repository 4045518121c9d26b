#include "apps/tessera/answer_form.hpp"
#include "apps/tessera/commands.hpp"
#include "apps/tessera/generating.hpp"
#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/load_with_progress.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/tessera/text_input.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/gguf/value.hpp"
#include "core/model/model.hpp"
#include "core/session/generate.hpp"
#include "core/session/make_sampler.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/prompts.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace tessera::app {
namespace {

using session::Answer;
using session::FinishReason;
using session::Request;

std::vector<std::string> read_prompts(const ModelSettings& settings) {
    if (settings.prompt && settings.file) throw UsageError("-p and -f contradict each other: give one of them");
    if (settings.parallel > 1) {
        if (!settings.file)
            throw UsageError(fmt::format("--parallel {} needs -f FILE with one prompt a line", settings.parallel));
        std::vector<std::string> prompts = lines_of(read_text(*settings.file));
        if (prompts.empty())
            throw UsageError(fmt::format("-f {}: expected one prompt a line, found no line", *settings.file));
        if (settings.escape) std::ranges::transform(prompts, prompts.begin(), unescape);
        return prompts;
    }
    if (settings.prompt) return {*settings.prompt};
    if (settings.file) return {settings.escape ? unescape(read_text(*settings.file)) : read_text(*settings.file)};
    throw UsageError("nothing to complete: give -p PROMPT or -f FILE; to talk, use 'tessera chat'");
}

void show_tokens(const text::Tokenizer& tokenizer, std::span<const text::Token> tokens) {
    say(counted(tokens.size(), "token") + " of the prompt:");
    for (const text::Token token : tokens) {
        say(fmt::format("{:>8}  {}", token, gguf::to_text(gguf::Value(std::string(tokenizer.bytes(token))))));
    }
}

// Answers on standard output: a single one as it is generated; several under their numbers, in the order of the
// prompts.
class Printer {
  public:
    explicit Printer(size_t answers) : numbered_(answers > 1), texts_(answers), done_(answers) {}

    // Called before anything is written.
    std::function<void()> before_output;

    void add(size_t answer, std::string_view text) {
        if (numbered_) {
            texts_[answer] += text;
        } else {
            write(text);
        }
    }

    void finish(size_t answer) {
        done_[answer] = true;
        while (next_ < done_.size() && done_[next_]) {
            if (numbered_) {
                write(fmt::format("[{}]\n", next_ + 1));
                write(texts_[next_]);
            }
            if (!at_line_start_) write("\n");
            ++next_;
        }
    }

  private:
    void write(std::string_view text) {
        if (before_output) before_output();
        print(text);
        if (!text.empty()) at_line_start_ = text.back() == '\n';
    }

    bool numbered_;
    bool at_line_start_ = true;
    std::vector<std::string> texts_;
    std::vector<bool> done_;
    size_t next_ = 0;
};

void say_end(const Answer& answer, size_t number, bool numbered, uint32_t limit) {
    const std::string which = numbered ? fmt::format("[{}] ", number + 1) : "";
    if (answer.reason == FinishReason::kContextFull) {
        say(fmt::format("{}the context is full ({} tokens): the answer ends here; -c gives more", which, limit));
    } else if (answer.reason == FinishReason::kCancelled) {
        say(fmt::format("{}stopped", which));
    }
}

// Whether flags are given that have a meaning in a conversation alone; said where they alone make it one.
bool needs_template(Arguments& arguments, bool bundled) {
    for (const std::string_view name : {"chat-template", "chat-template-file", "system", "system-file"}) {
        if (!arguments.has(name)) continue;
        if (arguments.has("raw"))
            throw UsageError(
                fmt::format("{} and {} contradict each other: raw text has no template and no system message",
                            arguments.typed(name), arguments.typed("raw")));
        if (!arguments.has("chat") && !bundled)
            arguments.remark(
                fmt::format("{}: the prompt is put into the chat template, as with --chat", arguments.typed(name)));
        return true;
    }
    return false;
}

}  // namespace

int run_command(Arguments& arguments) {
    ModelSettings settings = read_model_settings(arguments);
    const std::vector<std::string> prompts = read_prompts(settings);
    Machine machine(settings.common, {}, asked_threads(settings.engine), settings.engine.numa);
    OpenedModel model = open_model(settings.common);
    settle(arguments, settings, model, machine);
    const bool bundled = model.bundled;
    const bool chat = needs_template(arguments, bundled) || settings.chat.value_or(bundled);
    const auto tokenizer = make_tokenizer(model.file);
    AnswerForm form(settings, *tokenizer);
    std::vector<std::vector<text::Token>> tokens;
    std::vector<std::optional<text::ReplySyntax>> replies;  // a prompt each
    std::optional<ChatWriter> writer;
    if (chat) writer.emplace(model.file, *tokenizer, settings);
    if (chat && !settings.add_bos)
        arguments.remark(
            "--no-bos: a conversation has the BOS that its template writes; --raw gives the prompt as it is");
    if (settings.thinking && !(chat && (!*settings.thinking || writer->can_think())))
        arguments.remark("--reasoning: no template with such a switch is applied to this prompt");
    if (!chat && !settings.template_variables.empty())
        arguments.remark("--chat-template-kwargs: no template is applied to this prompt");
    for (const std::string& line : arguments.remarks()) say(line);

    for (const std::string& prompt : prompts) {
        if (chat) {
            std::vector<text::ChatMessage> messages;
            if (settings.system) messages.push_back({"system", *settings.system});
            messages.push_back({"user", prompt});
            const text::WrittenChat written = writer->write(messages);
            tokens.push_back(writer->tokens(written));
            replies.emplace_back(written.reply);
        } else {
            replies.emplace_back();
            tokens.push_back(tokens_to_continue(*tokenizer, prompt, settings.parse_special, settings.add_bos));
        }
        if (tokens.back().empty()) throw UsageError("the prompt is empty, and this vocabulary puts no BOS before it");
        if (settings.verbose_prompt) show_tokens(*tokenizer, tokens.back());
    }

    const int64_t predict = settings.predict.value_or(-1);
    const auto at_once = static_cast<uint32_t>(std::min<size_t>(settings.parallel, prompts.size()));
    std::vector<size_t> lengths;
    for (const auto& prompt : tokens) lengths.push_back(prompt.size());
    const ContextWish wish = wish_context(lengths, at_once, settings.context, predict,
                                          read_model_info(model.file, machine.registry).context);

    // Buffers as large as a vocabulary or an answer are allocated before loading; nothing large is allocated after it.
    Printer printer(prompts.size());
    const session::SamplingParameters sampling = sampling_for(settings, model, *tokenizer);
    std::vector<Request> requests;
    for (size_t i = 0; i < prompts.size(); ++i) {
        tokens[i].reserve(std::min<uint64_t>(uint64_t{wish.requests[i]} + 2, tokens[i].size() + (uint64_t{1} << 20)));
        Request request;
        request.prompt = std::move(tokens[i]);
        request.sampler.emplace(session::make_sampler(sampling, *tokenizer, wish.requests[i]));
        request.stop = session::StopStrings(settings.stop);
        if (predict >= 0) request.max_new_tokens = static_cast<uint32_t>(predict);
        request.context = wish.requests[i];
        request.show_control = settings.special;
        form.hold(request, replies[i] ? &*replies[i] : nullptr);
        request.on_text = [&printer, i](std::string_view text) { printer.add(i, text); };
        request.on_finish = [&printer, i, limit = wish.requests[i],
                             several = prompts.size() > 1](const Answer& answer) {
            printer.finish(i);
            say_end(answer, i, several, limit);
        };
        requests.push_back(std::move(request));
    }

    EngineOptions options = settings.engine;
    options.sequences = at_once;
    options.rows += at_once - 1;  // others generate while a prompt is computed
    options.context = wish.all;
    make_room(settings.drafts, options);
    const size_t longest = *std::ranges::max_element(lengths);
    auto draft_model = load_draft_model(settings, machine, *tokenizer, {at_once, wish.all});
    const auto engine = load_engine(std::move(model), machine, options, !settings.context,
                                    static_cast<uint32_t>(longest) + 1, settings.common.verbose);

    session::Generator generator(*engine, *tokenizer, generator_options(settings, *engine, std::move(draft_model)));
    const InterruptScope interrupt;
    for (Request& request : requests) generator.add(std::move(request));
    PromptProgress progress(generator, std::accumulate(lengths.begin(), lengths.end(), uint64_t{0}),
                            engine->max_rows());
    printer.before_output = [&] { progress.finish(); };
    run(generator, *engine, progress, interrupt.flag());
    if (settings.timings) {
        say_seed(sampling);
        say_timings(generator.timings(), engine->packing());
        if (settings.common.verbose) say_comparison(engine->compared());
    }
    keep_run(machine, *engine);
    return interrupt.interrupted() ? kExitInterrupted : kExitDone;
}

}  // namespace tessera::app
