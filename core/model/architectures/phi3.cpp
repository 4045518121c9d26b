// Phi-3, 3.5 and 4: q, k and v are one matrix, and gate and up, too. Those whose positions are scaled by longrope or
// that have a window are refused for these.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    common.model.layers = make_layers(model, common, attention);
    for (Layer& layer : common.model.layers) layer.feed_forward.fused_gate_up = true;
    return common.model;
}

}  // namespace

extern const Architecture phi3;
const Architecture phi3{{"phi3"}, describe, {}};

}  // namespace tessera::architectures
