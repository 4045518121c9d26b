// Gemma 3 (text): norms before and after attention and feed-forward, normalised heads, GELU, scaled embeddings; five of
// six layers have a window and a rotary embedding of their own.
#include "core/model/architectures.hpp"

#include <cmath>

namespace tessera::architectures {
namespace {

// Scores of the model of 27B are scaled by embedding / heads, of all others by a head's length. No key says it.
constexpr int64_t kLayersOf27B = 62;
constexpr size_t kWindowsOfGemma3 = 6;    // layers, of which the last sees all tokens
constexpr double kBaseOfWindows = 10000;  // of the rotary embedding, whose positions are not scaled

ModelDescription describe_gemma3(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    if (common.layers == kLayersOf27B && !model.is_given("attention.scale"))
        attention.scale = 1 / std::sqrt(static_cast<double>(common.model.embedding / common.heads));
    common.model.layers = make_layers(model, common, attention);
    model.get_count("attention.sliding_window");
    read_windows(model, common.model.layers, kWindowsOfGemma3);
    Rope local = *attention.rope;
    local.base = model.find_positive("rope.freq_base_swa").value_or(kBaseOfWindows);
    local.freq_scale = 1;
    for (Layer& layer : common.model.layers) {
        layer.norm_after = true;
        layer.feed_forward.unit.activation = Activation::kGelu;
        if (layer.attention.window > 0) layer.attention.rope = local;
    }
    common.model.embedding_scale = std::sqrt(static_cast<double>(common.model.embedding));
    return common.model;
}

}  // namespace

extern const Architecture gemma3;
const Architecture gemma3{{"gemma3"}, describe_gemma3, {}};

}  // namespace tessera::architectures
