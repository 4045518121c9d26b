#include "apps/server/request_fields.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/generation_fields.hpp"
#include "core/base/error.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr double kFar = 1e6, kLongestMilliseconds = 1e12;
constexpr int64_t kMaximumTopTokens = 20;
constexpr int64_t kMaximumTokens = std::numeric_limits<uint32_t>::max();
constexpr size_t kMaximumStops = 128, kMaximumStopBytes = 16 << 10, kMaximumBiases = 4096;

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

// The number of a token, or a text, which stands for all of its tokens.
std::vector<text::Token> tokens_of_text(const Fields& fields, std::string_view text, const text::Tokenizer& tokenizer) {
    int64_t token = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
    if (end == text.data() + text.size() && !text.empty()) {
        if (error != std::errc()) token = -1;
        return {read_token(fields, "logit_bias", token, tokenizer)};
    }
    std::vector<text::Token> tokens =
        tokenizer.encode(text, {.add_special = false, .parse_special = true, .most_tokens = kMaximumBiases});
    if (tokens.empty()) fields.reject("logit_bias", "numbers or texts of tokens");
    return tokens;
}

// {"15": -100, " yes": 2}, or as llama-server [[15, -1.0], [" yes", false]].
std::vector<std::pair<int32_t, float>> read_bias(const Fields& fields, const text::Tokenizer& tokenizer) {
    std::vector<std::pair<int32_t, float>> biases;
    const auto add = [&](std::span<const text::Token> tokens, const json::value& value) {
        const float bias = bias_of(fields, value);
        for (const text::Token token : tokens) biases.emplace_back(token, bias);
        if (biases.size() > kMaximumBiases)
            throw ApiError(400, fmt::format("logit_bias: more than {} tokens", kMaximumBiases), "logit_bias");
    };
    const json::value* const given = fields.find("logit_bias");
    if (!given) return biases;
    if (given->is_object()) {
        for (const auto& [key, value] : given->get_object())
            add(tokens_of_text(fields, {key.data(), key.size()}, tokenizer), value);
        return biases;
    }
    for (const json::value& pair : *fields.array("logit_bias", kMaximumBiases)) {
        if (!pair.is_array() || pair.get_array().size() != 2)
            fields.reject("logit_bias", "an object, or pairs of a token and a number");
        const json::value& token = pair.get_array()[0];
        if (token.is_string()) {
            add(tokens_of_text(fields, {token.get_string().data(), token.get_string().size()}, tokenizer),
                pair.get_array()[1]);
        } else {
            add({{read_token(fields, "logit_bias", token, tokenizer)}}, pair.get_array()[1]);
        }
    }
    return biases;
}

// What `read` throws of the core is the field's fault.
template <typename Read>
auto of_field(const Fields& fields, std::string_view name, const Read& read) {
    try {
        return read();
    } catch (const Error& error) {
        throw ApiError(400, error.what(), fields.path(name));
    }
}

std::vector<std::string> read_text_list(const Fields& fields, std::string_view name, size_t maximum) {
    std::vector<std::string> texts;
    for (const json::value& value : *fields.array(name, maximum)) {
        if (!value.is_string()) fields.reject(name, "a list of texts");
        texts.emplace_back(value.get_string());
    }
    return texts;
}

std::vector<session::SamplingStep> read_order(const Fields& fields) {
    const json::value* const given = fields.find("samplers");
    return of_field(fields, "samplers", [&] {
        if (given->is_array())
            return session::parse_sampling_names(read_text_list(fields, "samplers", session::kMaximumSamplers));
        const std::string_view text = *fields.text("samplers");
        try {
            return session::parse_sampling_order(text);
        } catch (const Error&) {
            // As llama-server reads a text, if it is one of letters.
            if (text.find_first_of(";,_") != std::string_view::npos) throw;
            return session::parse_sampling_letters(text);
        }
    });
}

