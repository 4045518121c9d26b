#include "core/session/sampling_parameters.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace tessera::session {
namespace {

struct StepName {
    std::string_view name;
    std::optional<SamplingStep> step;  // nothing: known, and never on
    char letter = 0;
};

// The first name of each step is the one that is written. Two letters differ between llama.cpp and ik_llama.cpp.
constexpr auto kStepNames = std::to_array<StepName>({
    {"penalties", SamplingStep::kPenalties, 'e'},
    {"dry", SamplingStep::kDry, 'd'},
    {"top_n_sigma", SamplingStep::kTopNSigma, 's'},
    {"top_n_sigma", SamplingStep::kTopNSigma, 'n'},
    {"top_k", SamplingStep::kTopK, 'k'},
    {"typ_p", SamplingStep::kTypical, 'y'},
    {"typical_p", SamplingStep::kTypical},
    {"typical", SamplingStep::kTypical},
    {"typ", SamplingStep::kTypical},
    {"top_p", SamplingStep::kTopP, 'p'},
    {"nucleus", SamplingStep::kTopP},
    {"min_p", SamplingStep::kMinP, 'm'},
    {"xtc", SamplingStep::kXtc, 'x'},
    {"temperature", SamplingStep::kTemperature, 't'},
    {"temp", SamplingStep::kTemperature},
    {"adaptive_p", SamplingStep::kAdaptiveP, 'a'},
    {"adaptive_p", SamplingStep::kAdaptiveP, 'w'},
    {"tfs_z", std::nullopt, 'f'},
    {"tfs", std::nullopt},
});
constexpr std::string_view kDefaultOrder =
    "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature;adaptive_p";

[[noreturn]] void refuse_infill() {
    fail(TSR_UNSUPPORTED, "samplers: infill, for text between two others, is not in this version; leave it out");
}

// Steps in the order in which they are named.
class Order {
  public:
    void add(const StepName& named) {
        // What is left out counts, too.
        if (std::ranges::find(named_, named.step) != named_.end())
            fail(TSR_INVALID_ARGUMENT, "samplers: '{}' is named twice; each step runs once", named.name);
        named_.push_back(named.step);
    }
    std::vector<SamplingStep> steps() const {
        std::vector<SamplingStep> steps;
        for (const std::optional<SamplingStep>& step : named_) {
            if (step) steps.push_back(*step);
        }
        return steps;
    }

  private:
    std::vector<std::optional<SamplingStep>> named_;
};

void check_count(size_t count) {
    if (count > kMaximumSamplers)
        fail(TSR_INVALID_ARGUMENT, "samplers: expected {} names at most, found more", kMaximumSamplers);
}

[[noreturn]] void reject(const SamplingField& field, double value) {
    fail(TSR_INVALID_ARGUMENT, "{}: expected a {}number from {} to {}, found {}", field.name,
         field.is_integer() ? "whole " : "", field.minimum, field.maximum, value);
}

void check_field(const SamplingField& field, double value) {
    // In the precision of the member: 0.99 is a little more as a float.
    const auto rounded = [&](double bound) {
        return field.is_integer() ? bound : static_cast<double>(static_cast<float>(bound));
    };
    if (!(value >= std::min(field.minimum, rounded(field.minimum)) &&
          value <= std::max(field.maximum, rounded(field.maximum))))
        reject(field, value);
}

void check_breakers(std::span<const std::string> breakers) {
    if (breakers.size() > kMaximumBreakers)
        fail(TSR_INVALID_ARGUMENT, "dry_sequence_breakers: expected at most {} texts, found {}", kMaximumBreakers,
             breakers.size());
    for (const std::string& text : breakers) {
        if (text.empty() || text.size() > kMaximumBreakerBytes)
            fail(TSR_INVALID_ARGUMENT, "dry_sequence_breakers: expected texts of 1 to {} bytes, found one of {}",
                 kMaximumBreakerBytes, text.size());
    }
}

}  // namespace

std::vector<SamplingStep> parse_sampling_names(std::span<const std::string> names) {
    check_count(names.size());
    Order order;
    for (const std::string& name : names) {
        std::string plain = name;
        std::ranges::replace(plain, '-', '_');
        if (plain == "infill") refuse_infill();
        const auto found = std::ranges::find(kStepNames, plain, &StepName::name);
        if (found == kStepNames.end())
            fail(TSR_INVALID_ARGUMENT, "samplers: expected names of {}, found '{}'", kDefaultOrder,
                 printable(name, 40));
        order.add(*found);
    }
    return order.steps();
}

std::vector<SamplingStep> parse_sampling_order(std::string_view text) {
    std::vector<std::string> names;
    for (size_t count = 1; !text.empty(); ++count) {
        check_count(count);
        const size_t end = std::min(text.find_first_of(";,"), text.size());
        std::string_view name = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        while (name.starts_with(' ')) name.remove_prefix(1);
        while (name.ends_with(' ')) name.remove_suffix(1);
        if (!name.empty()) names.emplace_back(name);
    }
    return parse_sampling_names(names);
}

std::vector<SamplingStep> parse_sampling_letters(std::string_view letters) {
    check_count(letters.size());
    Order order;
    for (const char letter : letters) {
        if (letter == 'i') refuse_infill();
        const auto found = std::ranges::find(kStepNames, letter, &StepName::letter);
        if (letter == 0 || found == kStepNames.end())
            fail(TSR_INVALID_ARGUMENT, "samplers: expected letters of edskypmxta, one a step, found '{}'",
                 printable(std::string_view(&letter, 1), 40));
        order.add(*found);
    }
    return order.steps();
}

std::vector<SamplingStep> default_sampling_order() {
    return parse_sampling_order(kDefaultOrder);
}

std::string_view name_of(SamplingStep step) noexcept {
    return std::ranges::find(kStepNames, std::optional(step), &StepName::step)->name;
}

std::string format_sampling_order(std::span<const SamplingStep> order) {
    std::string text;
    for (const SamplingStep step : order) {
        if (!text.empty()) text += ';';
        text += name_of(step);
    }
    return text;
}

uint64_t random_seed() {
    return std::random_device()() % kRandomSeed;
}

std::vector<std::string_view> aliases_of(const SamplingField& field) {
    std::vector<std::string_view> names;
    for (std::string_view rest = field.aliases; !rest.empty();) {
        const size_t end = std::min(rest.find(' '), rest.size());
        names.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return names;
}

void SamplingField::set(SamplingParameters& p, double value) const {
    if (negative_is_zero && value < 0) value = 0;
    check_field(*this, value);
    if (!integer) {
        p.*number = static_cast<float>(value);
        return;
    }
    if (value != std::floor(value)) reject(*this, value);
    p.*integer = static_cast<int32_t>(value);
}

void check_sampling_parameters(const SamplingParameters& p, size_t vocabulary_size) {
    if (vocabulary_size == 0 || vocabulary_size > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
        fail(TSR_INVALID_ARGUMENT, "expected a vocabulary of 1 to 2147483647 tokens, found {}", vocabulary_size);
    for (const SamplingField& field : kSamplingFields) check_field(field, field.of(p));
    if (p.dry_multiplier != 0.0f && p.dry_base < 1.0f)
        fail(TSR_INVALID_ARGUMENT, "dry_base: expected a number from 1 on beside dry_multiplier {}, found {}",
             p.dry_multiplier, p.dry_base);
    check_breakers(p.dry_sequence_breakers);
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
