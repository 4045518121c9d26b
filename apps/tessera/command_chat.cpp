#include "apps/tessera/commands.hpp"
#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/load_with_progress.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/tessera/text_input.hpp"
#include "core/base/error.hpp"
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
    Conversation(session::Generator& generator, const ChatWriter& writer, const text::Tokenizer& tokenizer,
                 const ModelSettings& settings, session::SamplingParameters sampling, uint32_t context)
        : generator_(generator),
          writer_(writer),
          tokenizer_(tokenizer),
          settings_(settings),
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
        const std::string text = writer_.text(messages_);
        std::string answer_text;
        bool line_open = false;
        Request request{tokens_of(text), session::Sampler(sampling_, tokenizer_.size()),
                        session::StopStrings(settings_.stop)};
        ++sampling_.seed;  // turns draw apart from each other
        if (settings_.predict.value_or(-1) >= 0) request.max_new_tokens = static_cast<uint32_t>(*settings_.predict);
        request.context = context_;
        request.keep = true;
        request.show_control = settings_.special;
        request.on_text = [&](std::string_view piece) {
            answer_text += piece;
            print(piece);
            line_open = piece.back() != '\n';
        };
        Answer answer;
        request.on_finish = [&](const Answer& made) { answer = made; };
        try {
            generator_.add(std::move(request));
        } catch (const Error& error) {
            messages_.pop_back();
            say(fmt::format("{}; /clear starts anew", error.what()));
            return;
        }
        generator_.run(&interrupt.flag());
        if (line_open || answer_text.empty()) print("\n");
        if (answer.reason == FinishReason::kContextFull) {
            say(fmt::format("the context is full ({} tokens): the answer ends here; /clear starts anew, -c gives more",
                            context_));
        }
        messages_.push_back({"assistant", answer_text});
        seen_text_ = text + answer_text;
        seen_tokens_ = std::move(answer.tokens);
    }

  private:
    // What the model has seen keeps its tokens: the same text might be cut otherwise a second time.
    std::vector<text::Token> tokens_of(const std::string& text) const {
        if (seen_text_.empty() || !text.starts_with(seen_text_)) return writer_.tokens(text);
        std::vector<text::Token> tokens = seen_tokens_;
        const std::vector<text::Token> rest = writer_.tokens(std::string_view(text).substr(seen_text_.size()));
        tokens.insert(tokens.end(), rest.begin(), rest.end());
        return tokens;
    }

    session::Generator& generator_;
    const ChatWriter& writer_;
    const text::Tokenizer& tokenizer_;
    const ModelSettings& settings_;
    session::SamplingParameters sampling_;
    uint32_t context_;
    std::vector<text::ChatMessage> messages_;
    std::string seen_text_;
    std::vector<text::Token> seen_tokens_;
};

// A message of one line, or of several where each but the last ends in a backslash. False at the end of the input.
bool read_message(std::string& message, bool terminal) {
    message.clear();
    for (bool first = true;; first = false) {
        if (terminal) std::fputs(first ? "> " : ". ", stderr);
        std::string line;
        if (!std::getline(std::cin, line)) return !first;
        if (line.ends_with('\r')) line.pop_back();
        const bool more = line.ends_with('\\');
        if (more) line.pop_back();
        message += line;
        if (!more) return true;
        message += '\n';
    }
}

}  // namespace

int chat_command(Arguments& arguments) {
    ModelSettings settings = read_model_settings(arguments);
    if (settings.parallel > 1) arguments.remark("--parallel: a conversation is one sequence");
    if (settings.chat == false)
        throw UsageError("--raw: a conversation needs a template; 'tessera run' completes raw text");
    const Machine machine(settings.common, {}, asked_threads(settings.engine));
    OpenedModel model = open_model(settings.common);
    for (std::string& line : settle(settings, model.file, machine.config)) arguments.remark(std::move(line));
    for (const std::string& line : arguments.remarks()) say(line);
    const auto tokenizer = make_tokenizer(model.file);
    const ChatWriter writer(model.file, *tokenizer, settings.chat_template);
    const session::SamplingParameters sampling = sampling_for(settings, model.bundled, *tokenizer);
    std::optional<std::string> first = settings.prompt;
    if (settings.file) first = first ? *first + '\n' + read_text(*settings.file) : read_text(*settings.file);

    const size_t empty_prompt = 1;
    const ContextWish wish =
        wish_context({&empty_prompt, 1}, 1, settings.context, -1, read_model_info(model.file).context);
    EngineOptions options = settings.engine;
    options.context = wish.all;
    const auto engine = load_engine(std::move(model), machine, options, !settings.context, 1, settings.common.verbose);

    session::Generator generator(*engine, *tokenizer);
    Conversation conversation(generator, writer, *tokenizer, settings, sampling,
                              std::min(wish.requests[0], engine->context()));
    InterruptScope interrupt;
    const bool terminal = isatty(STDIN_FILENO) != 0;
    if (terminal)
        say(fmt::format("template {}; /clear forgets what was said, /exit or Ctrl-D ends, Ctrl-C stops an answer",
                        writer.name()));
    const auto answer = [&](const std::string& message) {
        conversation.ask(message, interrupt);
        interrupt.clear();
    };
    if (first) answer(*first);
    std::string message;
    while (!interrupt.interrupted() && read_message(message, terminal)) {
        if (message == "/exit" || message == "/quit") break;
        if (message == "/clear") {
            conversation.clear();
        } else if (message.find_first_not_of(" \t\n") != std::string::npos) {
            answer(message);
        }
    }
    say_timings(generator.timings(), engine->packing());
    return kExitDone;
}

}  // namespace tessera::app
