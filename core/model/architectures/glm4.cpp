// GLM-4 (0414) and GLM-Z1: norms before and after attention and feed-forward, biases of q, k and v, a half of each head
// is rotated; gate and up are one matrix.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_glm4(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_partly_rotated_attention(model, common, RopeMode::kNorm);
    common.model.layers = make_layers(model, common, attention);
    for (Layer& layer : common.model.layers) {
        layer.norm_after = true;
        layer.feed_forward.fused_gate_up = true;
    }
    return common.model;
}

}  // namespace

extern const Architecture glm4;
const Architecture glm4{{"glm4"}, describe_glm4, {}};

}  // namespace tessera::architectures
