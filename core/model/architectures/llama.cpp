// Llama and what follows its shape: grouped queries, and dense feed-forward networks or, as in Mixtral, experts in
// every layer.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

// Llama 3.1 and later divide frequencies by factors that lie in the file; some converters left them out.
void check_rope_factors(ModelFile& model, const Rope& rope, int64_t context) {
    constexpr double kBaseOfLlama3 = 500000;
    constexpr int64_t kContextOfLlama3 = 8192;
    if (rope.base == kBaseOfLlama3 && context != kContextOfLlama3 &&
        !model.has_tensor(tensor_name(ModelTensor::kRopeFactors).name))
        model.note("rope_freqs.weight is not in the file; files of Llama 3.1 and later have it");
}

ModelDescription describe_llama(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNorm);
    const auto experts = read_experts(model, common.layers, {.normalize = true, .length = common.feed_forward});
    check_rope_factors(model, *attention.rope, common.model.context);
    common.model.layers = make_layers(model, common, attention, experts, 0);
    read_windows(model, common.model.layers, 0);
    return common.model;
}

}  // namespace

extern const Architecture llama;
const Architecture llama{{"llama"}, describe_llama, {}};

}  // namespace tessera::architectures