// Of text-generation-webui: moves temperature behind all others. Without it, it stays where the order has it.
void read_temperature_last(const Fields& fields, std::span<const session::SamplingStep> order) {
    using enum session::SamplingStep;
    const auto asked = fields.boolean("temperature_last");
    const auto temperature = std::ranges::find(order, kTemperature);
    if (!asked.value_or(false) || temperature == order.end()) return;
    // Adaptive-p is the draw itself, wherever it is named.
    const bool last = std::all_of(temperature + 1, order.end(), [](auto step) { return step == kAdaptiveP; });
    if (!last) fields.refuse("temperature_last", "in the order of the samplers others follow temperature");
}

void read_sampling(const Fields& fields, const ModelText& model, session::SamplingParameters& p) {
    constexpr double kAny = std::numeric_limits<double>::max();
    for (const session::SamplingField& field : session::kSamplingFields) {
        std::vector<std::string_view> names = session::aliases_of(field);
        names.insert(names.begin(), field.name);
        const auto value = read_any(fields, names, [&](std::string_view name) {
            if (const json::value* const given = fields.find(name); given && !given->is_number())
                fields.reject(name, fmt::format("a number from {} to {}", field.minimum, field.maximum));
            return fields.number(name, -kAny, kAny);
        });
        if (value) of_field(fields, field.name, [&] { field.set(p, *value); });
    }
    // No text is longer than the context; a window of that length would only take memory.
    for (int32_t* const last : {&p.penalty_last_n, &p.dry_last_n}) {
        if (*last > int64_t{model.context}) *last = -1;
    }
    if (fields.has("dry_sequence_breakers")) {
        p.dry_sequence_breakers = read_text_list(fields, "dry_sequence_breakers", session::kMaximumBreakers);
    }
    if (fields.has("samplers")) p.order = read_order(fields);
    read_temperature_last(fields, p.order);
}

}  // namespace

Delivery read_delivery(const Fields& fields) {
    Delivery delivery;
    delivery.stream = fields.boolean("stream").value_or(false);
    if (const json::object* options = fields.object("stream_options")) {
        if (!delivery.stream)
            throw ApiError(400, "stream_options: has a meaning with \"stream\": true alone", "stream_options");
        const Fields given(*options, stream_options_table(), fields.path("stream_options"));
        delivery.usage_in_stream = given.boolean("include_usage").value_or(false);
        given.check_read();
    }
    if (const json::object* options = fields.object("prompt_cache_options"))
        Fields(*options, cache_options_table(), fields.path("prompt_cache_options")).check_read();
    delivery.progress = fields.boolean("return_progress").value_or(false);
    delivery.timings = fields.boolean("timings_per_token").value_or(false) && delivery.stream;
    set(delivery.choices, read_any(fields, {"n", "n_cmpl"},
                                   [&](std::string_view name) { return fields.integer(name, 1, kMaximumChoices); }));
    return delivery;
}

std::vector<std::string> read_stops(const Fields& fields) {
    const auto read = [&](std::string_view name) -> std::optional<std::vector<std::string>> {
        const json::value* const given = fields.find(name);
        if (!given) return std::nullopt;
        std::vector<std::string> stops;
        // Nothing ends where nothing is, so an empty text is as none.
        const auto add = [&](const json::value& value) {
            if (!value.get_string().empty()) stops.emplace_back(value.get_string());
        };
        if (given->is_string()) {
            add(*given);
        } else {
            if (!given->is_array()) fields.reject(name, "a text or a list of texts");
            size_t index = 0;
            for (const json::value& value : *fields.array(name, kMaximumStops)) {
                const std::string where = fmt::format("{}[{}]", fields.path(name), index++);
                if (!value.is_string())
                    throw ApiError(400, fmt::format("{}: expected a text, found {}", where, shown(value)), where);
                add(value);
            }
        }
        size_t bytes = 0;
        for (const std::string& stop : stops) bytes += stop.size();
        if (bytes > kMaximumStopBytes)
            throw ApiError(400, fmt::format("{}: {} bytes; at most {} are accepted", name, bytes, kMaximumStopBytes),
                           std::string(name));
        return stops;
    };
    return read_any(fields, {"stop", "stopping_strings", "stop_sequences"}, read).value_or(std::vector<std::string>());
}

