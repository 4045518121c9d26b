// Qwen3, dense: grouped queries with normalised heads. The text of Qwen3-VL.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_qwen3(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    common.model.layers = make_layers(model, common, attention);
    read_windows(model, common.model.layers, 0);
    return common.model;
}

constexpr KeyRule kKeysOfQwen3[] = {
    {"rope.dimension_sections", "*", "of text, all sections have the same position"},
    {"n_deepstack_layers", "*", "images are not computed", true},
};

}  // namespace

extern const Architecture qwen3;
const Architecture qwen3{{"qwen3", "qwen3vl"}, describe_qwen3, {{}, kKeysOfQwen3}};

}  // namespace tessera::architectures
