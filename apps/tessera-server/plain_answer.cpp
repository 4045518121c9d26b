#include "apps/tessera-server/plain_answer.hpp"

#include "apps/tessera-server/json_text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <utility>

namespace tessera::server {

namespace json = boost::json;

PlainAnswer::PlainAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model_given,
                         AnswerForm form_given, PlainForm plain)
    : Answering(std::move(exchange), std::move(model_given), form_given, plain.prompts.size()),
      plain_(std::move(plain)),
      choices_(choices()) {}

std::string PlainAnswer::progress_json(std::string_view progress) {
    return fmt::format(R"({{"index":0,"content":"","tokens":[],"stop":false,{}}})", progress);
}

std::string PlainAnswer::beginning(size_t index, std::string_view text, bool stop) {
    Choice& choice = choices_[index];
    std::string json = fmt::format(R"({{"index":{},"content":{},"tokens":[{}],"stop":{})", index, json_string(text),
                                   fmt::join(std::exchange(choice.tokens, {}), ","), stop);
    if (!choice.probabilities.list.empty() || (plain_.probabilities && !streams()))
        json += R"(,"completion_probabilities":)" + choice.probabilities.take();
    return json;
}

void PlainAnswer::on_token(size_t index, const session::ShownToken& token, std::string_view timings) {
    Choice& choice = choices_[index];
    if (token.token && plain_.tokens) choice.tokens.push_back(*token.token);
    if (token.probabilities) choice.probabilities.add(*token.probabilities, *model().tokenizer, plain_.sampled);
    if (!streams()) {
        choice.text += token.text;
        return;
    }
    if (token.text.empty() && choice.tokens.empty() && choice.probabilities.list.empty()) return;
    std::string json = beginning(index, token.text, false);
    if (!timings.empty()) (json += ",") += timings;
    send(json + "}");
}

// By paths as "timings/predicted_n"; each becomes a field of its own.
std::string PlainAnswer::chosen_fields(const std::string& whole) const {
    if (plain_.fields.empty()) return whole;
    const json::value parsed = json::parse(whole);
    json::object chosen;
    for (const std::string& path : plain_.fields) {
        const json::value* at = &parsed;
        for (std::string_view rest = path; at && !rest.empty();) {
            const std::string_view key = rest.substr(0, rest.find('/'));
            rest.remove_prefix(std::min(key.size() + 1, rest.size()));
            at = at->is_object() ? at->get_object().if_contains(json::string_view(key.data(), key.size())) : nullptr;
        }
        if (at && at != &parsed) chosen[path] = *at;
    }
    return json::serialize(chosen);
}

void PlainAnswer::on_finish(size_t index, const session::Answer& answer) {
    using enum session::FinishReason;
    Choice& choice = choices_[index];
    const std::string_view type = answer.reason == kEndOfText ? "eos" : answer.reason == kStopString ? "word" : "limit";
    const std::string_view word =
        answer.stop_string < 0 ? std::string_view() : plain_.stops[static_cast<size_t>(answer.stop_string)];
    std::string json = beginning(index, choice.text, true);
    json += fmt::format(R"(,"stop_type":"{}","stopping_word":{},"truncated":false,"has_new_line":{},)"
                        R"("tokens_predicted":{},"tokens_evaluated":{},"tokens_cached":{},"model":{},)"
                        R"("generation_settings":{},)",
                        type, json_string(word), answer.has_new_line, answer.new_tokens, answer.prompt_tokens,
                        answer.reused_tokens, json_string(model().name), plain_.settings);
    if (!streams()) json += fmt::format(R"("prompt":{},)", json_string(plain_.prompts[prompt_of(index)]));
    choice.last = chosen_fields(json + R"("timings":)" + timings_json(answer) + "}");
    if (streams()) send(choice.last);
}

void PlainAnswer::on_end() {
    if (streams()) return exchange().end();
    // A list where there are several, in the order of prompts.
    std::string json = choices_.size() > 1 ? "[" : "";
    for (const Choice& choice : choices_) json += (&choice == &choices_.front() ? "" : ",") + choice.last;
    exchange().respond({200, "application/json", json + (choices_.size() > 1 ? "]" : ""), {}});
}

}  // namespace tessera::server
