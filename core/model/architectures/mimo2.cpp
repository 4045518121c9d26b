// MiMo-V2-Flash (text): values shorter than keys, of which a third is rotated; most layers have a window, a sink for
// each head, further KV heads and a rotary embedding of their own; experts after a dense layer.
#include "core/base/error.hpp"
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_mimo2(ModelFile& model) {
    CommonParameters common = read_common(model);
    common.layers -= read_prediction_layers(model, common.layers);
    Attention attention = read_partly_rotated_attention(model, common, RopeMode::kNeox);
    attention.value_scale = model.or_said("attention.value_scale", model.find_positive("attention.value_scale"), 1.0);
    const Experts experts = read_needed_experts(model, common, {.normalize = true, .gating = Gating::kSigmoid});
    common.model.layers = make_layers(model, common, attention, experts);
    read_needed_windows(model, common.model.layers);
    Rope local = *attention.rope;
    local.base = model.get_positive("rope.freq_base_swa");
    for (int64_t i = 0; i < common.layers; ++i) {
        Layer& layer = common.model.layers[static_cast<size_t>(i)];
        if (layer.attention.window > 0) {
            layer.attention.rope = local;
            layer.attention.sinks = true;
        }
        // No key says which layers are dense.
        if (model.has_tensor(in_layer(i, tensor_name(ModelTensor::kRouter).name))) continue;
        layer.feed_forward.experts.reset();
        if (layer.feed_forward.length == 0)
            fail(TSR_NOT_FOUND, "{}: layer {} is dense, but key '{}' is missing or 0", model.source(), i,
                 model.key("feed_forward_length"));
    }
    return common.model;
}

}  // namespace

extern const Architecture mimo2;
const Architecture mimo2{{"mimo2"}, describe_mimo2, {}};

}  // namespace tessera::architectures
