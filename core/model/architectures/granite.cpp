// Granite 3 and 4, dense: Llama whose embeddings, residuals, scores and logits are scaled.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNorm);
    model.or_said("attention.scale", model.find_number("attention.scale"), attention.scale);
    common.model.layers = make_layers(model, common, attention, std::nullopt, common.layers);
    read_scales(model, common.model);
    return common.model;
}

}  // namespace

extern const Architecture granite;
const Architecture granite{{"granite"}, describe, {}};

}  // namespace tessera::architectures
