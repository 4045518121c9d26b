// GLM-4.5, 4.6, 4.7 and Air: grouped queries with biases, of whose heads a part is rotated, the large ones with
// normalised heads; experts after a few dense layers.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_glm4moe(ModelFile& model) {
    CommonParameters common = read_common(model);
    common.layers -= read_prediction_layers(model, common.layers);
    Attention attention = read_partly_rotated_attention(model, common, RopeMode::kNeox);
    if (model.has_tensor(in_layer(0, tensor_name(ModelTensor::kQNorm).name))) attention.head_norm = HeadNorm::kHeads;
    common.model.layers = make_expert_layers(model, common, attention, {.gating = Gating::kSigmoid});
    describe_prediction(common);
    common.model.names[ModelTensor::kFeedForwardNorm] = "post_attention_norm.weight";
    return common.model;
}

}  // namespace

extern const Architecture glm4moe;
const Architecture glm4moe{{"glm4moe"}, describe_glm4moe, {}};

}  // namespace tessera::architectures
