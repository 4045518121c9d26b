// Qwen3 with experts: grouped queries with normalised heads, experts in every layer. The text of
// Qwen3-VL.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_qwen3moe(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    // Converters of others may leave out the length of an expert, which is a share of the dense one then.
    const int64_t used = model.find_count("expert_used_count", 0).value_or(0);
    const Experts experts =
        read_needed_experts(model, common, {.normalize = true, .length = used > 0 ? common.feed_forward / used : 0});
    common.model.layers = make_layers(model, common, attention, experts, 0);
    read_windows(model, common.model.layers, 0);
    return common.model;
}

constexpr KeyRule kKeysOfQwen3Moe[] = {
    {"rope.dimension_sections", "*", "of text, all sections have the same position"},
    {"n_deepstack_layers", "*", "images are not computed", true},
};

}  // namespace

extern const Architecture qwen3moe;
const Architecture qwen3moe{{"qwen3moe", "qwen3vlmoe"}, describe_qwen3moe, {{}, kKeysOfQwen3Moe}};

}  // namespace tessera::architectures
