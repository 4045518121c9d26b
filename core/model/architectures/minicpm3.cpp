// MiniCPM3 (arXiv 2404.06395): latent attention whose rope turns halves, LongRoPE's factors, and embeddings, residuals
// and logits that are scaled.
#include "core/model/architectures.hpp"

#include <cmath>
#include <string_view>

namespace tessera::architectures {
namespace {

// Two tables of factors; the file may have neither.
void read_rope_tables(ModelFile& model, Rope& rope, int64_t context) {
    if (!model.has_tensor(tensor_name(TensorPart::kRopeFactorsShort).name) &&
        !model.has_tensor(tensor_name(TensorPart::kRopeFactorsLong).name))
        return;
    constexpr std::string_view kTrained = "rope.scaling.original_context_length";
    rope.short_context = model.or_said(kTrained, model.find_count(kTrained), context);
}

ModelDescription describe(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention =
        read_latent_attention(model, common, {RopeMode::kNeox, common.model.embedding / common.heads});
    read_rope_tables(model, *attention.rope, common.model.context);
    common.model.layers = make_layers(model, common, attention);

    // Converters do not write what the models are scaled with, and runtimes know it: scale_emb, scale_depth and
    // dim_model_base of MiniCPM3-4B. The last is a divisor, as in files of the architecture "minicpm".
    constexpr double kEmbeddings = 12, kDepth = 1.4, kBase = 256;
    const auto scale = [&](const char* key, double otherwise) {
        return model.or_said(key, model.find_positive(key), otherwise);
    };
    common.model.embedding_scale = scale("embedding_scale", kEmbeddings);
    const double residual = scale("residual_scale", kDepth / std::sqrt(static_cast<double>(common.layers)));
    for (Layer& layer : common.model.layers) layer.residual_scale = residual;
    common.model.logit_scale = 1 / scale("logit_scale", static_cast<double>(common.model.embedding) / kBase);
    return common.model;
}

}  // namespace

extern const Architecture minicpm3;
const Architecture minicpm3{{"minicpm3"}, describe, {}};

}  // namespace tessera::architectures
