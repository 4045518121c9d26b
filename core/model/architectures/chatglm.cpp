// ChatGLM3 and GLM-4 (9B): q, k and v are one matrix, and gate and up, too; a half of each head is rotated.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_chatglm(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_partly_rotated_attention(model, common, RopeMode::kNorm);
    common.model.layers = make_layers(model, common, attention);
    for (Layer& layer : common.model.layers) layer.feed_forward.fused_gate_up = true;
    return common.model;
}

}  // namespace

extern const Architecture chatglm;
const Architecture chatglm{{"chatglm"}, describe_chatglm, {}};

}  // namespace tessera::architectures