session::Request read_request(const Fields& fields, const ModelText& model, std::optional<uint32_t> default_tokens) {
    session::Request request;
    session::SamplingParameters& p = request.sampling = model.sampling;
    const auto integer = [&](int64_t minimum, int64_t maximum) {
        return [&fields, minimum, maximum](std::string_view name) { return fields.integer(name, minimum, maximum); };
    };
    read_sampling(fields, model, p);
    const auto seed = read_any(fields, {"seed", "sampler_seed"}, integer(-1, std::numeric_limits<int64_t>::max()));
    if (seed || model.random_seed) {
        const auto given = seed ? session::given_seed(*seed) : std::nullopt;
        p.seed = given ? *given : session::random_seed();
    }
    for (const auto& bias : read_bias(fields, *model.tokenizer)) p.logit_bias.push_back(bias);
    const auto boolean = [&](std::string_view name) { return fields.boolean(name); };
    if (read_any(fields, {"ignore_eos", "ban_eos_token"}, boolean).value_or(false)) {
        for (const text::Token end : model.tokenizer->generation_ends())
            p.logit_bias.emplace_back(end, -std::numeric_limits<float>::infinity());
    }
    request.stop = session::StopStrings(read_stops(fields));
    // Negative, as llama-server has it: until the context is full.
    if (const auto tokens = read_any(
            fields,
            {"max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict", "max_new_tokens", "num_predict"},
            integer(-2, kMaximumTokens))) {
        if (*tokens >= 0) request.max_new_tokens = static_cast<uint32_t>(*tokens);
    } else if (default_tokens) {
        request.max_new_tokens = *default_tokens;
    }
    if (const auto milliseconds = fields.number("t_max_predict_ms", -kFar, kLongestMilliseconds);
        milliseconds && *milliseconds > 0)
        request.line_seconds = *milliseconds / 1000;
    const auto drafted = integer(0, kMaximumTokens);
    if (const auto most = drafted("speculative.n_max")) request.drafts.most = static_cast<uint32_t>(*most);
    if (const auto least = drafted("speculative.n_min")) request.drafts.least = static_cast<uint32_t>(*least);
    request.context = model.request_context;
    if (const auto slot = fields.integer("id_slot", -1, std::numeric_limits<int32_t>::max()))
        request.slot = static_cast<uint32_t>(std::max<int64_t>(*slot, 0));
    request.reuse = fields.boolean("cache_prompt").value_or(true);
    session::check_sampling_parameters(p, model.tokenizer->size());
    return request;
}

std::optional<uint32_t> read_probabilities(const Fields& fields) {
    const bool wanted = fields.boolean("logprobs").value_or(false);
    const auto top = fields.integer("top_logprobs", 0, kMaximumTopTokens);
    if (!wanted && top.value_or(0) > 0)
        throw ApiError(400, "top_logprobs: has a meaning with \"logprobs\": true alone", "top_logprobs");
    return wanted ? std::optional(static_cast<uint32_t>(top.value_or(0))) : std::nullopt;
}

void check_length(uint64_t bytes, const ModelText& model) {
    const uint64_t tokens = model.tokenizer->fewest_tokens(bytes);
    const uint32_t context = model.context_of_request();
    if (tokens > context) throw context_exceeded(tokens, context, true);
}

size_t most_prompt_tokens(const ModelText& model) {
    return 2 * size_t{model.context_of_request()};
}

void check_prompt_tokens(size_t tokens, const ModelText& model) {
    if (tokens > most_prompt_tokens(model)) throw context_exceeded(tokens, model.context_of_request(), true);
}

text::Token read_token(const Fields& fields, std::string_view name, const json::value& value,
                       const text::Tokenizer& tokenizer) {
    if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() >= static_cast<int64_t>(tokenizer.size()))
        fields.reject(name, fmt::format("tokens from 0 to {}", tokenizer.size() - 1));
    return static_cast<text::Token>(value.get_int64());
}

}  // namespace tessera::server
