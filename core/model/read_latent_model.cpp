#include "core/model/readers.hpp"

#include <algorithm>
#include <string_view>

namespace tessera {
namespace {

// The indexer of sparse attention, which chooses the tokens that a token attends to (DeepSeek-V3.2, arXiv 2512.02556).
void leave_out_indexer(ModelFile& model, int64_t context) {
    constexpr std::string_view kChosen = "attention.indexer.top_k";
    const auto chosen = model.find_count(kChosen);
    const bool has_tensors = std::ranges::any_of(model.file().tensors(), [](const gguf::TensorEntry& tensor) {
        return std::string_view(tensor.name).find(".indexer.") != std::string_view::npos;
    });
    if (!chosen && !has_tensors) return;
    model.leave_out({R"(^blk\.\d+\.indexer\.)", "attention is dense: the indexer of sparse attention is not computed"});
    if (!chosen) {
        model.note(
            fmt::format("attention is dense, where the model's is sparse: past as many tokens as its indexer "
                        "chooses results are others; {} would say how many these are",
                        model.key(kChosen)));
    } else if (*chosen < context) {
        model.note(
            fmt::format("attention is dense, where the model's is sparse: up to {0} tokens of a sequence ({1}) "
                        "results are the same, past that a token attends to all before it, not to the {0} that "
                        "an indexer chooses",
                        *chosen, model.key(kChosen)));
    }
}

}  // namespace

ModelDescription read_latent_model(ModelFile& model) {
    CommonParameters common = read_common(model);
    common.layers -= read_prediction_layers(model, common.layers);
    std::optional<Experts> experts = read_experts(model, common.layers, {});
    const int64_t leading = model.find_count("leading_dense_block_count", 0).value_or(0);
    const int64_t dense = experts ? std::min(leading, common.layers) : common.layers;
    const int64_t shared = read_shared_experts(model, dense, common.layers, experts.value_or(Experts{}));
    if (experts) experts->shared_length = shared;
    Attention attention = read_latent_attention(model, common);
    read_temperature(model, attention);
    leave_out_indexer(model, common.model.context);
    common.model.layers = make_layers(model, common, attention, experts, dense);
    describe_prediction(common);
    return common.model;
}

}  // namespace tessera
