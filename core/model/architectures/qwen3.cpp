// Qwen3, dense: grouped queries with normalised heads.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    common.model.layers = make_layers(model, common, attention, std::nullopt, common.layers);
    return common.model;
}

}  // namespace

extern const Architecture qwen3;
const Architecture qwen3{{"qwen3"}, describe, {}};

}  // namespace tessera::architectures
