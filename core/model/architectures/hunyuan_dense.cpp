// Hunyuan, dense: heads are normalised after the rotary embedding.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_hunyuan_dense(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    attention.norm_after_rope = true;
    common.model.layers = make_layers(model, common, attention);
    return common.model;
}

}  // namespace

extern const Architecture hunyuan_dense;
const Architecture hunyuan_dense{{"hunyuan-dense"}, describe_hunyuan_dense, {}};

}  // namespace tessera::architectures
