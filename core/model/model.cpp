#include "core/model/model.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/model/architectures.hpp"
#include "core/model/build_graph.hpp"

#include <algorithm>

namespace tessera {
namespace {

// GGUF files hold other things, too, which name the architecture of the model that they belong to.
void check_type(const ModelFile& model) {
    const auto type = model.metadata().find_string("general.type");
    if (!type || *type == "model") return;
    fail(TSR_UNSUPPORTED, "{}: general.type is '{}': expected a model; what belongs to one is not read", model.source(),
         printable(*type, 40));
}

const Architecture& find_architecture(const ModelFile& model) {
    check_type(model);
    const auto all = own_architectures();
    const auto at = std::ranges::find_if(all, [&](const Architecture* a) { return a->has_name(model.architecture()); });
    if (at != all.end()) return **at;
    std::string known;
    for (const Architecture* a : all) {
        for (const std::string_view name : a->names) {
            if (!name.empty()) known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
        }
    }
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

ModelInfo info_of(const ModelDescription& described, const ModelFile& model) {
    ModelInfo info;
    info.architecture = model.architecture();
    info.name = model_name(model.metadata());
    info.layers = static_cast<uint32_t>(described.layers.size());
    info.embedding = static_cast<uint32_t>(described.embedding);
    info.vocabulary = static_cast<uint32_t>(described.vocabulary);
    info.context = static_cast<uint32_t>(described.context);
    for (const Layer& layer : described.layers) {
        if (layer.attention.kind == AttentionKind::kLatent) info.latent_attention = true;
        if (layer.feed_forward.experts) info.experts_used = static_cast<uint32_t>(layer.feed_forward.experts->used);
    }
    return info;
}

}  // namespace

ModelInfo read_model_info(const gguf::GgufFile& file) {
    ModelFile model(file);
    return info_of(find_architecture(model).describe(model), model);
}

BuiltModel build_model(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits) {
    ModelFile model(file);
    const Architecture& architecture = find_architecture(model);
    BuiltModel built{build_graph(architecture.describe(model), model, ops, limits), {}};
    built.notes = check_unused(model, architecture.unused, limits.allow_unused);
    for (std::string& note : model.take_notes()) built.notes.push_back(std::move(note));
    return built;
}

}  // namespace tessera
