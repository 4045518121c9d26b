#include "apps/server/generation_settings.hpp"

#include "apps/server/json_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace tessera::server {
namespace {

// The shortest text that is read as the same float.
std::string number(float value) {
    return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

}  // namespace

GenerationSettings::GenerationSettings(const session::Request& request, const AnswerForm& form,
                                       std::span<const std::string> stops, const text::Tokenizer& tokenizer) {
    const session::SamplingParameters& p = request.sampling;
    constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
    const int64_t tokens = request.max_new_tokens == kNoLimit ? -1 : int64_t{request.max_new_tokens};
    const auto ends = tokenizer.generation_ends();
    std::string numbers, breakers, samplers, words, bias;
    bool ignores_end = !ends.empty();
    for (const text::Token end : ends) {
        ignores_end = ignores_end && std::ranges::any_of(p.logit_bias, [&](const auto& one) {
                          return one.first == end && std::isinf(one.second);
                      });
    }
    for (const session::SamplingStep step : p.order)
        samplers += (samplers.empty() ? "" : ",") + json_string(session::name_of(step));
    for (const session::SamplingField& field : session::kSamplingFields) {
        numbers += fmt::format(R"("{}":{},)", field.name,
                               field.is_integer() ? fmt::format("{}", p.*field.integer) : number(p.*field.number));
    }
    for (const std::string& text : p.dry_sequence_breakers)
        breakers += (breakers.empty() ? "" : ",") + json_string(text);
    for (const std::string& stop : stops) words += (words.empty() ? "" : ",") + json_string(stop);
    for (const auto& [token, value] : p.logit_bias) {
        bias += fmt::format(R"({}{{"token":{},"bias":{}}})", bias.empty() ? "" : ",", token,
                            std::isinf(value) ? "false" : number(value));
    }
    before_ = fmt::format(R"({{{}"n_predict":{},"max_tokens":{},"seed":)", numbers, tokens, tokens);
    after_ = fmt::format(
        R"(,"dry_sequence_breakers":[{}],"samplers":[{}],"stop":[{}],"logit_bias":[{}],"ignore_eos":{},"stream":{},)"
        R"("n_probs":{},"post_sampling_probs":{},"timings_per_token":{},"cache_prompt":{}}})",
        breakers, samplers, words, bias, ignores_end, form.stream, request.probabilities.value_or(0),
        request.sampled_probabilities, form.timings, request.reuse);
}

std::string GenerationSettings::json(uint64_t seed) const {
    return fmt::format("{}{}{}", before_, seed, after_);
}

}  // namespace tessera::server
