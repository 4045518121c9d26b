#include "apps/tessera/answer_form.hpp"
#include "apps/tessera/bundled.hpp"
#include "apps/tessera/commands.hpp"
#include "apps/tessera/generating.hpp"
#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/line_editor.hpp"
#include "apps/tessera/load_with_progress.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/tessera/text_input.hpp"
#include "apps/wording/wording.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/model/model.hpp"
#include "core/session/generate.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/prompts.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace tessera::app {
namespace {

using session::Answer;
using session::FinishReason;
using session::Request;

// A conversation: what was said, and the tokens of it that the model has seen, so that each turn computes only what is
// new.
class Conversation {
  public:
    Conversation(session::Generator& generator, Engine& engine, const ChatWriter& writer,
                 const text::Tokenizer& tokenizer, const ModelSettings& settings, session::SamplingParameters sampling,
                 uint32_t context)
        : generator_(generator),
          engine_(engine),
          writer_(writer),
          tokenizer_(tokenizer),
          settings_(settings),
          form_(settings, tokenizer),
          sampling_(std::move(sampling)),
          context_(context) {
        clear();
    }

    void clear() {
        messages_.clear();
        if (settings_.system) messages_.push_back({"system", *settings_.system});
        seen_text_.clear();
        seen_tokens_.clear();
    }

    // Answers on standard output; what went wrong goes to standard error, and the message is forgotten then.
    void ask(const std::string& message, const InterruptScope& interrupt) {
        messages_.push_back({"user", message});
        const text::WrittenChat chat = writer_.write(messages_);
        std::string answer_text;
        bool line_open = false;
        std::vector<text::Token> tokens = tokens_of(chat);
        const uint64_t new_tokens = tokens.size() - std::min(seen_tokens_.size(), tokens.size());
        PromptProgress progress(generator_, new_tokens, engine_.max_rows());
        Request request;
        request.prompt = std::move(tokens);
        request.sampling = sampling_;
        request.stop = session::StopStrings(settings_.stop);
        ++sampling_.seed;  // each turn has its own random numbers
        if (settings_.predict.value_or(-1) >= 0) request.max_new_tokens = static_cast<uint32_t>(*settings_.predict);
        request.context = context_;
        request.show_control = settings_.special;
        request.on_text = [&](std::string_view delta) {
            progress.finish();
            answer_text += delta;
            print(delta);
            line_open = delta.back() != '\n';
        };
        form_.hold(request, &chat.reply);
        Answer answer;
        request.on_finish = [&](const Answer& made) { answer = made; };
        try {
            generator_.add(std::move(request));
        } catch (const Error& error) {
            progress.finish();
            messages_.pop_back();
            say(fmt::format("{}; /clear starts anew", worded(error)));
            return;
        }
        run(generator_, engine_, progress, interrupt.flag());
        if (line_open || answer_text.empty()) print("\n");
        if (answer.reason == FinishReason::kContextFull) {
            say(fmt::format("the context is full ({} tokens): the answer ends here; /clear starts anew, -c gives more",
                            context_));
        }
        messages_.push_back({"assistant", answer_text});
        seen_text_ = chat.text + answer_text;
        seen_tokens_ = std::move(answer.tokens);
    }

  private:
    // Text that the model has seen keeps its tokens: the same text might be tokenized differently a second time.
    std::vector<text::Token> tokens_of(const text::WrittenChat& chat) const {
        if (seen_text_.empty() || !chat.text.starts_with(seen_text_)) return writer_.tokens(chat);
        std::vector<text::Token> tokens = seen_tokens_;
        const std::vector<text::Token> rest = writer_.tokens(chat, seen_text_.size());
        tokens.insert(tokens.end(), rest.begin(), rest.end());
        return tokens;
    }

    session::Generator& generator_;
    Engine& engine_;
    const ChatWriter& writer_;
    const text::Tokenizer& tokenizer_;
    const ModelSettings& settings_;
    AnswerForm form_;
    session::SamplingParameters sampling_;
    uint32_t context_;
    std::vector<text::ChatMessage> messages_;
    std::string seen_text_;
    std::vector<text::Token> seen_tokens_;
};

// Messages from standard input: with an editor at a terminal, else plain lines.
class MessageReader {
  public:
    explicit MessageReader(InterruptScope& interrupt) : interrupt_(interrupt), editor_(LineEditor::open()) {}

    // A message of one line, or of several where each but the last ends in a backslash. False at the end of the input.
    bool read(std::string& message) {
        message.clear();
        for (bool first = true;; first = false) {
            std::string line;
            if (!read_line(first ? "> " : ". ", line)) return !first && !interrupt_.interrupted();
            if (line.ends_with('\r')) line.pop_back();
            const bool more = line.ends_with('\\');
            if (more) line.pop_back();
            message += line;
            if (!more) return true;
            message += '\n';
        }
    }

