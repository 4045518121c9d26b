// What a user may set of sampling, and one table of its numbers: the checks, the flags of the command and the fields of
// requests all come from it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::session {

enum class SamplingStep : uint8_t {
    kPenalties,    // repetition (Keskar et al., arXiv:1909.05858), frequency and presence (as the OpenAI API defines
                   // them)
    kDry,          // tokens that would continue a repetition (p-e-w, text-generation-webui pull request 5677)
    kTopNSigma,    // at most so many standard deviations below the best logit (Tang et al., arXiv:2411.07641)
    kTopK,         // the k best
    kTypical,      // locally typical (Meister et al., arXiv:2202.00666)
    kTopP,         // nucleus (Holtzman et al., arXiv:1904.09751)
    kMinP,         // at least this share of the best one's probability (Nguyen et al., arXiv:2407.01082)
    kXtc,          // without the best ones, now and then (p-e-w, text-generation-webui pull request 6335)
    kTemperature,  // logits divided by it
    kAdaptiveP,    // near a target probability (llama.cpp pull request 17927); the draw itself, wherever it is named
};

inline constexpr size_t kMaximumSamplers = 32;  // names in an order, empty ones included

// Names of steps in order; '-' counts as '_'. Those of format_sampling_order() and typical, typical_p and typ (typ_p),
// nucleus (top_p), temp (temperature); tfs_z and tfs are known and left out: callers accept no parameter that would
// turn them on. Throws Error(TSR_INVALID_ARGUMENT) for an unknown or repeated name, and for too many.
std::vector<SamplingStep> parse_sampling_names(std::span<const std::string> names);
// The same of "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature;adaptive_p", the separator being ';'
// or ',', beside which blanks are left out.
std::vector<SamplingStep> parse_sampling_order(std::string_view text);
// "edskypmxta", a letter a step. Throws likewise.
std::vector<SamplingStep> parse_sampling_letters(std::string_view letters);
// All steps in the order of the first example.
std::vector<SamplingStep> default_sampling_order();
std::string format_sampling_order(std::span<const SamplingStep> order);
std::string_view name_of(SamplingStep step) noexcept;

// Asks for a random seed, as -1 does, in llama.cpp's requests and answers.
inline constexpr uint64_t kRandomSeed = std::numeric_limits<uint32_t>::max();
// The seed that a user gives; nothing where that is -1 or kRandomSeed.
constexpr std::optional<uint64_t> given_seed(int64_t given) noexcept {
    if (given < 0 || static_cast<uint64_t>(given) == kRandomSeed) return std::nullopt;
    return static_cast<uint64_t>(given);
}
// The seed `count` behind `first`, without kRandomSeed, which would not repeat what came of it.
constexpr uint64_t following_seed(uint64_t first, uint64_t count) noexcept {
    const uint64_t seed = first + count;
    return seed + (first < kRandomSeed && seed >= kRandomSeed ? 1 : 0);
}
// A new one, below kRandomSeed, so that it repeats an answer when it is given.
uint64_t random_seed();

// Ranges: kSamplingFields.
struct SamplingParameters {
    float temperature = 0.8f;  // 0: greedy, unless there is a range
    float temperature_range = 0.0f;
    float temperature_exponent = 1.0f;
    int32_t top_k = 40;
    float top_p = 0.95f;
    float min_p = 0.05f;
    float typical_p = 1.0f;
    float top_n_sigma = -1.0f;
    float xtc_probability = 0.0f;
    float xtc_threshold = 0.1f;
    float repetition_penalty = 1.0f;
    float frequency_penalty = 0.0f;
    float presence_penalty = 0.0f;
    int32_t penalty_last_n = 64;  // tokens that penalties look back on; 0: none, -1: all that were accepted
    float dry_multiplier = 0.0f;
    float dry_base = 1.75f;
    int32_t dry_allowed_length = 2;
    int32_t dry_last_n = 64;  // tokens in which repetitions are looked for; 0: none, -1: all that were accepted
    float adaptive_target = -1.0f;
    float adaptive_decay = 0.9f;
    int32_t mirostat = 0;  // version 1 or 2 (Basu et al., arXiv:2007.14966); draws from what penalties, DRY and
                           // temperature leave, without the other steps
    float mirostat_tau = 5.0f;
    float mirostat_eta = 0.1f;
    int32_t min_keep = 0;
    uint64_t seed = 0;
    // Steps in order. Penalties go first if they are not named; any other step not named is left out.
    std::vector<SamplingStep> order = default_sampling_order();
    // Texts over which no repetition extends; none of them empty.
    std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
    // Added to logits first. -infinity forbids a token.
    std::vector<std::pair<int32_t, float>> logit_bias;
};

