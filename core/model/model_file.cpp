#include "core/model/model_file.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {

ModelFile::ModelFile(const gguf::GgufFile& file)
    : file_(file), architecture_(file.metadata().get_string("general.architecture")) {}

std::string ModelFile::read_key(std::string_view name) {
    std::string full = key(name);
    read_.insert(full);
    return full;
}

std::optional<int64_t> ModelFile::find_count(std::string_view name, int64_t minimum) {
    const std::string full = read_key(name);
    const gguf::Value* found = metadata().find(full);
    if (!found) return std::nullopt;
    uint64_t value = 0;
    if (const auto* array = std::get_if<gguf::Array>(found); array && gguf::array_size(*array) > 0) {
        constexpr size_t kMaxLayers = 1 << 16;
        if (gguf::array_size(*array) > kMaxLayers)
            fail(TSR_CORRUPT_DATA, "{}: {} has {} elements", source(), full, gguf::array_size(*array));
        const auto values = metadata().get_array<uint64_t>(full);
        value = values.front();
        if (std::ranges::any_of(values, [&](uint64_t other) { return other != value; })) {
            fail(TSR_UNSUPPORTED, "{}: {} differs from layer to layer ({}), which this version does not compute",
                 source(), full, gguf::to_text(*found));
        }
    } else {
        value = metadata().get_u64(full);
    }
    if (value < static_cast<uint64_t>(minimum) || value > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
        fail(TSR_CORRUPT_DATA, "{}: {} is {}; expected at least {}", source(), full, value, minimum);
    return static_cast<int64_t>(value);
}

int64_t ModelFile::get_count(std::string_view name, int64_t minimum) {
    if (const auto value = find_count(name, minimum)) return *value;
    fail(TSR_NOT_FOUND, "{}: key '{}' is missing", source(), key(name));
}

std::optional<double> ModelFile::find_number(std::string_view name) {
    const std::string full = read_key(name);
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
