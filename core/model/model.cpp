#include "core/model/model.hpp"

#include "core/base/error.hpp"
#include "core/model/architectures.hpp"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

struct Architecture {
    std::string_view name;
    void (*describe)(const gguf::GgufFile&, ModelInfo&);  // may be null
    Graph (*build)(const gguf::GgufFile&, const OpSet&, const GraphLimits&);
};

constexpr std::array kArchitectures = {
    Architecture{"deepseek2", describe_deepseek2, build_deepseek2},
    Architecture{"qwen3moe", nullptr, build_qwen3moe},
    Architecture{"llama", nullptr, build_llama},
};

const Architecture& find_architecture(const gguf::GgufFile& file) {
    const std::string_view name = file.metadata().get_string("general.architecture");
    const auto at = std::ranges::find(kArchitectures, name, &Architecture::name);
    if (at != kArchitectures.end()) return *at;
    std::string known;
    for (const Architecture& a : kArchitectures) known += fmt::format("{}{}", known.empty() ? "" : ", ", a.name);
    fail(TSR_UNSUPPORTED, "{}: the architecture '{}' is not known to this version; it knows {}",
         file.metadata().source(), name, known);
}

}  // namespace

ModelInfo read_model_info(const gguf::GgufFile& file) {
    const Architecture& architecture = find_architecture(file);
    const CommonParameters common = read_common(file);
    ModelInfo info;
    info.architecture = common.architecture;
    info.name = file.metadata().find_string("general.name").value_or("");
    info.layers = static_cast<uint32_t>(common.layers);
    info.embedding = static_cast<uint32_t>(common.embedding);
    info.vocabulary = static_cast<uint32_t>(common.vocabulary);
    info.context = static_cast<uint32_t>(common.context);
    if (file.metadata().find(common.architecture + ".expert_count")) {
        info.experts_used = static_cast<uint32_t>(read_experts(file.metadata(), common.architecture).used);
    }
    if (architecture.describe) architecture.describe(file, info);
    return info;
}

Graph build_model(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits) {
    return find_architecture(file).build(file, ops, limits);
}

}  // namespace tessera
