// Granite 3 and 4, dense or with experts and perhaps a shared one: Llama whose embeddings, residuals, scores and logits
// are scaled. Files of Granite 4 may have keys of the recurrent layers of others of its class.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

constexpr KeyRule kKeysOfHybrids[] = {{"ssm.*", "*", "no layer has a recurrent state"}};

ModelDescription describe_granite(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNorm);
    model.or_said("attention.scale", model.find_number("attention.scale"), attention.scale);
    std::optional<Experts> experts;
    if (model.architecture() == "granitemoe") {
        experts = read_needed_experts(model, common, {.normalize = true, .length = common.feed_forward});
        experts->shared_length = read_shared_experts(model, 0, common.layers, *experts);
    }
    common.model.layers = make_layers(model, common, attention, experts);
    read_scales(model, common.model);
    // llama.cpp's converter of hybrid models says so whether there are rotary embeddings.
    if (!model.find_bool("rope.scaling.finetuned").value_or(true)) {
        model.note("rope.scaling.finetuned is false: no layer has a rotary embedding");
        for (Layer& layer : common.model.layers) layer.attention.rope.reset();
    }
    return common.model;
}

}  // namespace

extern const Architecture granite;
const Architecture granite{{"granite", "granitemoe"}, describe_granite, {{}, kKeysOfHybrids}};

}  // namespace tessera::architectures
