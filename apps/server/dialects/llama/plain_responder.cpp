#include "apps/server/dialects/llama/plain_responder.hpp"

#include "apps/server/api_error.hpp"
#include "core/base/nearest.hpp"
#include "core/base/text.hpp"
#include "core/text/json_writer.hpp"

#include <boost/json/parse.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <span>
#include <utility>

namespace tessera::server {
namespace {

constexpr std::string_view kSettings = "generation_settings", kSeed = "seed", kTimings = "timings";
constexpr uint64_t kNumberBytes = 8;    // of a token
constexpr uint64_t kFieldBytes = 1024;  // of all fields that have one length

void write_tokens(text::JsonWriter& json, std::span<const text::Token> tokens) {
    json.begin_list();
    for (const text::Token token : tokens) json.value(token);
    json.end_list();
}

}  // namespace

PlainResponder::PlainResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model_given,
                               Delivery delivery_given, PlainDelivery plain)
    : Responder(std::move(exchange), std::move(model_given), delivery_given, plain.prompts.size()),
      plain_(std::move(plain)),
      choices_(choices()) {
    check_asked();
    repeated_bytes_ = kFieldBytes;
    if (!plain_.fields) {
        repeated_bytes_ += plain_.settings.bytes();
        return;
    }
    for (const AskedField& asked : *plain_.fields) {
        repeated_bytes_ += asked.path.size();
        if (asked.known) {
            repeated_bytes_ += asked.known->size();
        } else if (asked.name == kSettings) {
            repeated_bytes_ += plain_.settings.bytes();
        }
    }
}

// A field that is left out in silence looks like one that has no value.
void PlainResponder::check_asked() const {
    if (!plain_.fields) return;
    std::vector<std::string_view> names;
    for (const Field& field : fields()) names.push_back(field.name);
    const auto timings = boost::json::parse(every_timing_json());
    for (const AskedField& asked : *plain_.fields) {
        const bool known = std::ranges::find(names, asked.name) != names.end();
        if (known && (asked.member.empty() || asked.known || (asked.name == kSettings && asked.member == kSeed) ||
                      (asked.name == kTimings && json_member(timings, asked.member))))
            continue;
        throw ApiError(400,
                       fmt::format("response_fields: no answer has a field '{}'{}; leave it out",
                                   printable(asked.path, 60), known ? "" : did_you_mean(asked.name, names)),
                       "response_fields", "unknown_parameter");
    }
}

std::string PlainResponder::progress_json(std::string_view progress) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("index", 0).member("content", "").key("tokens").begin_list().end_list();
    json.member("stop", false).key("prompt_progress").json(progress).end_object();
    return out;
}

std::string PlainResponder::event(size_t index, std::string_view text, std::string_view timings) {
    Choice& choice = choices_[index];
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("index", index).member("content", text);
    write_tokens(json.key("tokens"), std::exchange(choice.tokens, {}));
    json.member("stop", false);
    if (!choice.probabilities.list.empty()) json.key("completion_probabilities").json(choice.probabilities.take());
    if (!timings.empty()) json.key("timings").json(timings);
    json.end_object();
    return out;
}

void PlainResponder::on_token(size_t index, const session::ShownToken& token, std::string_view timings) {
    Choice& choice = choices_[index];
    // As llama-server has them: parts of a stream tell their tokens, whole answers where that is asked for.
    if (token.token && (plain_.tokens || streams())) choice.tokens.push_back(*token.token);
    if (token.probabilities) choice.probabilities.add(*token.probabilities, *model().tokenizer, plain_.sampled);
    if (!streams()) {
        choice.text += token.text;
        return;
    }
    if (token.text.empty() && choice.tokens.empty() && choice.probabilities.list.empty()) return;
    send(event(index, token.text, timings));
}

