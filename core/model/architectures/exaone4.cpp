// EXAONE 4.0: normalised heads; what attention and feed-forward give is normalised, but not what they read. Of those
// with windows (32B) the layers without one, each fourth, encode no positions.
#include "core/model/architectures.hpp"

#include <algorithm>

namespace tessera::architectures {
namespace {

constexpr size_t kWindowsOfExaone4 = 4;  // layers, of which the last sees all tokens

ModelDescription describe_exaone4(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    common.model.layers = make_layers(model, common, attention);
    read_windows(model, common.model.layers, kWindowsOfExaone4);
    const bool windows =
        std::ranges::any_of(common.model.layers, [](const Layer& layer) { return layer.attention.window > 0; });
    for (Layer& layer : common.model.layers) {
        if (windows && layer.attention.window == 0) layer.attention.rope.reset();
        layer.norm_before = false;
        layer.norm_after = true;
    }
    return common.model;
}

}  // namespace

extern const Architecture exaone4;
const Architecture exaone4{{"exaone4"}, describe_exaone4, {}};

}  // namespace tessera::architectures
