#include "apps/tessera-server/request_fields.hpp"

#include "apps/tessera-server/api_error.hpp"
#include "core/base/error.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <limits>
#include <random>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr double kFar = 1e6, kFarthest = 1e18;
constexpr int64_t kMaximumTokens = std::numeric_limits<uint32_t>::max();
constexpr size_t kMaximumStops = 128, kMaximumStopBytes = 16 << 10, kMaximumBiases = 4096;
constexpr int64_t kMaximumChoices = 128;

template <typename T, typename Value>
void set(T& to, const std::optional<Value>& value) {
    if (value) to = static_cast<T>(*value);
}

float bias_of(const Fields& fields, const json::value& value) {
    // llama-server's way to forbid a token.
    if (value.is_bool() && !value.get_bool()) return -std::numeric_limits<float>::infinity();
    if (!value.is_number()) fields.reject("logit_bias", "numbers for tokens");
    const auto bias = value.to_number<double>();
    if (!(bias >= -kFar && bias <= kFar))
        fields.reject("logit_bias", fmt::format("numbers from {} to {}", -kFar, kFar));
    // As the OpenAI API has it: forbidden.
    return bias <= -100 ? -std::numeric_limits<float>::infinity() : static_cast<float>(bias);
}

int32_t token_of(const Fields& fields, std::string_view text) {
    int32_t token = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
    if (error != std::errc() || end != text.data() + text.size() || token < 0)
        fields.reject("logit_bias", "numbers of tokens");
    return token;
}

// {"15": -100}, or as llama-server [[15, -1.0], [16, false]].
std::vector<std::pair<int32_t, float>> read_bias(const Fields& fields) {
    std::vector<std::pair<int32_t, float>> biases;
    const json::value* const given = fields.find("logit_bias");
    if (!given) return biases;
    if (given->is_object()) {
        for (const auto& [key, value] : given->get_object())
            biases.emplace_back(token_of(fields, std::string_view(key.data(), key.size())), bias_of(fields, value));
    } else if (const json::array* list = fields.array("logit_bias", kMaximumBiases)) {
        for (const json::value& pair : *list) {
            if (!pair.is_array() || pair.get_array().size() != 2 || !pair.get_array()[0].is_int64())
                fields.reject("logit_bias", "an object, or pairs of a token and a number");
            const int64_t token = pair.get_array()[0].get_int64();
            if (token < 0 || token > std::numeric_limits<int32_t>::max())
                fields.reject("logit_bias", "numbers of tokens");
            biases.emplace_back(static_cast<int32_t>(token), bias_of(fields, pair.get_array()[1]));
        }
    }
    if (biases.size() > kMaximumBiases)
        throw ApiError(400,
                       fmt::format("logit_bias: {} tokens; at most {} are accepted", biases.size(), kMaximumBiases),
                       "logit_bias");
    return biases;
}

std::vector<session::SamplingStep> read_order(const Fields& fields) {
    const json::value* const given = fields.find("samplers");
    std::string names;
    if (given->is_array()) {
        for (const json::value& name : *fields.array("samplers", 16)) {
            if (!name.is_string()) fields.reject("samplers", "names of samplers");
            names += fmt::format("{}{}", names.empty() ? "" : ";", std::string_view(name.get_string()));
        }
    } else {
        names = *fields.text("samplers");
    }
    return session::parse_sampling_order(names);
}

bool says_nothing(const json::value& value) {
    switch (value.kind()) {
        case json::kind::null:
            return true;
        case json::kind::bool_:
            return !value.get_bool();
        case json::kind::int64:
            return value.get_int64() == 0;
        case json::kind::uint64:
            return value.get_uint64() == 0;
        case json::kind::double_:
            return value.get_double() == 0;
        case json::kind::string:
            return value.get_string().empty();
        case json::kind::array:
            return value.get_array().empty();
        case json::kind::object:
            return false;  // as a schema: any JSON
    }
    return false;
}

}  // namespace

AnswerForm read_form(const Fields& fields) {
    AnswerForm form;
    form.stream = fields.boolean("stream").value_or(false);
    if (const json::object* options = fields.object("stream_options")) {
        if (!form.stream)
            throw ApiError(400, "stream_options: has a meaning with \"stream\": true alone", "stream_options");
        form.usage_in_stream = Fields(*options, "stream_options").boolean("include_usage").value_or(false);
    }
    form.progress = fields.boolean("return_progress").value_or(false);
    set(form.choices, fields.integer("n", 1, kMaximumChoices));
    return form;
}

std::vector<std::string> read_stops(const Fields& fields) {
    std::vector<std::string> stops;
    const json::value* const given = fields.find("stop");
    if (!given) return stops;
    if (given->is_string()) {
        stops.emplace_back(given->get_string());
    } else {
        if (!given->is_array()) fields.reject("stop", "a text or a list of texts");
        for (const json::value& value : *fields.array("stop", kMaximumStops)) {
            if (!value.is_string()) fields.reject("stop", "a text or a list of texts");
            stops.emplace_back(value.get_string());
        }
    }
    size_t bytes = 0;
    for (const std::string& stop : stops) {
        bytes += stop.size();
        if (stop.empty()) throw ApiError(400, "stop: expected a text that is not empty", "stop");
    }
    if (bytes > kMaximumStopBytes)
        throw ApiError(400, fmt::format("stop: {} bytes; at most {} are accepted", bytes, kMaximumStopBytes), "stop");
    return stops;
}

