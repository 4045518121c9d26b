#include "core/model/model_file.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

namespace tessera {
namespace {

// Numbers by which files say that a key has no value, as if it were missing.
struct NotGiven {
    std::string_view name;
    bool zero, negative;
};
constexpr NotGiven kNotGiven[] = {
    {"attention.scale", true, false},
    {"attention.sliding_window", true, true},
    {"expert_gating_func", true, false},
    {"expert_weights_scale", true, false},
    {"rope.scale_linear", true, false},
    {"rope.scaling.attn_factor", true, false},
    {"rope.scaling.factor", true, false},
    {"rope.scaling.original_context_length", true, true},
    {"rope.scaling.yarn_attn_factor", true, false},
    {"rope.scaling.yarn_beta_fast", false, true},
    {"rope.scaling.yarn_beta_slow", false, true},
    {"rope.scaling.yarn_ext_factor", false, true},
};

bool is_number_not_given(const NotGiven& rule, const gguf::Value& value) {
    return std::visit(
        [&](const auto& number) {
            using T = std::decay_t<decltype(number)>;
            if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
                return (rule.zero && number == T{0}) || (rule.negative && number < T{0});
            else
                return false;
        },
        value);
}

}  // namespace

ModelFile::ModelFile(const gguf::GgufFile& file)
    : file_(file), architecture_(file.metadata().get_string("general.architecture")) {}

bool ModelFile::is_given(std::string_view name) const {
    const gguf::Value* value = metadata().find(key(name));
    const auto* rule = std::ranges::find(kNotGiven, name, &NotGiven::name);
    return value && (rule == std::end(kNotGiven) || !is_number_not_given(*rule, *value));
}

std::string ModelFile::read_key(std::string_view name) {
    std::string full = key(name);
    read_.insert(full);
    return full;
}

std::optional<int64_t> ModelFile::find_count(std::string_view name, int64_t minimum) {
    const std::string full = read_key(name);
    if (!is_given(name)) return std::nullopt;
    const gguf::Value* found = metadata().find(full);
    uint64_t value = 0;
    if (const auto* array = std::get_if<gguf::Array>(found); array && gguf::array_size(*array) > 0) {
        // Throws if that is an array itself.
        check_elements(full, *array, metadata().get_u64(key("block_count")));
        const auto values = metadata().get_array<uint64_t>(full);
        value = values.front();
        if (std::ranges::any_of(values, [&](uint64_t other) { return other != value; })) {
            fail(TSR_UNSUPPORTED, "{}: {} differs from layer to layer ({}), which this version does not compute",
                 source(), full, gguf::to_text(*found));
        }
    } else {
        value = metadata().get_u64(full);
    }
    return checked_count(full, value, minimum);
}

std::optional<std::vector<int64_t>> ModelFile::find_counts(std::string_view name, size_t count, int64_t minimum) {
    const std::string full = read_key(name);
    if (!is_given(name)) return std::nullopt;
    const auto* array = std::get_if<gguf::Array>(metadata().find(full));
    if (!array) return std::vector<int64_t>(count, checked_count(full, metadata().get_u64(full), minimum));
    check_elements(full, *array, count);
    std::vector<int64_t> counts;
    for (const uint64_t value : metadata().get_array<uint64_t>(full))
        counts.push_back(checked_count(full, value, minimum));
    return counts;
}

std::optional<std::vector<bool>> ModelFile::find_pattern(std::string_view name, size_t count) {
    const std::string full = read_key(name);
    if (!is_given(name)) return std::nullopt;
    std::vector<bool> pattern(count);
    const auto* array = std::get_if<gguf::Array>(metadata().find(full));
    if (!array) {
        const auto every = static_cast<size_t>(checked_count(full, metadata().get_u64(full), 0));
        for (size_t i = 0; i < count; ++i) pattern[i] = every == 0 || i % every + 1 < every;
        return pattern;
    }
    check_elements(full, *array, count);
    if (const auto* booleans = std::get_if<std::vector<bool>>(array)) return *booleans;
    const auto numbers = metadata().get_array<uint64_t>(full);
    for (size_t i = 0; i < count; ++i) pattern[i] = numbers[i] != 0;
    return pattern;
}

void ModelFile::check_elements(const std::string& full_key, const gguf::Array& array, uint64_t count) const {
    if (gguf::array_size(array) == count) return;
    fail(TSR_CORRUPT_DATA, "{}: {} has {} elements; expected a number, or {} of them", source(), full_key,
         gguf::array_size(array), count);
}

int64_t ModelFile::checked_count(const std::string& full_key, uint64_t value, int64_t minimum) const {
    constexpr auto kMost = std::numeric_limits<int32_t>::max();
    if (std::cmp_less(value, minimum) || std::cmp_greater(value, kMost))
        fail(TSR_CORRUPT_DATA, "{}: {} is {}; expected {} to {}", source(), full_key, value, minimum, kMost);
    return static_cast<int64_t>(value);
}

int64_t ModelFile::get_count(std::string_view name, int64_t minimum) {
    if (const auto value = find_count(name, minimum)) return *value;
    fail(TSR_NOT_FOUND, "{}: key '{}' is missing", source(), key(name));
}

std::optional<double> ModelFile::find_number(std::string_view name) {
    const std::string full = read_key(name);
    if (!is_given(name)) return std::nullopt;
    const auto value = metadata().find_f32(full);
    if (value && !std::isfinite(*value))
        fail(TSR_CORRUPT_DATA, "{}: {} is {}; a finite number is needed", source(), full, *value);
    return value;
}

std::optional<double> ModelFile::find_positive(std::string_view name) {
    const auto value = find_number(name);
    if (value && !(*value > 0))
        fail(TSR_CORRUPT_DATA, "{}: {} is {}; a positive number is needed", source(), key(name), *value);
    return value;
}

double ModelFile::get_positive(std::string_view name) {
    if (const auto value = find_positive(name)) return *value;
    fail(TSR_NOT_FOUND, "{}: key '{}' is missing", source(), key(name));
}

std::optional<std::vector<double>> ModelFile::find_numbers(std::string_view name, size_t count) {
    const std::string full = read_key(name);
    if (!is_given(name)) return std::nullopt;
    std::vector<double> numbers;
    if (const auto* array = std::get_if<gguf::Array>(metadata().find(full))) {
        check_elements(full, *array, count);
        const auto values = metadata().get_array<float>(full);
        numbers.assign(values.begin(), values.end());
    } else {
        numbers.assign(count, metadata().find_f32(full).value_or(0));
    }
    for (const double number : numbers) {
        if (!std::isfinite(number) || number < 0)
            fail(TSR_CORRUPT_DATA, "{}: {} has {}; finite numbers from 0 are needed", source(), full, number);
    }
    return numbers;
}

std::optional<bool> ModelFile::find_bool(std::string_view name) {
    return metadata().find_bool(read_key(name));
}

std::optional<std::string_view> ModelFile::find_text(std::string_view name) {
    return metadata().find_string(read_key(name));
}

void ModelFile::say_default(std::string_view name, std::string_view taken) {
    std::string text = fmt::format("{} {}", key(name), taken);
    if (std::ranges::find(defaults_, text) == defaults_.end()) defaults_.push_back(std::move(text));
}

const gguf::TensorEntry* ModelFile::claim_tensor(std::string_view name) {
    const gguf::TensorEntry* entry = file_.find_tensor(name);
    if (entry) claimed_.insert(entry->name);
    return entry;
}

void ModelFile::note(std::string_view line) {
    notes_.emplace_back(line);
}

std::vector<std::string> ModelFile::take_notes() {
    std::vector<std::string> notes = std::move(notes_);
    if (!defaults_.empty())
        notes.push_back(fmt::format("taken where the file says nothing: {}", fmt::join(defaults_, ", ")));
    return notes;
}

}  // namespace tessera