const std::vector<PlainResponder::Field>& PlainResponder::fields() {
    using This = const PlainResponder&;
    using session::Answer;
    using enum session::FinishReason;
    static const std::vector<Field> fields = {
        {"index", [](This, size_t i, const Answer&) { return fmt::to_string(i); }},
        {"content", [](This of, size_t i, const Answer&) { return text::json_string(of.choices_[i].text); }},
        {"tokens",
         [](This of, size_t i, const Answer&) {
             std::string out;
             text::JsonWriter json(out);
             write_tokens(json, of.choices_[i].tokens);
             return out;
         }},
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
             return text::json_string(answer.stop_string < 0
                                          ? std::string_view()
                                          : of.plain_.stops[static_cast<size_t>(answer.stop_string)]);
         }},
        {"truncated", [](This, size_t, const Answer&) { return std::string("false"); }},
        {"has_new_line", [](This, size_t, const Answer& a) { return fmt::to_string(a.has_new_line); }},
        {"tokens_predicted", [](This, size_t, const Answer& a) { return fmt::to_string(a.new_tokens); }},
        {"tokens_evaluated", [](This, size_t, const Answer& a) { return fmt::to_string(a.prompt_tokens); }},
        {"tokens_cached", [](This, size_t, const Answer& a) { return fmt::to_string(a.reused_tokens); }},
        {"model", [](This of, size_t, const Answer&) { return text::json_string(of.model().name); }},
        {kSettings, [](This of, size_t i, const Answer&) { return of.plain_.settings.json(of.seed_of(i)); }},
        {"prompt", [](This of, size_t i, const Answer&) { return of.plain_.prompts[of.prompt_of(i)]; }},
        {kTimings, [](This of, size_t, const Answer& answer) { return of.timings_json(answer); }},
    };
    return fields;
}

// Empty: this answer has no such field.
std::string PlainResponder::asked_json(const AskedField& asked, size_t index, const session::Answer& answer) const {
    if (asked.known) return *asked.known;
    if (asked.name == kSettings && asked.member == kSeed) return fmt::to_string(seed_of(index));
    const auto field = std::ranges::find(fields(), asked.name, &Field::name);
    if (asked.member.empty()) return field->json(*this, index, answer);
    // Of the timings: no other field of an answer has members.
    return json_member(boost::json::parse(field->json(*this, index, answer)), asked.member).value_or("");
}

std::string PlainResponder::last_event(size_t index, const session::Answer& answer) const {
    std::string out;
    out.reserve(bytes_of(index));
    text::JsonWriter json(out);
    json.begin_object();
    const auto add = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) json.key(name).json(value);
    };
    if (plain_.fields) {
        for (const AskedField& asked : *plain_.fields) add(asked.path, asked_json(asked, index, answer));
    } else {
        for (const Field& field : fields()) add(field.name, field.json(*this, index, answer));
    }
    json.end_object();
    return out;
}

void PlainResponder::on_finish(size_t index, const session::Answer& answer) {
    if (streams()) return send(last_event(index, answer));
    choices_[index].answer = answer;
    choices_[index].answer.tokens = {};
}

uint64_t PlainResponder::bytes_of(size_t index) const {
    const Choice& choice = choices_[index];
    return choice.text.size() + choice.probabilities.list.size() + choice.tokens.size() * kNumberBytes +
           plain_.prompts[prompt_of(index)].size() + repeated_bytes_;
}

// A list where there are several, in the order of prompts.
std::string PlainResponder::whole() const {
    if (choices_.size() == 1) return last_event(0, choices_[0].answer);
    std::string out;
    text::JsonWriter json(out);
    json.begin_list();
    for (size_t i = 0; i < choices_.size(); ++i) json.json(last_event(i, choices_[i].answer));
    json.end_list();
    return out;
}

void PlainResponder::on_end() {
    if (streams()) return exchange().end();
    uint64_t bytes = 0;
    for (size_t i = 0; i < choices_.size(); ++i) bytes += bytes_of(i);
    respond_later(bytes, [this] { return whole(); });
}

}  // namespace tessera::server
