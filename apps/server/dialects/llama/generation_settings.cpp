#include "apps/server/dialects/llama/generation_settings.hpp"

#include "core/text/json_writer.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::server {
GenerationSettings::GenerationSettings(const session::Request& request, const Delivery& delivery,
                                       std::span<const std::string> stops, const text::Tokenizer& tokenizer) {
    const session::SamplingParameters& p = request.sampling;
    constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
    const int64_t tokens = request.max_new_tokens == kNoLimit ? -1 : int64_t{request.max_new_tokens};
    const auto ends = tokenizer.generation_ends();
    bool ignores_end = !ends.empty();
    for (const text::Token end : ends) {
        ignores_end = ignores_end && std::ranges::any_of(p.logit_bias, [&](const auto& one) {
                          return one.first == end && std::isinf(one.second);
                      });
    }
    text::JsonWriter json(before_);
    json.begin_object();
    for (const session::SamplingField& field : session::kSamplingFields) {
        json.key(field.name);
        if (field.is_integer())
            json.value(p.*field.integer);
        else
            json.value(p.*field.number);
    }
    json.member("n_predict", tokens).member("max_tokens", tokens);
    json.key("dry_sequence_breakers").begin_list();
    for (const std::string& text : p.dry_sequence_breakers) json.value(text);
    json.end_list().key("samplers").begin_list();
    for (const session::SamplingStep step : p.order) json.value(session::name_of(step));
    json.end_list().key("stop").begin_list();
    for (const std::string& stop : stops) json.value(stop);
    json.end_list().key("logit_bias").begin_list();
    for (const auto& [token, value] : p.logit_bias) {
        json.begin_object().member("token", token).key("bias");
        if (std::isinf(value))
            json.value(false);
        else
            json.value(value);
        json.end_object();
    }
    json.end_list().member("ignore_eos", ignores_end).member("stream", delivery.stream);
    json.member("n_probs", request.probabilities.value_or(0));
    json.member("post_sampling_probs", request.sampled_probabilities);
    json.member("timings_per_token", delivery.timings).member("cache_prompt", request.reuse).key("seed");
}

std::string GenerationSettings::json(uint64_t seed) const {
    return before_ + std::to_string(seed) + "}";
}

}  // namespace tessera::server
