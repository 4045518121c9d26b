// dots.llm1: normalised heads; experts, some of them shared, after a dense layer.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_dots1(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    common.model.layers = make_expert_layers(model, common, attention, {});
    return common.model;
}

}  // namespace

extern const Architecture dots1;
const Architecture dots1{{"dots1"}, describe_dots1, {}};

}  // namespace tessera::architectures
