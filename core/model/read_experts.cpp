#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/model/readers.hpp"

#include <algorithm>
#include <string>

namespace tessera {
namespace {

// Numbers of expert_gating_func in files.
constexpr int64_t kGatingNotGiven = 0, kSoftmax = 1, kSigmoid = 2, kSoftmaxOfChosen = 3;

// In one of the layers that are computed.
bool has_selection_bias(const ModelFile& model, int64_t layers) {
    for (int64_t layer = 0; layer < layers; ++layer) {
        const TensorName& bias = tensor_name(ModelTensor::kSelectionBias);
        for (const std::string_view name : {bias.name, bias.other}) {
            if (model.has_tensor(in_layer(layer, name))) return true;
        }
    }
    return false;
}

// Only the gating by sigmoids (DeepSeek-V3, arXiv 2412.19437) has a bias on selection.
Gating read_gating(ModelFile& model, bool biased, std::optional<Gating> otherwise) {
    const int64_t given = model.find_count("expert_gating_func", 0).value_or(kGatingNotGiven);
    if (given == kSoftmaxOfChosen && biased) {
        fail(TSR_UNSUPPORTED, "{}: {} is {} (softmax of the chosen), which is known without exp_probs_b.bias alone",
             model.source(), model.key("expert_gating_func"), given);
    }
    if (given == kSoftmax || given == kSoftmaxOfChosen) return Gating::kSoftmax;
    if (given == kSigmoid) return Gating::kSigmoid;
    if (given != kGatingNotGiven) {
        fail(TSR_UNSUPPORTED, "{}: {} is {}; 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen) are known",
             model.source(), model.key("expert_gating_func"), given);
    }
    if (otherwise) {
        model.say_default("expert_gating_func", *otherwise == Gating::kSigmoid ? "2 (sigmoid)" : "1 (softmax)");
        return *otherwise;
    }
    model.say_default("expert_gating_func", biased ? "2 (sigmoid, since there is exp_probs_b.bias)"
                                                   : "1 (softmax, since there is no exp_probs_b.bias)");
    return biased ? Gating::kSigmoid : Gating::kSoftmax;
}

}  // namespace

std::optional<Experts> read_experts(ModelFile& model, int64_t layers, const ExpertDefaults& defaults) {
    Experts experts;
    experts.count = model.find_count("expert_count", 0).value_or(0);
    if (experts.count == 0) return std::nullopt;
    experts.used = model.get_count("expert_used_count");
    if (experts.used > experts.count) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {} of {} experts", model.source(), model.key("expert_used_count"),
             experts.used, experts.count);
    }
    const auto length = model.find_count("expert_feed_forward_length");
    if (!length && defaults.length == 0)
        fail(TSR_NOT_FOUND, "{}: key '{}' is missing", model.source(), model.key("expert_feed_forward_length"));
    experts.length = length.value_or(defaults.length);
    const auto groups = model.find_count("expert_group_count", 0);
    const auto groups_used = model.find_count("expert_group_used_count", 0);
    if (!groups && groups_used) model.say_default("expert_group_count", "1");
    experts.groups = std::max<int64_t>(groups.value_or(1), 1);
    if (experts.groups > 1) experts.groups_used = model.get_count("expert_group_used_count");
    const bool biased = has_selection_bias(model, layers);
    experts.gating = read_gating(model, biased, defaults.gating);
    if (experts.gating == Gating::kSigmoid && !biased)
        model.note("exp_probs_b.bias is not in the file: experts are selected by their weights alone");
    // The softmax of the chosen logits is that of all, normalised.
    const auto normalize = model.find_bool("expert_weights_norm");
    experts.normalize = model.find_count("expert_gating_func", 0) == kSoftmaxOfChosen ||
                        model.or_said("expert_weights_norm", normalize, defaults.normalize);
    experts.scale = model.or_said("expert_weights_scale", model.find_number("expert_weights_scale"), 1.0);
    return experts;
}

Experts read_needed_experts(ModelFile& model, const CommonParameters& common, const ExpertDefaults& defaults) {
    if (const auto experts = read_experts(model, common.layers, defaults)) return *experts;
    fail(TSR_CORRUPT_DATA, "{}: {} is missing or 0, but this architecture has experts", model.source(),
         model.key("expert_count"));
}

int64_t read_shared_experts(ModelFile& model, int64_t first_layer, int64_t layers, const Experts& experts) {
    const auto count = model.find_count("expert_shared_count", 0);
    const auto together = model.find_count("expert_shared_feed_forward_length", 0);
    if (first_layer >= layers) return 0;
    if (count && together && *together != 0 && *together != *count * experts.length) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, but {} is {}, and {} of {} make {}", model.source(),
             model.key("expert_shared_feed_forward_length"), *together, model.key("expert_shared_count"), *count,
             counted(static_cast<uint64_t>(*count), "shared expert"), experts.length, *count * experts.length);
    }
    if (count) return *count * experts.length;
    if (together && *together != 0) return *together;
    const std::string name = in_layer(first_layer, "ffn_gate_shexp.weight");
    if (!model.has_tensor(name)) return 0;
    const auto length = static_cast<int64_t>(model.file().tensor(name).dims[1]);
    model.say_default("expert_shared_count", fmt::format("what the {} rows of {} make", length, name));
    return length;
}

}  // namespace tessera