session::Request read_request(const Fields& fields, const ModelText& model) {
    session::Request request;
    session::SamplingParameters& p = request.sampling = model.sampling;
    if (model.random_seed) p.seed = std::random_device()();
    if (const auto t = fields.number("temperature", -kFar, kFar)) p.temperature = static_cast<float>(std::max(*t, 0.0));
    set(p.top_p, fields.number("top_p", 0, 1));
    set(p.top_k, fields.integer("top_k", -1, std::numeric_limits<int32_t>::max()));
    set(p.min_p, fields.number("min_p", 0, 1));
    set(p.typical_p, fields.number("typical_p", 0, 1));
    set(p.repetition_penalty, fields.number("repeat_penalty", 1e-6, kFar));
    set(p.repetition_penalty, fields.number("repetition_penalty", 1e-6, kFar));
    if (const auto last = fields.integer("repeat_last_n", -1, 1 << 24)) {
        // No text is longer than the context; a window of that length would only take memory.
        p.penalty_last_n = *last > int64_t{model.context} ? -1 : static_cast<int32_t>(*last);
    }
    set(p.presence_penalty, fields.number("presence_penalty", -kFar, kFar));
    set(p.frequency_penalty, fields.number("frequency_penalty", -kFar, kFar));
    if (const auto seed = fields.integer("seed", -1, std::numeric_limits<int64_t>::max()); seed && *seed >= 0)
        p.seed = static_cast<uint64_t>(*seed);
    if (fields.has("samplers")) p.order = read_order(fields);
    for (const auto& bias : read_bias(fields)) p.logit_bias.push_back(bias);
    if (fields.boolean("ignore_eos").value_or(false)) {
        for (const text::Token end : model.tokenizer->generation_ends())
            p.logit_bias.emplace_back(end, -std::numeric_limits<float>::infinity());
    }
    request.stop = session::StopStrings(read_stops(fields));
    // Negative, as llama-server has it: until the context is full.
    for (const std::string_view name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
        if (const auto n = fields.integer(name, -2, kMaximumTokens); n && *n >= 0)
            request.max_new_tokens = static_cast<uint32_t>(*n);
    }
    request.reuse = fields.boolean("cache_prompt").value_or(true);
    session::check_sampling_parameters(p, model.tokenizer->size());
    return request;
}

std::vector<text::Token> read_tokens(const Fields& fields, std::string_view name, const json::array& list,
                                     const text::Tokenizer& tokenizer) {
    std::vector<text::Token> tokens;
    for (const json::value& value : list) {
        if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() >= static_cast<int64_t>(tokenizer.size()))
            fields.reject(name, fmt::format("tokens from 0 to {}", tokenizer.size() - 1));
        tokens.push_back(static_cast<text::Token>(value.get_int64()));
    }
    return tokens;
}

void refuse_fields(const Fields& fields, std::span<const Refused> refused) {
    for (const Refused& field : refused) {
        const json::value* const value = fields.find(field.name);
        if (value && !says_nothing(*value)) fields.refuse(field.name, field.reason);
    }
}

void refuse_common_fields(const Fields& fields) {
    static constexpr Refused kRefused[] = {
        {"grammar", "this version has no grammars"},
        {"json_schema", "this version has no structured output"},
        {"guided_json", "this version has no structured output"},
        {"guided_regex", "this version has no structured output"},
        {"guided_choice", "this version has no structured output"},
        {"guided_grammar", "this version has no structured output"},
        {"structured_outputs", "this version has no structured output"},
        {"stop_token_ids", "answers end by the texts of stop"},
        {"min_tokens", "answers end where the model ends them"},
        {"web_search_options", "this version searches nothing"},
        {"mirostat", "this version has no such sampler"},
        {"dry_multiplier", "this version has no such sampler"},
        {"xtc_probability", "this version has no such sampler"},
        {"dynatemp_range", "this version has no such sampler"},
        {"timings_per_token", "timings are in the last part of a stream alone"},
        {"lora", "this version loads no adapters"},
        {"prediction", "this version has no speculative decoding"},
    };
    refuse_fields(fields, kRefused);
    // Clients that list all options turn these off with negative numbers.
    for (const std::string_view name : {"top_n_sigma", "t_max_predict_ms"}) {
        if (const auto value = fields.number(name, -kFarthest, kFarthest); value && *value > 0)
            fields.refuse(name,
                          name == "top_n_sigma" ? "this version has no such sampler" : "answers end by tokens alone");
    }
    if (const json::object* format = fields.object("response_format")) {
        const auto type = Fields(*format, "response_format").text("type");
        if (type != "text")
            throw ApiError(
                501, "response_format: this version has no structured output; only {\"type\": \"text\"} is accepted",
                "response_format", "not_supported");
    }
}

}  // namespace tessera::server
