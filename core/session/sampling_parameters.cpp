#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/session/sampler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tessera::session {
namespace {

struct StepName {
    std::string_view name;
    SamplingStep step;
};

// The first name of each step is the one that is written.
constexpr std::array<StepName, 9> kStepNames = {{
    {"penalties", SamplingStep::kPenalties},
    {"top_k", SamplingStep::kTopK},
    {"typ_p", SamplingStep::kTypical},
    {"typical", SamplingStep::kTypical},
    {"typical_p", SamplingStep::kTypical},
    {"top_p", SamplingStep::kTopP},
    {"min_p", SamplingStep::kMinP},
    {"temperature", SamplingStep::kTemperature},
    {"temp", SamplingStep::kTemperature},
}};

// A window larger than any context is probably a typing error.
constexpr int32_t kLongestWindow = 1 << 24;

void check_range(const char* name, float value, float low, float high) {
    if (!(value >= low && value <= high))
        fail(TSR_INVALID_ARGUMENT, "{}: expected a number from {} to {}, found {}", name, low, high, value);
}

void check_finite(const char* name, float value) {
    if (!std::isfinite(value)) fail(TSR_INVALID_ARGUMENT, "{}: expected a finite number, found {}", name, value);
}

}  // namespace

std::vector<SamplingStep> parse_sampling_order(std::string_view text) {
    std::vector<SamplingStep> order;
    while (!text.empty()) {
        const size_t end = std::min(text.find_first_of(";,"), text.size());
        std::string_view name = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        while (name.starts_with(' ')) name.remove_prefix(1);
        while (name.ends_with(' ')) name.remove_suffix(1);
        if (name.empty()) continue;
        const auto found = std::ranges::find(kStepNames, name, &StepName::name);
        if (found == kStepNames.end())
            fail(
                TSR_INVALID_ARGUMENT,
                "samplers: expected penalties, top_k, typ_p, top_p, min_p or temperature, separated by ';', found '{}'",
                printable(name, 40));
        if (std::ranges::find(order, found->step) != order.end())
            fail(TSR_INVALID_ARGUMENT, "samplers: '{}' is named twice; each step runs once", printable(name, 40));
        order.push_back(found->step);
    }
    return order;
}

std::vector<SamplingStep> default_sampling_order() {
    return parse_sampling_order("top_k;typ_p;top_p;min_p;temperature");
}

std::string format_sampling_order(std::span<const SamplingStep> order) {
    std::string text;
    for (const SamplingStep step : order) {
        if (!text.empty()) text += ';';
        text += std::ranges::find(kStepNames, step, &StepName::step)->name;
    }
    return text;
}

void check_sampling_parameters(const SamplingParameters& p, size_t vocabulary_size) {
    if (vocabulary_size == 0 || vocabulary_size > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
        fail(TSR_INVALID_ARGUMENT, "expected a vocabulary of 1 to 2147483647 tokens, found {}", vocabulary_size);
    if (!std::isfinite(p.temperature) || p.temperature < 0.0f)
        fail(TSR_INVALID_ARGUMENT, "temperature: expected 0 (greedy) or a positive number, found {}", p.temperature);
    check_range("top_p", p.top_p, 0.0f, 1.0f);
    check_range("min_p", p.min_p, 0.0f, 1.0f);
    check_range("typical_p", p.typical_p, 0.0f, 1.0f);
    if (!std::isfinite(p.repetition_penalty) || p.repetition_penalty <= 0.0f)
        fail(TSR_INVALID_ARGUMENT, "repeat_penalty: expected a positive number (1: off), found {}",
             p.repetition_penalty);
    check_finite("frequency_penalty", p.frequency_penalty);
    check_finite("presence_penalty", p.presence_penalty);
    if (p.penalty_last_n < -1 || p.penalty_last_n > kLongestWindow)
        fail(TSR_INVALID_ARGUMENT, "repeat_last_n: expected -1 (all), 0 (off) or up to {} tokens, found {}",
             kLongestWindow, p.penalty_last_n);
    for (size_t i = 0; i < p.order.size(); ++i)
        if (std::find(p.order.begin(), p.order.begin() + static_cast<ptrdiff_t>(i), p.order[i]) !=
            p.order.begin() + static_cast<ptrdiff_t>(i))
            fail(TSR_INVALID_ARGUMENT, "samplers: a step is named twice in '{}'; each runs once",
                 format_sampling_order(p.order));
    for (const auto& [token, bias] : p.logit_bias) {
        if (token < 0 || static_cast<size_t>(token) >= vocabulary_size)
            fail(TSR_INVALID_ARGUMENT, "logit_bias: expected a token from 0 to {}, found {}", vocabulary_size - 1,
                 token);
        if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
            fail(TSR_INVALID_ARGUMENT, "logit_bias of token {}: expected a number or -infinity, found {}", token, bias);
    }
    if (p.logit_bias.size() < vocabulary_size) return;
    std::vector<bool> forbidden(vocabulary_size);
    for (const auto& [token, bias] : p.logit_bias) {
        if (std::isinf(bias)) forbidden[static_cast<size_t>(token)] = true;
    }
    if (std::ranges::find(forbidden, false) == forbidden.end())
        fail(TSR_INVALID_ARGUMENT, "logit_bias: every token of the vocabulary is forbidden; at least one must not be");
}

}  // namespace tessera::session
