#include "core/base/error.hpp"
#include "core/model/readers.hpp"

#include <cmath>
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
    const auto layers = static_cast<size_t>(common.layers);
    const auto heads = model.find_counts("attention.head_count", layers);
    if (!heads) fail(TSR_NOT_FOUND, "{}: key '{}' is missing", model.source(), model.key("attention.head_count"));
    common.layer_heads = *heads;
    common.layer_kv_heads = model.find_counts("attention.head_count_kv", layers).value_or(*heads);
    common.layer_feed_forward =
        model.find_counts("feed_forward_length", layers, 0).value_or(std::vector<int64_t>(layers, 0));
    common.heads = common.layer_heads.front();
    common.kv_heads = common.layer_kv_heads.front();
    common.feed_forward = common.layer_feed_forward.front();
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
                               const std::optional<Experts>& experts, int64_t dense, int64_t step) {
    std::vector<Layer> layers(static_cast<size_t>(common.layers));
    for (size_t i = 0; i < layers.size(); ++i) {
        Layer& layer = layers[i];
        layer.attention = attention;
        layer.attention.heads = common.layer_heads[i];
        layer.attention.kv_heads =
            attention.kind == AttentionKind::kLatent ? common.layer_heads[i] : common.layer_kv_heads[i];
        if (layer.attention.heads % layer.attention.kv_heads != 0) {
            fail(TSR_CORRUPT_DATA, "{}: {} is {}, which is not a multiple of {}, {} (layer {})", model.source(),
                 model.key("attention.head_count"), layer.attention.heads, model.key("attention.head_count_kv"),
                 layer.attention.kv_heads, i);
        }
        layer.feed_forward.length = common.layer_feed_forward[i];
        if (experts && std::cmp_greater_equal(i, dense) && (static_cast<int64_t>(i) + 1) % step == 0) {
            layer.feed_forward.experts = experts;
        } else if (layer.feed_forward.length == 0) {
            fail(TSR_NOT_FOUND, "{}: layer {} is dense, but key '{}' is missing or 0", model.source(), i,
                 model.key("feed_forward_length"));
        }
    }
    return layers;
}

std::vector<Layer> make_expert_layers(ModelFile& model, const CommonParameters& common, const Attention& attention,
                                      const ExpertDefaults& defaults) {
    const int64_t dense = model.find_count("leading_dense_block_count", 0).value_or(0);
    Experts experts = read_needed_experts(model, common, defaults);
    experts.shared_length = read_shared_experts(model, dense, common.layers, experts);
    return make_layers(model, common, attention, experts, dense);
}

void read_scales(ModelFile& model, ModelDescription& described) {
    const auto scale = [&](std::string_view name) {
        const double value = model.or_said(name, model.find_number(name), 1.0);
        return value == 0 ? 1.0 : value;  // not given
    };
    described.embedding_scale = scale("embedding_scale");
    const double residual = scale("residual_scale");
    for (Layer& layer : described.layers) layer.residual_scale = residual;
    described.logit_scale = 1.0 / scale("logit_scale");
}

// scale_emb, scale_depth and dim_model_base. The last makes a divisor.
void read_minicpm_scales(ModelFile& model, ModelDescription& described) {
    constexpr double kEmbeddings = 12, kDepth = 1.4, kBase = 256;
    const auto scale = [&](const char* key, double otherwise) {
        return model.or_said(key, model.find_positive(key), otherwise);
    };
    described.embedding_scale = scale("embedding_scale", kEmbeddings);
    const double residual = scale("residual_scale", kDepth / std::sqrt(static_cast<double>(described.layers.size())));
    for (Layer& layer : described.layers) layer.residual_scale = residual;
    described.logit_scale = 1 / scale("logit_scale", static_cast<double>(described.embedding) / kBase);
}

}  // namespace tessera
