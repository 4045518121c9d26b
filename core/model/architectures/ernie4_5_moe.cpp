// ERNIE 4.5 with experts: in some of the layers after the leading ones, chosen by softmax with a bias on selection.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_ernie4_5_moe(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNorm);
    const int64_t dense = model.get_count("leading_dense_block_count", 0);
    const int64_t step = model.get_count("interleave_moe_layer_step");
    Experts experts = read_needed_experts(model, common, {.normalize = true, .gating = Gating::kSoftmax});
    const int64_t first = (dense + step) / step * step - 1;  // with experts
    experts.shared_length = read_shared_experts(model, first, common.layers, experts);
    common.model.layers = make_layers(model, common, attention, experts, dense, step);
    return common.model;
}

}  // namespace

extern const Architecture ernie4_5_moe;
const Architecture ernie4_5_moe{{"ernie4_5-moe"}, describe_ernie4_5_moe, {}};

}  // namespace tessera::architectures