  private:
    bool read_line(const char* prompt, std::string& line) {
        if (!editor_) {
            if (isatty(STDIN_FILENO)) std::fputs(prompt, stderr);
            return static_cast<bool>(std::getline(std::cin, line));
        }
        for (;;) {
            const LineEditor::Result result = editor_->read(prompt, line);
            // Ctrl-C discards what was typed; on an empty line it ends the program.
            if (result != LineEditor::Result::kInterrupted || line.empty()) return result == LineEditor::Result::kLine;
            interrupt_.clear();
        }
    }

    InterruptScope& interrupt_;
    std::unique_ptr<LineEditor> editor_;
};

void say_help(const BundledKnowledge& bundled) {
    say("/help   shows this list\n"
        "/clear  forgets the conversation\n"
        "/exit   ends, as Ctrl-D does\n"
        "Ctrl-C stops an answer. A line that ends in \\ continues on the next, Alt-Enter\n"
        "begins a new line, and what is pasted is one message. A message that begins with\n"
        "/ is sent if a blank precedes it.");
    if (bundled.questions.empty()) return;
    say("Questions that the bundled model knows, with other numbers and names, too:");
    for (const std::string& question : bundled.questions) say("  " + question);
}

// Whether a message is a command or a mistyped one: "/help", not "/usr/bin is a folder".
bool is_command(std::string_view message) {
    if (!message.starts_with('/')) return false;
    const std::string_view word = message.substr(1, std::min(message.find_first_of(" \t\n"), message.size()) - 1);
    return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

int chat_command(Arguments& arguments) {
    ModelSettings settings = read_model_settings(arguments);
    if (settings.parallel > 1) arguments.remark("--parallel: a conversation is one sequence");
    if (settings.chat == false)
        throw UsageError("--raw: a conversation needs a template; 'tessera run' completes raw text");
    Machine machine(settings.common, {}, asked_threads(settings.engine), settings.engine.numa);
    OpenedModel model = open_model(settings.common);
    settle(arguments, settings, model, machine);
    const auto tokenizer = make_tokenizer(model.file);
    const ChatWriter writer(model.file, *tokenizer, settings);
    if (settings.thinking && !writer.can_think())
        arguments.remark(fmt::format("--reasoning: {} has no switch for it", writer.title()));
    for (const std::string& line : arguments.remarks()) say(line);
    const bool bundled = model.bundled;
    const session::SamplingParameters sampling = sampling_for(settings, model, *tokenizer);
    std::optional<std::string> first = settings.prompt;
    if (settings.file) first = first ? *first + '\n' + read_text(*settings.file) : read_text(*settings.file);

    const size_t empty_prompt = 1;
    const ContextWish wish = wish_context({&empty_prompt, 1}, 1, settings.context, -1,
                                          read_model_info(model.file, machine.registry).context);
    EngineOptions options = settings.engine;
    options.context = wish.all;
    make_room(settings.drafts, options);
    auto draft_model = load_draft_model(settings, machine, *tokenizer, {1, wish.all});
    const auto engine = load_engine(std::move(model), machine, options, !settings.context, 1, settings.common.verbose);

    session::Generator generator(*engine, *tokenizer, generator_options(settings, *engine, std::move(draft_model)));
    Conversation conversation(generator, *engine, writer, *tokenizer, settings, sampling,
                              std::min(wish.requests[0], engine->context()));
    InterruptScope interrupt;
    const BundledKnowledge knowledge = bundled ? bundled_knowledge() : BundledKnowledge{};
    if (!knowledge.summary.empty()) {
        say(wrapped(fmt::format("The bundled model is a small demonstration. It says: \"{}\" /help lists examples; "
                                "-m FILE loads another model.",
                                knowledge.summary),
                    0, 0));
    }
    if (isatty(STDIN_FILENO)) say(fmt::format("{}; /help lists commands", writer.title()));
    const auto answer = [&](const std::string& message) {
        conversation.ask(message, interrupt);
        interrupt.clear();
        return !settings.single_turn;
    };
    MessageReader reader(interrupt);
    std::string message;
    bool more = !first || answer(*first);
    while (more && !interrupt.interrupted() && reader.read(message)) {
        if (message == "/exit" || message == "/quit") break;
        if (message == "/clear") {
            conversation.clear();
        } else if (message == "/help") {
            say_help(knowledge);
        } else if (is_command(message)) {
            say(fmt::format("unknown command {}; /help lists the commands, and a blank before a message sends it",
                            printable(message.substr(0, message.find_first_of(" \t\n")), 40)));
        } else if (message.find_first_not_of(" \t\n") != std::string::npos) {
            more = answer(message);
        }
    }
    if (settings.timings) {
        say_seed(sampling);
        say_timings(generator.timings(), engine->packing());
        if (settings.common.verbose) say_comparison(engine->compared());
    }
    keep_run(machine, *engine);
    return kExitDone;
}

}  // namespace tessera::app
