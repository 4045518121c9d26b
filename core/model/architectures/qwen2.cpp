// Qwen2 and 2.5, QwQ, and what was distilled to them: grouped queries whose projections have
// biases. The text of Qwen2-VL and 2.5-VL.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_qwen2(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    common.model.layers = make_layers(model, common, attention);
    return common.model;
}

constexpr KeyRule kKeysOfQwen2[] = {
    {"rope.dimension_sections", "*", "of text, all sections have the same position"},
};

}  // namespace

extern const Architecture qwen2;
const Architecture qwen2{{"qwen2", "qwen2vl"}, describe_qwen2, {{}, kKeysOfQwen2}};

}  // namespace tessera::architectures
