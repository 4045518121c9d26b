// dots.llm1: normalised heads; experts, some of them shared, after a dense layer.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    const int64_t dense = model.find_count("leading_dense_block_count", 0).value_or(0);
    Experts experts = read_needed_experts(model, common, {});
    experts.shared_length = read_shared_experts(model, dense, common.layers, experts);
    common.model.layers = make_layers(model, common, attention, experts, dense);
    return common.model;
}

}  // namespace

extern const Architecture dots1;
const Architecture dots1{{"dots1"}, describe, {}};

}  // namespace tessera::architectures
