#include "apps/tessera-server/completion_answer.hpp"

#include "apps/tessera-server/json_text.hpp"
#include "apps/tessera-server/probabilities_json.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <span>

namespace tessera::server {
CompletionAnswer::CompletionAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model,
                                   AnswerForm form, bool probabilities, std::string echo)
    : Answering(std::move(exchange), std::move(model), form),
      probabilities_(probabilities),
      echo_(std::move(echo)),
      choices_(form.choices) {
    for (Choice& choice : choices_) choice.text = echo_;
}

std::string CompletionAnswer::head() const {
    return fmt::format(R"({{"id":"cmpl{}","object":"text_completion","created":{},"model":{},"choices":[)", id_,
                       created_, json_string(model().name));
}

std::string CompletionAnswer::tail() const {
    return fmt::format(R"("usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
                       R"("prompt_tokens_details":{{"cached_tokens":{}}}}},"timings":{}}})",
                       usage_.prompt_tokens, usage_.new_tokens, usage_.prompt_tokens + usage_.new_tokens,
                       usage_.reused_tokens, timings_json());
}

std::string CompletionAnswer::progress_json(std::string_view progress) {
    return fmt::format(R"({}],{}}})", head(), progress);
}

void CompletionAnswer::on_probabilities(size_t index, const session::TokenProbabilities& token) {
    choices_[index].probabilities.push_back(token);
}

void CompletionAnswer::on_text(size_t index, std::string_view text) {
    Choice& choice = choices_[index];
    choice.text += text;
    if (!streams()) return;
    send(head() + choice_json(index, choice.text) + "]}");
    choice.text.clear();
}

std::string CompletionAnswer::choice_json(size_t index, std::string_view text) {
    Choice& choice = choices_[index];
    std::string json = fmt::format(R"({{"index":{},"text":{},"logprobs":)", index, json_string(text));
    if (probabilities_) {
        std::string tokens, values, best;
        std::vector<size_t> offsets;
        for (const session::TokenProbabilities& token : choice.probabilities) {
            const std::string_view bytes = model().tokenizer->bytes(token.token);
            const bool first = offsets.empty();
            offsets.push_back(choice.offset);
            choice.offset += bytes.size();
            tokens += (first ? "" : ",") + json_string(bytes);
            values += first ? "" : ",";
            append_json(values, static_cast<double>(token.log_probability));
            best += first ? "{" : ",{";
            for (const auto& [other, probability] : token.best) {
                if (&other != &token.best.front().first) best += ',';
                best += json_string(model().tokenizer->bytes(other)) + ":";
                append_json(best, static_cast<double>(probability));
            }
            best += '}';
        }
        json += fmt::format(R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", tokens,
                            values, best, fmt::join(offsets, ","));
        choice.probabilities.clear();
    } else {
        json += "null";
    }
    return json + fmt::format(R"(,"finish_reason":{}}})", choice.finish.empty() ? "null" : json_string(choice.finish));
}

void CompletionAnswer::on_finish(size_t index, const session::Answer& answer) {
    Choice& choice = choices_[index];
    choice.finish = finish_word(answer.reason);
    if (!streams()) return;
    send(head() + choice_json(index, choice.text) + "]}");
    choice.text.clear();
}

void CompletionAnswer::on_end() {
    if (streams()) {
        if (form().usage_in_stream) send(head() + "]," + tail());
        return send_end();
    }
    std::string json = head();
    for (size_t i = 0; i < choices_.size(); ++i) json += (i ? "," : "") + choice_json(i, choices_[i].text);
    exchange().respond({200, "application/json", json + "]," + tail(), {}});
}

PlainAnswer::PlainAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, AnswerForm form,
                         std::string prompt, std::vector<std::string> stops, bool tokens)
    : Answering(std::move(exchange), std::move(model), form),
      prompt_(std::move(prompt)),
      stops_(std::move(stops)),
      tokens_(tokens) {}

std::string PlainAnswer::progress_json(std::string_view progress) {
    return fmt::format(R"({{"index":0,"content":"","stop":false,{}}})", progress);
}

void PlainAnswer::on_probabilities(size_t, const session::TokenProbabilities& token) {
    if (!probabilities_.empty()) probabilities_ += ',';
    append_chat_probabilities(probabilities_, token, *model().tokenizer);
}

void PlainAnswer::on_text(size_t, std::string_view text) {
    if (!streams()) {
        text_ += text;
        return;
    }
    std::string json = fmt::format(R"({{"index":0,"content":{},"stop":false)", json_string(text));
    if (!probabilities_.empty()) json += R"(,"completion_probabilities":[)" + probabilities_ + "]";
    probabilities_.clear();
    send(json + "}");
}

void PlainAnswer::on_finish(size_t, const session::Answer& answer) {
    using enum session::FinishReason;
    const std::string_view type = answer.reason == kEndOfText ? "eos" : answer.reason == kStopString ? "word" : "limit";
    const std::string_view word =
        answer.stop_string < 0 ? std::string_view() : stops_[static_cast<size_t>(answer.stop_string)];
    last_ = fmt::format(R"({{"index":0,"content":{},"stop":true,"stop_type":"{}","stopping_word":{},"truncated":false,)"
                        R"("tokens_predicted":{},"tokens_evaluated":{},"tokens_cached":{},"model":{},)",
                        json_string(text_), type, json_string(word), answer.new_tokens, answer.prompt_tokens,
                        answer.reused_tokens, json_string(model().name));
    if (!streams()) last_ += fmt::format(R"("prompt":{},)", json_string(prompt_));
    if (!probabilities_.empty()) last_ += R"("completion_probabilities":[)" + probabilities_ + "],";
    if (tokens_) {
        last_ +=
            fmt::format(R"("tokens":[{}],)", fmt::join(std::span(answer.tokens).subspan(answer.prompt_tokens), ","));
    }
    last_ += R"("timings":)" + timings_json() + "}";
}

void PlainAnswer::on_end() {
    if (!streams()) return exchange().respond({200, "application/json", std::move(last_), {}});
    send(last_);
    exchange().end();
}

}  // namespace tessera::server
