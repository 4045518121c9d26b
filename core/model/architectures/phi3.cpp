// Phi-3, 3.5 and 4: q, k and v are one matrix, and gate and up, too; some have LongRoPE's factors or a window.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_phi3(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    read_rope_tables(model, *attention.rope, common.model.context);
    if (attention.rope->short_context > 0 && !model.is_given("rope.scaling.attn_factor"))
        model.say_default("rope.scaling.attn_factor", "1");
    common.model.layers = make_layers(model, common, attention);
    read_windows(model, common.model.layers, 0);
    for (Layer& layer : common.model.layers) layer.feed_forward.fused_gate_up = true;
    return common.model;
}

}  // namespace

extern const Architecture phi3;
const Architecture phi3{{"phi3"}, describe_phi3, {}};

}  // namespace tessera::architectures