// When a field turns its step off.
enum class SamplingOff : uint8_t { kNever, kEqual, kAtMost, kBelow };

// A number of SamplingParameters.
struct SamplingField {
    std::string_view name;             // in requests
    std::string_view aliases;          // other names in requests, separated by blanks
    std::string_view flags;            // of the command, separated by blanks
    std::optional<SamplingStep> step;  // which must be in the order for it to have an effect
    // One of the two.
    float SamplingParameters::*number = nullptr;
    int32_t SamplingParameters::*integer = nullptr;
    double minimum = 0, maximum = 0;
    bool negative_is_zero = false;  // a negative number counts as 0, whatever the minimum is
    SamplingOff off = SamplingOff::kNever;
    double off_value = 0;
    std::string_view help;  // for the command, with the default

    constexpr bool is_integer() const noexcept { return integer != nullptr; }
    // Of the first flag, without dashes; empty if there is none.
    constexpr std::string_view flag() const noexcept {
        return flags.empty() ? flags : flags.substr(2, std::min(flags.find(' '), flags.size()) - 2);
    }
    constexpr double of(const SamplingParameters& p) const {
        return integer ? static_cast<double>(p.*integer) : static_cast<double>(p.*number);
    }
    // Whether this field turns its step on.
    constexpr bool turns_on(const SamplingParameters& p) const {
        switch (off) {
            case SamplingOff::kNever:
                return false;
            case SamplingOff::kEqual:
                return of(p) != off_value;
            case SamplingOff::kAtMost:
                return of(p) > off_value;
            case SamplingOff::kBelow:
                return of(p) >= off_value;
        }
        return false;
    }
    // Throws Error(TSR_INVALID_ARGUMENT) that names field, expectation and value.
    void set(SamplingParameters& p, double value) const;
};

// Larger temperatures and penalties change nothing more.
inline constexpr double kFarthestSampling = 1e6;
// A window larger than any context is probably a typing error.
inline constexpr int32_t kLongestWindow = 1 << 24;
inline constexpr int32_t kAnyInteger = std::numeric_limits<int32_t>::max();
inline constexpr size_t kMaximumBreakers = 64;      // dry_sequence_breakers
inline constexpr size_t kMaximumBreakerBytes = 40;  // of each

