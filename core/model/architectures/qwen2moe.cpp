// Qwen1.5 and Qwen2 with experts: biases of q, k and v; what the shared expert gives is multiplied with the sigmoid of
// a number that its own gate gives.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_qwen2moe(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    const int64_t used = model.find_count("expert_used_count", 0).value_or(0);
    Experts experts = read_needed_experts(model, common, {.length = used > 0 ? common.feed_forward / used : 0});
    experts.shared_length = read_shared_experts(model, 0, common.layers, experts);
    experts.shared_gate = experts.shared_length > 0;
    common.model.layers = make_layers(model, common, attention, experts, 0);
    return common.model;
}

}  // namespace

extern const Architecture qwen2moe;
const Architecture qwen2moe{{"qwen2moe"}, describe_qwen2moe, {}};

}  // namespace tessera::architectures
