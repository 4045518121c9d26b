#include "core/model/model.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/model/architectures.hpp"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

constexpr std::array<const Architecture*, 3> kArchitectures = {&kDeepseek2, &kQwen3moe, &kLlama};

// GGUF files hold other things, too, which name the architecture of the model that they belong to.
void check_type(const ModelFile& model) {
    const auto type = model.metadata().find_string("general.type");
    if (!type || *type == "model") return;
    fail(TSR_UNSUPPORTED, "{}: general.type is '{}': expected a model; what belongs to one is not read", model.source(),
         printable(*type, 40));
}

const Architecture& find_architecture(const ModelFile& model) {
    check_type(model);
    const auto at = std::ranges::find(kArchitectures, std::string_view(model.architecture()), &Architecture::name);
    if (at != kArchitectures.end()) return **at;
    std::string known;
    for (const Architecture* a : kArchitectures) known += fmt::format("{}{}", known.empty() ? "" : ", ", a->name);
    fail(TSR_UNSUPPORTED, "{}: the architecture '{}' is not known to this version; it knows {}", model.source(),
         model.architecture(), known);
}

// Nothing needs it, so that it may be broken: converters cut names of a fixed length within a character.
std::string model_name(const gguf::Metadata& metadata) {
    const gguf::Value* value = metadata.find("general.name");
    const auto* name = value ? std::get_if<std::string>(value) : nullptr;
    if (!name) return "";
    return is_utf8(*name) ? *name : printable(*name);
}

}  // namespace

ModelInfo read_model_info(const gguf::GgufFile& file) {
    ModelFile model(file);
    const Architecture& architecture = find_architecture(model);
    const CommonParameters common = read_common(model);
    ModelInfo info;
    info.architecture = common.architecture;
    info.name = model_name(file.metadata());
    info.layers = static_cast<uint32_t>(common.layers);
    info.embedding = static_cast<uint32_t>(common.embedding);
    info.vocabulary = static_cast<uint32_t>(common.vocabulary);
    info.context = static_cast<uint32_t>(common.context);
    if (model.find_count("expert_count", 0).value_or(0) > 0)
        info.experts_used = static_cast<uint32_t>(model.get_count("expert_used_count"));
    if (architecture.describe) architecture.describe(model, info);
    return info;
}

BuiltModel build_model(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits) {
    ModelFile model(file);
    const Architecture& architecture = find_architecture(model);
    BuiltModel built{architecture.build(model, ops, limits), {}};
    built.notes = check_unused(model, architecture.unused, limits.allow_unused);
    for (std::string& note : model.take_notes()) built.notes.push_back(std::move(note));
    return built;
}

}  // namespace tessera
