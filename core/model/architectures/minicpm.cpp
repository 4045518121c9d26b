// MiniCPM 1, 2 and 4 (arXiv 2404.06395): Llama whose embeddings, residuals and logits are scaled, LongRoPE's factors.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_minicpm(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNorm);
    read_rope_tables(model, *attention.rope, common.model.context);
    common.model.layers = make_layers(model, common, attention);
    read_minicpm_scales(model, common.model);
    return common.model;
}

}  // namespace

extern const Architecture minicpm;
const Architecture minicpm{{"minicpm"}, describe_minicpm, {}};

}  // namespace tessera::architectures
