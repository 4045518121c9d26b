// Seed-OSS: grouped queries whose projections have biases.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_seed_oss(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    common.model.layers = make_layers(model, common, attention);
    common.model.names[ModelTensor::kFeedForwardNorm] = "post_attention_norm.weight";
    return common.model;
}

}  // namespace

extern const Architecture seed_oss;
const Architecture seed_oss{{"seed_oss"}, describe_seed_oss, {}};

}  // namespace tessera::architectures
