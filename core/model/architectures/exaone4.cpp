// EXAONE 4.0 without windows (1.2B): normalised heads; what attention and feed-forward give is normalised, but not what
// they read.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    common.model.layers = make_layers(model, common, attention);
    for (Layer& layer : common.model.layers) {
        layer.norm_before = false;
        layer.norm_after = true;
    }
    return common.model;
}

}  // namespace

extern const Architecture exaone4;
const Architecture exaone4{{"exaone4"}, describe, {}};

}  // namespace tessera::architectures