// clang-format off
inline constexpr auto kSamplingFields = std::to_array<SamplingField>({
    {.name = "temperature", .aliases = "", .flags = "--temp --temperature", .step = SamplingStep::kTemperature,
     .number = &SamplingParameters::temperature, .minimum = 0, .maximum = kFarthestSampling, .negative_is_zero = true,
     .help = "temperature; 0: always the most likely token (0.8; the bundled model: 0)"},
    {.name = "dynatemp_range", .aliases = "", .flags = "--dynatemp-range", .step = SamplingStep::kTemperature,
     .number = &SamplingParameters::temperature_range, .minimum = 0, .maximum = kFarthestSampling, .negative_is_zero = true,
     .off = SamplingOff::kEqual, .help = "temperature by entropy, so much below --temp where it is low, so much above where it is high; 0: off (0)"},
    {.name = "dynatemp_exponent", .aliases = "", .flags = "--dynatemp-exp", .step = SamplingStep::kTemperature,
     .number = &SamplingParameters::temperature_exponent, .minimum = 0, .maximum = kFarthestSampling,
     .help = "power of the entropy's share in --dynatemp-range (1)"},
    {.name = "top_k", .aliases = "", .flags = "--top-k", .step = SamplingStep::kTopK,
     .integer = &SamplingParameters::top_k, .minimum = -1, .maximum = kAnyInteger,
     .off = SamplingOff::kAtMost, .help = "sample from the N most likely tokens; 0: from all (40)"},
    {.name = "top_p", .aliases = "", .flags = "--top-p", .step = SamplingStep::kTopP,
     .number = &SamplingParameters::top_p, .minimum = 0, .maximum = 1,
     .off = SamplingOff::kEqual, .off_value = 1, .help = "sample from the smallest set of probability X; 1: off (0.95)"},
    {.name = "min_p", .aliases = "", .flags = "--min-p", .step = SamplingStep::kMinP,
     .number = &SamplingParameters::min_p, .minimum = 0, .maximum = 1,
     .off = SamplingOff::kEqual, .help = "sample from tokens with at least X times the largest probability; 0: off (0.05)"},
    {.name = "typical_p", .aliases = "typ_p typical", .flags = "--typical --typical-p", .step = SamplingStep::kTypical,
     .number = &SamplingParameters::typical_p, .minimum = 0, .maximum = 1,
     .off = SamplingOff::kEqual, .off_value = 1, .help = "locally typical sampling; 1: off (1)"},
    {.name = "top_n_sigma", .aliases = "nsigma", .flags = "--top-n-sigma --top-nsigma", .step = SamplingStep::kTopNSigma,
     .number = &SamplingParameters::top_n_sigma, .minimum = -kFarthestSampling, .maximum = kFarthestSampling,
     .off = SamplingOff::kAtMost, .help = "sample from tokens at most X standard deviations of the logits below the best; 0 and less: off (-1)"},
    {.name = "xtc_probability", .aliases = "", .flags = "--xtc-probability", .step = SamplingStep::kXtc,
     .number = &SamplingParameters::xtc_probability, .minimum = 0, .maximum = 1,
     .off = SamplingOff::kEqual, .help = "with probability X leave out all tokens above --xtc-threshold but the least likely of them; 0: off (0)"},
    {.name = "xtc_threshold", .aliases = "", .flags = "--xtc-threshold", .step = SamplingStep::kXtc,
     .number = &SamplingParameters::xtc_threshold, .minimum = 0, .maximum = 1,
     .help = "probability of tokens that --xtc-probability leaves out; above 0.5: none (0.1)"},
    {.name = "repeat_last_n", .aliases = "rep_pen_range repetition_penalty_range", .flags = "--repeat-last-n", .step = SamplingStep::kPenalties,
     .integer = &SamplingParameters::penalty_last_n, .minimum = -1, .maximum = kLongestWindow,
     .help = "number of last tokens that penalties consider; -1: all (64)"},
    {.name = "repeat_penalty", .aliases = "repetition_penalty rep_pen", .flags = "--repeat-penalty", .step = SamplingStep::kPenalties,
     .number = &SamplingParameters::repetition_penalty, .minimum = 1e-6, .maximum = kFarthestSampling,
     .off = SamplingOff::kEqual, .off_value = 1, .help = "penalty of repeated tokens; 1: off (1)"},
    {.name = "presence_penalty", .aliases = "", .flags = "--presence-penalty", .step = SamplingStep::kPenalties,
     .number = &SamplingParameters::presence_penalty, .minimum = -kFarthestSampling, .maximum = kFarthestSampling,
     .off = SamplingOff::kEqual, .help = "penalty of tokens that have occurred; 0: off (0)"},
    {.name = "frequency_penalty", .aliases = "", .flags = "--frequency-penalty", .step = SamplingStep::kPenalties,
     .number = &SamplingParameters::frequency_penalty, .minimum = -kFarthestSampling, .maximum = kFarthestSampling,
     .off = SamplingOff::kEqual, .help = "penalty for each occurrence of a token; 0: off (0)"},
    {.name = "dry_multiplier", .aliases = "", .flags = "--dry-multiplier", .step = SamplingStep::kDry,
     .number = &SamplingParameters::dry_multiplier, .minimum = -kFarthestSampling, .maximum = kFarthestSampling,
     .off = SamplingOff::kEqual, .help = "DRY: penalty of a token that would continue a repetition; 0: off (0)"},
    {.name = "dry_base", .aliases = "", .flags = "--dry-base", .step = SamplingStep::kDry,
     .number = &SamplingParameters::dry_base, .minimum = 0, .maximum = kFarthestSampling,
     .help = "DRY: the penalty grows by this factor with each token of the repetition; from 1 on (1.75)"},
    {.name = "dry_allowed_length", .aliases = "", .flags = "--dry-allowed-length", .step = SamplingStep::kDry,
     .integer = &SamplingParameters::dry_allowed_length, .minimum = 0, .maximum = kAnyInteger,
     .help = "DRY: repetitions of fewer tokens are not penalised (2)"},
    {.name = "dry_penalty_last_n", .aliases = "", .flags = "--dry-penalty-last-n", .step = SamplingStep::kDry,
     .integer = &SamplingParameters::dry_last_n, .minimum = -1, .maximum = kLongestWindow,
     .help = "DRY: number of last tokens in which repetitions are looked for; -1: all (64)"},
    {.name = "adaptive_target", .aliases = "", .flags = "--adaptive-target", .step = SamplingStep::kAdaptiveP,
     .number = &SamplingParameters::adaptive_target, .minimum = -kFarthestSampling, .maximum = 1,
     .off = SamplingOff::kBelow, .help = "adaptive-p: prefer tokens near this probability; below 0: off (-1)"},
    {.name = "adaptive_decay", .aliases = "", .flags = "--adaptive-decay", .step = SamplingStep::kAdaptiveP,
     .number = &SamplingParameters::adaptive_decay, .minimum = 0, .maximum = 0.99,
     .help = "adaptive-p: how slowly it forgets the tokens before, 0 to 0.99 (0.9)"},
    {.name = "mirostat", .aliases = "mirostat_mode", .flags = "--mirostat", .step = std::nullopt,
     .integer = &SamplingParameters::mirostat, .minimum = 0, .maximum = 2,
     .off = SamplingOff::kEqual, .help = "1, 2: Mirostat of this version, after penalties, DRY and temperature; other samplers are left out; 0: off (0)"},
    {.name = "mirostat_tau", .aliases = "", .flags = "--mirostat-ent", .step = std::nullopt,
     .number = &SamplingParameters::mirostat_tau, .minimum = 0, .maximum = kFarthestSampling,
     .help = "Mirostat: the surprise that is aimed at, in bits (5)"},
    {.name = "mirostat_eta", .aliases = "", .flags = "--mirostat-lr", .step = std::nullopt,
     .number = &SamplingParameters::mirostat_eta, .minimum = 0, .maximum = kFarthestSampling,
     .help = "Mirostat: learning rate (0.1)"},
    {.name = "min_keep", .aliases = "", .flags = "", .step = std::nullopt,
     .integer = &SamplingParameters::min_keep, .minimum = 0, .maximum = kAnyInteger,
     .help = "tokens that typ_p, top_p, min_p and xtc leave at least"},
});
// clang-format on

// The words of SamplingField::aliases.
std::vector<std::string_view> aliases_of(const SamplingField& field);

// By name or alias, nullptr if there is none.
constexpr const SamplingField* find_sampling_field(std::string_view name) noexcept {
    for (const SamplingField& field : kSamplingFields) {
        if (field.name == name) return &field;
        for (std::string_view rest = field.aliases; !rest.empty();) {
            const size_t end = std::min(rest.find(' '), rest.size());
            if (rest.substr(0, end) == name) return &field;
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    return nullptr;
}

// Throws Error(TSR_INVALID_ARGUMENT) that names the parameter, what was expected and what was found.
void check_sampling_parameters(const SamplingParameters& parameters, size_t vocabulary_size);

}  // namespace tessera::session
