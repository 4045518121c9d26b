#include "core/base/error.hpp"
#include "core/model/readers.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

namespace tessera {
namespace {

// What the tensors of one of the last layers tell.
struct LayerTensors {
    bool any = false, predicts = false;
};

// Of the last layers, the last first: as many as may predict, and one more. The file is gone through once.
std::vector<LayerTensors> tensors_of_last_layers(const ModelFile& model, int64_t layers) {
    std::vector<LayerTensors> last(static_cast<size_t>(std::min(layers, kMaxPredictionLayers + 1)));
    for (const gguf::TensorEntry& tensor : model.file().tensors()) {
        std::string_view name = tensor.name;
        if (!name.starts_with("blk.")) continue;
        name.remove_prefix(4);
        int64_t layer = -1;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
        if (error != std::errc() || layer < 0 || layer >= layers) continue;
        name.remove_prefix(static_cast<size_t>(end - name.data()));
        const auto from_last = static_cast<size_t>(layers - 1 - layer);
        if (!name.starts_with('.') || from_last >= last.size()) continue;
        last[from_last].any = true;
        if (name.starts_with(".nextn.")) last[from_last].predicts = true;
    }
    return last;
}

}  // namespace

// Files tell by the key, by the layers' own tensors, or both; some
// count them in block_count and have dropped their tensors, and some have the key and count the other layers alone.
int64_t read_prediction_layers(ModelFile& model, int64_t layers) {
    const int64_t said = model.find_count("nextn_predict_layers", 0).value_or(0);
    if (said >= layers || said > kMaxPredictionLayers) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {} of {} layers", model.source(), model.key("nextn_predict_layers"), said,
             layers);
    }
    const std::vector<LayerTensors> last = tensors_of_last_layers(model, layers);
    int64_t found = 0, dropped = 0;
    while (found + 1 < layers && found <= kMaxPredictionLayers) {
        const LayerTensors& tensors = last[static_cast<size_t>(found)];
        if (!tensors.predicts && (found >= said || tensors.any)) break;
        if (!tensors.any) ++dropped;
        ++found;
    }
    if (found > kMaxPredictionLayers) {
        fail(TSR_CORRUPT_DATA, "{}: more than {} of the last layers have nextn tensors", model.source(),
             kMaxPredictionLayers);
    }
    if (found < said) {
        model.note(fmt::format("{} is {}, but blk.{} has no nextn tensors: it is computed as the others are",
                               model.key("nextn_predict_layers"), said, layers - 1 - found));
    }
    if (dropped > 0) {
        model.note(fmt::format("{} is {}, but {} of these layers have no tensors in the file: they are not computed",
                               model.key("nextn_predict_layers"), said, dropped));
    }
    std::string numbers;
    for (int64_t layer = layers - found; layer < layers; ++layer)
        numbers += (numbers.empty() ? "" : "|") + std::to_string(layer);
    if (found > 0)
        model.leave_out(
            {fmt::format(R"(^blk\.(?:{})\.)", numbers), "layers that predict further tokens serve drafts alone"});
    return found;
}

void describe_prediction(CommonParameters& common) {
    const auto number = static_cast<size_t>(common.layers);
    if (number >= common.layer_heads.size()) return;
    Layer layer = common.model.layers.back();
    layer.attention.heads = common.layer_heads[number];
    const bool latent = layer.attention.kind == AttentionKind::kLatent;
    layer.attention.kv_heads = latent ? layer.attention.heads : common.layer_kv_heads[number];
    common.model.prediction = std::move(layer);
}

}  // namespace tessera
