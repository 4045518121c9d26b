#include "core/model/model.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/model/architectures.hpp"
#include "core/model/build_graph.hpp"
#include "core/model/plugin_architecture.hpp"
#include "core/model/prediction_layer.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tessera {
namespace {

// GGUF files hold other things, too, which name the architecture of the model that they belong to.
void check_type(const ModelFile& model) {
    const auto type = model.metadata().find_string("general.type");
    if (!type || *type == "model") return;
    fail(TSR_UNSUPPORTED, "{}: general.type is '{}': expected a model; what belongs to one is not read", model.source(),
         printable(*type, 40));
}

// One of the core's own, or one of a plugin's.
struct Chosen {
    const Architecture* own = nullptr;
    std::optional<PluginArchitecture> of_plugin;
};

std::string known_names(const Registry& registry) {
    std::vector<std::string_view> names;
    for (const Architecture* own : own_architectures()) {
        for (const std::string_view name : own->names) {
            if (!name.empty()) names.push_back(name);
        }
    }
    for (const tsr_architecture* one : registry.architectures()) names.emplace_back(one->name);
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    return fmt::format("{}", fmt::join(names, ", "));
}

// Where both know a name it is the core's, unless the configuration prefers the plugin.
Chosen find_architecture(const ModelFile& model, const Registry& registry) {
    check_type(model);
    const auto all = own_architectures();
    const auto own =
        std::ranges::find_if(all, [&](const Architecture* a) { return a->has_name(model.architecture()); });
    const tsr_architecture* const other = registry.find_architecture(model.architecture());
    if (other && (own == all.end() || registry.preference(*other) != registry.no_preference()))
        return {nullptr, PluginArchitecture(*other, registry)};
    if (own != all.end()) return {*own, std::nullopt};
    fail(TSR_UNSUPPORTED,
         "{}: the architecture '{}' is not known; known are {}; a plugin can add it (docs/plugins.md, \"A model "
         "architecture\")",
         model.source(), printable(model.architecture(), 80), known_names(registry));
}

// Nothing needs it, so that it may be broken: converters cut names of a fixed length within a character.
std::string model_name(const gguf::Metadata& metadata) {
    const gguf::Value* value = metadata.find("general.name");
    const auto* name = value ? std::get_if<std::string>(value) : nullptr;
    if (!name) return "";
    return is_utf8(*name) ? *name : printable(*name);
}

ModelInfo named_info(const ModelFile& model) {
    ModelInfo info;
    info.architecture = model.architecture();
    info.name = model_name(model.metadata());
    return info;
}

ModelInfo info_of(const ModelDescription& described, const ModelFile& model) {
    ModelInfo info = named_info(model);
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

ModelInfo info_of(const PluginArchitecture& architecture, ModelFile& model) {
    ModelInfo info = named_info(model);
    architecture.measure(model, info);
    return info;
}

BuiltModel build_prediction(const Architecture& own, ModelFile& model, std::shared_ptr<OpSet> ops,
                            const GraphLimits& limits) {
    const ModelDescription described = describe_prediction_layer(own.describe(model), model);
    Graph graph = build_graph(described, model, *ops, limits);
    // What the file is read with is said of the model.
    std::vector<std::string> notes = check_prediction_tensors(described, model, limits.allow_unused);
    return {std::move(ops), std::move(graph), std::move(notes)};
}

}  // namespace

ModelInfo read_model_info(const gguf::GgufFile& file, const Registry& registry) {
    ModelFile model(file);
    const Chosen chosen = find_architecture(model, registry);
    return chosen.own ? info_of(chosen.own->describe(model), model) : info_of(*chosen.of_plugin, model);
}

namespace {

// The error of an op that no plugin provides, with the plugin that has it and the reason why that is not used.
Error with_missing_plugin(const Error& error, const Registry& registry) {
    for (const PluginRecord& record : registry.plugins()) {
        if (record.table || !record.manifest.ops) continue;
        for (const std::string& op : *record.manifest.ops) {
            if (std::string_view(error.what()).find(fmt::format("no op '{}'", op)) == std::string_view::npos) continue;
            return {error.code(), fmt::format("{}; the plugin {} has it, but is not used: {}", error.what(),
                                              record.manifest.name, record.reason)};
        }
    }
    return error;
}

BuiltModel build_with(const gguf::GgufFile& file, const Registry& registry, const GraphLimits& limits) {
    auto ops = std::make_shared<OpSet>();
    for (const tsr_operator* op : registry.operators()) ops->add(op, registry.owner(*op).table->name);
    ModelFile model(file);
    const Chosen chosen = find_architecture(model, registry);
    if ((limits.states || limits.prediction) && !chosen.own)
        fail(TSR_UNSUPPORTED,
             "{}: layers that predict further tokens are not computed of a plugin's architecture ('{}')",
             model.source(), printable(model.architecture(), 80));
    if (limits.prediction) return build_prediction(*chosen.own, model, std::move(ops), limits);
    if (chosen.of_plugin)
        model.note(fmt::format("the architecture '{}' is that of the plugin {}", model.architecture(),
                               chosen.of_plugin->plugin()));
    BuiltModel built{ops,
                     chosen.own ? build_graph(chosen.own->describe(model), model, *ops, limits)
                                : chosen.of_plugin->build(model, info_of(*chosen.of_plugin, model), *ops, limits),
                     {}};
    built.notes = check_unused(model, chosen.own ? chosen.own->unused : KnownUnused{}, limits.allow_unused);
    for (std::string& note : model.take_notes()) built.notes.push_back(std::move(note));
    return built;
}

}  // namespace

BuiltModel build_model(const gguf::GgufFile& file, const Registry& registry, const GraphLimits& limits) {
    try {
        return build_with(file, registry, limits);
    } catch (const Error& error) {
        if (error.code() != TSR_NOT_FOUND) throw;
        throw with_missing_plugin(error, registry);
    }
}

}  // namespace tessera
