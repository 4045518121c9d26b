// Ling 2 and Ring 2 (Bailing MoE 2): normalised heads of which a half is rotated; groups of experts with sigmoids after
// dense layers. Layers that predict further tokens are not used.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_bailingmoe2(ModelFile& model) {
    CommonParameters common = read_common(model);
    common.layers -= read_prediction_layers(model, common.layers);
    Attention attention = read_partly_rotated_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    common.model.layers = make_expert_layers(model, common, attention, {});
    return common.model;
}

}  // namespace

extern const Architecture bailingmoe2;
const Architecture bailingmoe2{{"bailingmoe2"}, describe_bailingmoe2, {}};

}  // namespace tessera::architectures
