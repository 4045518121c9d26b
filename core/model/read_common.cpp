#include "core/base/error.hpp"
#include "core/model/readers.hpp"

#include <limits>
#include <utility>

namespace tessera {

CommonParameters read_common(ModelFile& model) {
    CommonParameters common;
    common.layers = model.get_count("block_count");
    // Every layer has tensors of its own, but for those of prediction, which some converters drop.
    const size_t tensors = model.file().tensors().size();
    if (std::cmp_greater(common.layers, tensors + kMaxPredictionLayers)) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, but the file has {} tensors", model.source(), model.key("block_count"),
             common.layers, tensors);
    }
    ModelDescription& described = common.model;
    described.embedding = model.get_count("embedding_length");
    described.context = model.get_count("context_length");
    common.heads = model.get_count("attention.head_count");
    common.kv_heads = model.find_count("attention.head_count_kv").value_or(common.heads);
    common.feed_forward = model.find_count("feed_forward_length", 0).value_or(0);
    described.epsilon = model.get_positive("attention.layer_norm_rms_epsilon");
    const uint64_t rows = model.file().tensor("token_embd.weight").dims[1];
    if (rows > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
        fail(TSR_CORRUPT_DATA, "{}: token_embd.weight has {} rows", model.source(), rows);
    described.vocabulary = static_cast<int64_t>(rows);
    if (const auto said = model.find_count("vocab_size", 0);
        said.value_or(described.vocabulary) != described.vocabulary) {
        model.note(fmt::format("{} is {}; the vocabulary has the {} rows of token_embd.weight", model.key("vocab_size"),
                               *said, described.vocabulary));
    }
    described.tied_embeddings = !model.has_tensor("output.weight");
    return common;
}

std::vector<Layer> make_layers(const ModelFile& model, const CommonParameters& common, const Attention& attention,
                               const std::optional<Experts>& experts, int64_t dense) {
    if (!experts) dense = common.layers;
    if (dense > 0 && common.layers > 0 && common.feed_forward == 0) {
        fail(TSR_NOT_FOUND, "{}: layer 0 is dense, but key '{}' is missing or 0", model.source(),
             model.key("feed_forward_length"));
    }
    Layer layer;
    layer.attention = attention;
    layer.feed_forward.length = common.feed_forward;
    std::vector<Layer> layers(static_cast<size_t>(common.layers), layer);
    for (size_t i = 0; i < layers.size(); ++i) {
        if (std::cmp_greater_equal(i, dense)) layers[i].feed_forward.experts = experts;
    }
    return layers;
}

}  // namespace tessera
