#include "apps/server/dialects/openai/completion_responder.hpp"

#include "core/text/detokenizer.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace tessera::server {
namespace {

// Of UTF-8: Unicode characters.
size_t characters(std::string_view text) {
    return static_cast<size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

}  // namespace

CompletionResponder::CompletionResponder(std::shared_ptr<Exchange> exchange,
                                         std::shared_ptr<const ServedModel> model_given, Delivery delivery_given,
                                         CompletionDelivery completion)
    : Responder(std::move(exchange), std::move(model_given), delivery_given, completion.echoes.size()),
      completion_(std::move(completion)),
      choices_(choices()),
      echoes_(completion_.echoes.size()) {
    for (size_t i = 0; i < choices_.size(); ++i) choices_[i].text = completion_.echoes[prompt_of(i)];
    for (size_t i = 0; i < completion_.echoed.size(); ++i) {
        const CompletionDelivery::EchoedTokens& prompt = completion_.echoed[i];
        Echo& echo = echoes_[i];
        text::StreamingDetokenizer detokenizer(*model().tokenizer, true);
        for (const text::Token token : prompt.tokens) echo.texts.push_back(detokenizer.push(token));
        if (!echo.texts.empty()) echo.texts.back() += detokenizer.finish();
        if (!prompt.after_bos) echo_token(echo, nullptr);
        size_t end = 0;
        for (const std::string& text : echo.texts) end += characters(text);
        for (size_t j = 0; j < delivery_given.choices; ++j) choices_[i * delivery_given.choices + j].tokens.end = end;
    }
}

void CompletionResponder::Tokens::add(std::string_view text, const session::TokenProbabilities* probabilities,
                                      const text::Tokenizer& tokenizer) {
    const char* const comma = empty() ? "" : ",";
    for (std::string* const list : {&texts, &values, &best, &offsets}) *list += comma;
    text::JsonWriter(texts).value(text);
    text::JsonWriter(offsets).value(end);
    end += characters(text);
    text::JsonWriter value(values), most_likely(best);
    if (!probabilities) {
        value.null();
        most_likely.null();
        return;
    }
    value.value(static_cast<double>(probabilities->log_probability));
    most_likely.begin_object();
    for (const auto& [other, probability] : probabilities->best)
        most_likely.member(tokenizer.bytes(other), static_cast<double>(probability));
    most_likely.end_object();
}

void CompletionResponder::Tokens::append(const Tokens& more) {
    const char* const comma = empty() || more.empty() ? "" : ",";
    for (std::string Tokens::*const list : {&Tokens::texts, &Tokens::values, &Tokens::best, &Tokens::offsets})
        (this->*list += comma) += more.*list;
}

std::string CompletionResponder::Tokens::take() {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().key("tokens").begin_list().json(texts).end_list();
    json.key("token_logprobs").begin_list().json(values).end_list();
    json.key("top_logprobs").begin_list().json(best).end_list();
    json.key("text_offset").begin_list().json(offsets).end_list().end_object();
    for (std::string* const list : {&texts, &values, &best, &offsets}) list->clear();
    return out;
}

void CompletionResponder::write_head(text::JsonWriter& json) const {
    json.begin_object();
    json.member("id", "cmpl-" + id_).member("object", "text_completion").member("created", created_);
    json.member("model", model().name).member("system_fingerprint", kFingerprint);
    json.key("choices").begin_list();
}

void CompletionResponder::write_tail(text::JsonWriter& json) const {
    json.end_list().key("usage").begin_object();
    json.member("prompt_tokens", usage_.prompt_tokens).member("completion_tokens", usage_.new_tokens);
    json.member("total_tokens", usage_.prompt_tokens + usage_.new_tokens);
    json.key("prompt_tokens_details").begin_object().member("cached_tokens", usage_.reused_tokens).end_object();
    json.end_object().key("timings").json(timings_json()).end_object();
}

std::string CompletionResponder::progress_json(std::string_view progress) {
    std::string out;
    text::JsonWriter json(out);
    write_head(json);
    json.end_list().key("prompt_progress").json(progress).end_object();
    return out;
}

void CompletionResponder::echo_token(Echo& echo, const session::TokenProbabilities* probabilities) {
    if (echo.complete()) return;
    echo.tokens.add(echo.texts[echo.known++], probabilities, *model().tokenizer);
}

void CompletionResponder::on_prompt_probabilities(size_t prompt, const session::TokenProbabilities& token) {
    echo_token(echoes_[prompt], &token);
    if (!echoes_[prompt].complete()) return;
    for (size_t i = 0; i < choices_.size(); ++i) {
        if (prompt_of(i) == prompt && choices_[i].waiting) send_choice(i, choices_[i].timings);
    }
}

void CompletionResponder::on_token(size_t index, const session::ShownToken& token, std::string_view timings) {
    Choice& choice = choices_[index];
    choice.text += token.text;
    if (token.probabilities) choice.tokens.add(token.text, token.probabilities, *model().tokenizer);
    if (streams() && (!choice.text.empty() || !choice.tokens.empty())) send_choice(index, timings);
}

// Where the prompt's probabilities are still computed, with them.
void CompletionResponder::send_choice(size_t index, std::string_view timings) {
    Choice& choice = choices_[index];
    choice.waiting = !echoes_[prompt_of(index)].complete();
    if (choice.waiting) {
        choice.timings = timings;
        return;
    }
    std::string out;
    text::JsonWriter json(out);
    write_head(json);
    write_choice(json, index);
    json.end_list();
    if (delivery().usage_in_stream) json.key("usage").null();
    if (!timings.empty()) json.key("timings").json(timings);
    json.end_object();
    send(out);
    choice.text.clear();
}

void CompletionResponder::write_choice(text::JsonWriter& json, size_t index) {
    Choice& choice = choices_[index];
    json.begin_object().member("index", index).member("text", choice.text).key("logprobs");
    if (completion_.probabilities) {
        Tokens tokens;
        if (!std::exchange(choice.echoed, true)) tokens = echoes_[prompt_of(index)].tokens;
        tokens.append(choice.tokens);
        choice.tokens.take();
        json.json(tokens.take());
    } else {
        json.null();
    }
    json.key("finish_reason").text_or_null(choice.finish).end_object();
}

void CompletionResponder::on_finish(size_t index, const session::Answer& answer) {
    const Echo& echo = echoes_[prompt_of(index)];
    if (is_first(index) && !echo.complete()) {
        return fail({500,
                     fmt::format("the answer ended ({}) when {} of the prompt's {} tokens had been scored",
                                 session::reason_name(answer.reason), echo.known, echo.texts.size()),
                     {},
                     "step_failed"});
    }
    choices_[index].finish = finish_word(answer.reason);
    if (streams()) send_choice(index, timings_json(answer));
}

void CompletionResponder::on_end() {
    if (streams()) {
        if (delivery().usage_in_stream) {
            std::string out;
            text::JsonWriter json(out);
            write_head(json);
            write_tail(json);
            send(out);
        }
        return send_end();
    }
    respond_later(bytes_of_whole(), [this] {
        std::string out;
        text::JsonWriter json(out);
        write_head(json);
        for (size_t i = 0; i < choices_.size(); ++i) write_choice(json, i);
        write_tail(json);
        return out;
    });
}

uint64_t CompletionResponder::bytes_of_whole() const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < choices_.size(); ++i) {
        bytes += choices_[i].text.size();
        for (const Tokens* const tokens : {&choices_[i].tokens, &echoes_[prompt_of(i)].tokens})
            bytes += tokens->texts.size() + tokens->values.size() + tokens->best.size() + tokens->offsets.size();
    }
    return bytes;
}

}  // namespace tessera::server
