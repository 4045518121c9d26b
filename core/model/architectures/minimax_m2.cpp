// MiniMax M2: grouped queries, of whose heads a part is rotated; rows of q and k are normalised before they are heads.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_minimax_m2(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_partly_rotated_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kRows;
    const Experts experts = read_needed_experts(model, common, {.normalize = true, .gating = Gating::kSigmoid});
    common.model.layers = make_layers(model, common, attention, experts, 0);
    return common.model;
}

}  // namespace

extern const Architecture minimax_m2;
const Architecture minimax_m2{{"minimax-m2"}, describe_minimax_m2, {}};

}  // namespace tessera::architectures
