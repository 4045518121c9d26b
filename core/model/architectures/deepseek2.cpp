// DeepSeek-V2, V2-Lite, V2.5, V3, R1 (arXiv 2405.04434, 2412.19437): multi-head latent attention and many experts.
#include "core/model/architectures.hpp"

#include <algorithm>

namespace tessera::architectures {
namespace {

ModelDescription describe(ModelFile& model) {
    CommonParameters common = read_common(model);
    common.layers -= read_prediction_layers(model, common.layers);
    std::optional<Experts> experts = read_experts(model, common.layers, {});
    const int64_t leading = model.find_count("leading_dense_block_count", 0).value_or(0);
    const int64_t dense = experts ? std::min(leading, common.layers) : common.layers;
    const int64_t shared = read_shared_experts(model, dense, common.layers, experts.value_or(Experts{}));
    if (experts) experts->shared_length = shared;
    const Attention attention = read_latent_attention(model, common);
    common.model.layers = make_layers(model, common, attention, experts, dense);
    return common.model;
}

const UnusedTensors kTensors[] = {
    {R"(^blk\.\d+\.indexer\.)", "attention is dense: the indexer of sparse attention is not computed"},
};

constexpr KeyRule kKeys[] = {
    {"attention.indexer.*", "*", "the indexer is not computed", true},
};

}  // namespace

extern const Architecture deepseek2;
const Architecture deepseek2{{"deepseek2"}, describe, {kTensors, kKeys}};

}  // namespace tessera::architectures
