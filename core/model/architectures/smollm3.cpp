// SmolLM3: every fourth layer has no rotary embedding (NoPE, arXiv 2501.18795).
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_smollm3(ModelFile& model) {
    constexpr size_t kWithoutPositions = 4;
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNorm);
    common.model.layers = make_layers(model, common, attention);
    for (size_t i = kWithoutPositions - 1; i < common.model.layers.size(); i += kWithoutPositions)
        common.model.layers[i].attention.rope.reset();
    return common.model;
}

}  // namespace

extern const Architecture smollm3;
const Architecture smollm3{{"smollm3"}, describe_smollm3, {}};

}  // namespace tessera::architectures
