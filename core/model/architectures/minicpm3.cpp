// MiniCPM3 (arXiv 2404.06395): latent attention whose rope turns halves, LongRoPE's factors, and embeddings, residuals
// and logits that are scaled.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_minicpm3(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention =
        read_latent_attention(model, common, {RopeMode::kNeox, common.model.embedding / common.heads});
    read_rope_tables(model, *attention.rope, common.model.context);
    common.model.layers = make_layers(model, common, attention);
    read_minicpm_scales(model, common.model);
    return common.model;
}

}  // namespace

extern const Architecture minicpm3;
const Architecture minicpm3{{"minicpm3"}, describe_minicpm3, {}};

}  // namespace tessera::architectures
