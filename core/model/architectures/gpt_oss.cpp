// gpt-oss: biases everywhere, a sink for each head, a window in every second layer, experts with a clamped activation.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_gpt_oss(ModelFile& model) {
    constexpr size_t kWindowsOf = 2;  // layers, of which the last sees all tokens
    constexpr double kLimit = 7;      // of gate and up, which files do not say
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.sinks = true;
    attention.rope->whole_ramp = false;
    Experts experts = read_needed_experts(model, common, {.normalize = true, .gating = Gating::kSoftmax});
    experts.biased = true;
    experts.unit = {Activation::kSwigluOai, kLimit};
    common.model.layers = make_layers(model, common, attention, experts);
    model.get_count("attention.sliding_window");
    read_windows(model, common.model.layers, kWindowsOf);
    common.model.names[ModelTensor::kFeedForwardNorm] = "post_attention_norm.weight";
    return common.model;
}

}  // namespace

extern const Architecture gpt_oss;
const Architecture gpt_oss{{"gpt-oss"}, describe_gpt_oss, {}};

}  // namespace tessera::architectures
