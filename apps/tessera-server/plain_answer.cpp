#include "apps/tessera-server/plain_answer.hpp"

#include "apps/tessera-server/json_text.hpp"

#include <boost/json/parse.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace tessera::server {

PlainAnswer::PlainAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model_given,
                         AnswerForm form_given, PlainForm plain)
    : Answering(std::move(exchange), std::move(model_given), form_given, plain.prompts.size()),
      plain_(std::move(plain)),
      choices_(choices()) {}

std::string PlainAnswer::progress_json(std::string_view progress) {
    return fmt::format(R"({{"index":0,"content":"","tokens":[],"stop":false,{}}})", progress);
}

std::string PlainAnswer::event(size_t index, std::string_view text) {
    Choice& choice = choices_[index];
    std::string json = fmt::format(R"({{"index":{},"content":{},"tokens":[{}],"stop":false)", index, json_string(text),
                                   fmt::join(std::exchange(choice.tokens, {}), ","));
    if (!choice.probabilities.list.empty()) json += R"(,"completion_probabilities":)" + choice.probabilities.take();
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
    std::string json = event(index, token.text);
    if (!timings.empty()) (json += ",") += timings;
    send(json + "}");
}

const std::vector<PlainAnswer::Field>& PlainAnswer::fields() {
    using This = const PlainAnswer&;
    using session::Answer;
    using enum session::FinishReason;
    static const std::vector<Field> fields = {
        {"index", [](This, size_t i, const Answer&) { return fmt::to_string(i); }},
        {"content", [](This of, size_t i, const Answer&) { return json_string(of.choices_[i].text); }},
        {"tokens",
         [](This of, size_t i, const Answer&) { return fmt::format("[{}]", fmt::join(of.choices_[i].tokens, ",")); }},
        {"stop", [](This, size_t, const Answer&) { return std::string("true"); }},
        {"completion_probabilities",
         [](This of, size_t i, const Answer&) {
             const ProbabilitiesJson& left = of.choices_[i].probabilities;
             return left.list.empty() && (of.streams() || !of.plain_.probabilities) ? std::string() : left.json();
         }},
        {"stop_type",
         [](This, size_t, const Answer& answer) {
             return std::string(answer.reason == kEndOfText    ? R"("eos")"
                                : answer.reason == kStopString ? R"("word")"
                                                               : R"("limit")");
         }},
        {"stopping_word",
         [](This of, size_t, const Answer& answer) {
             return json_string(answer.stop_string < 0 ? std::string_view()
                                                       : of.plain_.stops[static_cast<size_t>(answer.stop_string)]);
         }},
        {"truncated", [](This, size_t, const Answer&) { return std::string("false"); }},
        {"has_new_line", [](This, size_t, const Answer& a) { return fmt::to_string(a.has_new_line); }},
        {"tokens_predicted", [](This, size_t, const Answer& a) { return fmt::to_string(a.new_tokens); }},
        {"tokens_evaluated", [](This, size_t, const Answer& a) { return fmt::to_string(a.prompt_tokens); }},
        {"tokens_cached", [](This, size_t, const Answer& a) { return fmt::to_string(a.reused_tokens); }},
        {"model", [](This of, size_t, const Answer&) { return json_string(of.model().name); }},
        {"generation_settings",
         [](This of, size_t i, const Answer&) { return of.plain_.settings.json(of.seed_of(i)); }},
        {"prompt", [](This of, size_t i, const Answer&) { return of.plain_.prompts[of.prompt_of(i)]; }},
        {"timings", [](This of, size_t, const Answer& answer) { return of.timings_json(answer); }},
    };
    return fields;
}

// Empty: there is no such field.
std::string PlainAnswer::asked_json(const AskedField& asked, size_t index, const session::Answer& answer) const {
    if (asked.known) return *asked.known;
    if (asked.name == "generation_settings" && asked.member == "seed") return fmt::to_string(seed_of(index));
    const auto field = std::ranges::find(fields(), asked.name, &Field::name);
    if (field == fields().end()) return {};
    if (asked.member.empty()) return field->json(*this, index, answer);
    // No other field of an answer has members.
    if (asked.name != "timings") return {};
    return json_member(boost::json::parse(field->json(*this, index, answer)), asked.member).value_or("");
}

std::string PlainAnswer::last_event(size_t index, const session::Answer& answer) const {
    std::string json = "{";
    const auto add = [&](std::string_view name, const std::string& value) {
        if (value.empty()) return;
        if (json.size() > 1) json += ',';
        json += json_string(name);
        json += ':';
        json += value;
    };
    if (plain_.fields) {
        for (const AskedField& asked : *plain_.fields) add(asked.path, asked_json(asked, index, answer));
    } else {
        for (const Field& field : fields()) add(field.name, field.json(*this, index, answer));
    }
    return json + '}';
}

void PlainAnswer::on_finish(size_t index, const session::Answer& answer) {
    if (streams()) return send(last_event(index, answer));
    choices_[index].answer = answer;
    choices_[index].answer.tokens = {};
}

uint64_t PlainAnswer::bytes_of_whole() const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < choices_.size(); ++i)
        bytes += choices_[i].text.size() + choices_[i].probabilities.list.size() + plain_.prompts[prompt_of(i)].size();
    return bytes;
}

// A list where there are several, in the order of prompts.
std::string PlainAnswer::whole() const {
    std::string json = choices_.size() > 1 ? "[" : "";
    for (size_t i = 0; i < choices_.size(); ++i) json += (i ? "," : "") + last_event(i, choices_[i].answer);
    return json + (choices_.size() > 1 ? "]" : "");
}

void PlainAnswer::on_end() {
    if (streams()) return exchange().end();
    respond_later(bytes_of_whole(), [this] { return whole(); });
}

}  // namespace tessera::server
