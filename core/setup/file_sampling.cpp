#include "core/setup/file_sampling.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>

namespace tessera {
namespace {

constexpr std::string_view kPrefix = "general.sampling.";
constexpr std::string_view kSequence = "sequence";
constexpr std::string_view kForbidden = "tokenizer.ggml.suppress_tokens";

struct Recommended {
    std::string_view key, field;  // after the prefix; in requests
};
constexpr Recommended kRecommended[] = {{"temp", "temperature"},
                                        {"top_k", "top_k"},
                                        {"top_p", "top_p"},
                                        {"min_p", "min_p"},
                                        {"xtc_probability", "xtc_probability"},
                                        {"xtc_threshold", "xtc_threshold"},
                                        {"penalty_last_n", "repeat_last_n"},
                                        {"penalty_repeat", "repeat_penalty"},
                                        {"mirostat", "mirostat"},
                                        {"mirostat_tau", "mirostat_tau"},
                                        {"mirostat_eta", "mirostat_eta"}};

std::optional<double> number_of(const gguf::Value& value) {
    return std::visit(
        [](const auto& one) -> std::optional<double> {
            using T = std::decay_t<decltype(one)>;
            if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) return static_cast<double>(one);
            return std::nullopt;
        },
        value);
}

// Throws Error that says what was expected.
void take(std::string_view name, const gguf::Value& value, session::SamplingParameters& sampling) {
    if (name == kSequence) {
        const auto* const text = std::get_if<std::string>(&value);
        if (!text) fail(TSR_INVALID_ARGUMENT, "expected the names of samplers");
        sampling.order = session::parse_sampling_order(*text);
        return;
    }
    const auto* const known = std::ranges::find(kRecommended, name, &Recommended::key);
    if (known == std::end(kRecommended)) fail(TSR_INVALID_ARGUMENT, "it is not known");
    const auto number = number_of(value);
    if (!number) fail(TSR_INVALID_ARGUMENT, "expected a number");
    session::find_sampling_field(known->field)->set(sampling, *number);
}

bool is_given(const ModelSettings& settings, std::string_view name) {
    const auto* const known = std::ranges::find(kRecommended, name, &Recommended::key);
    const std::string_view field = known == std::end(kRecommended) ? name : known->field;
    return std::ranges::find(settings.sampling_given, field) != settings.sampling_given.end();
}

}  // namespace

std::vector<std::string> take_file_sampling(const gguf::Metadata& metadata, size_t vocabulary,
                                            const ModelSettings& settings, session::SamplingParameters& sampling) {
    std::vector<std::string> lines;
    std::string taken;
    for (const auto& [key, value] : metadata.entries()) {
        if (!key.starts_with(kPrefix)) continue;
        const std::string_view name = std::string_view(key).substr(kPrefix.size());
        if (is_given(settings, name)) continue;
        const std::string text = fmt::format("{} {}", name, gguf::to_text(value, 4));
        try {
            take(name, value, sampling);
            taken += (taken.empty() ? "" : ", ") + text;
        } catch (const Error& error) {
            lines.push_back(fmt::format("{}{} is not used: {}", kPrefix, text, error.what()));
        }
    }
    if (!taken.empty()) lines.push_back(fmt::format("sampling as the file recommends it: {}", taken));
    if (const auto tokens = metadata.find_array<int32_t>(kForbidden)) {
        for (const int32_t token : *tokens) {
            if (token < 0 || static_cast<size_t>(token) >= vocabulary) {
                lines.push_back(fmt::format("{} names the token {}, but there are {} tokens: left out", kForbidden,
                                            token, vocabulary));
            } else {
                sampling.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
            }
        }
    }
    return lines;
}

}  // namespace tessera
