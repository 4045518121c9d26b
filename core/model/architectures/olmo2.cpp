// OLMo 2: rows of q and k are normalised, and what attention and feed-forward give, but not what they read.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_olmo2(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kRows;
    common.model.layers = make_layers(model, common, attention);
    for (Layer& layer : common.model.layers) {
        layer.norm_before = false;
        layer.norm_after = true;
    }
    return common.model;
}

}  // namespace

extern const Architecture olmo2;
const Architecture olmo2{{"olmo2"}, describe_olmo2, {}};

}  // namespace tessera::architectures
