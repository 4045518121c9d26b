// Hunyuan with experts (A13B): heads are normalised after the rotary embedding; one shared expert.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_hunyuan_moe(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    attention.norm_after_rope = true;
    Experts experts = read_needed_experts(model, common, {.normalize = true});
    experts.shared_length = read_shared_experts(model, 0, common.layers, experts);
    common.model.layers = make_layers(model, common, attention, experts, 0);
    return common.model;
}

}  // namespace

extern const Architecture hunyuan_moe;
const Architecture hunyuan_moe{{"hunyuan-moe"}, describe_hunyuan_moe, {}};

}  // namespace tessera::architectures
