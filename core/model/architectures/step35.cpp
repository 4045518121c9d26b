// Step-3.5-Flash and the text of Step-3.7-Flash: normalised heads, each times a gate; three of four layers have a
// window, further heads and a rotary embedding of their own, while that of the others turns half of a head; experts
// after dense layers, whose activations some layers clamp.
#include "core/base/error.hpp"
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

// Of rotary embeddings: what layers with a window have, and what the others have.
struct Ropes {
    Rope local, all;
};

Ropes read_ropes(ModelFile& model, const Rope& rope) {
    constexpr int64_t kNotInWindows = 1;  // layers that factors are for
    const int64_t mask = model.find_count("rope.scaling.apply_mask", 0).value_or(kNotInWindows);
    if (mask != kNotInWindows) {
        fail(TSR_UNSUPPORTED, "{}: {} is {}; {}, factors in layers without a window, is computed", model.source(),
             model.key("rope.scaling.apply_mask"), mask, kNotInWindows);
    }
    Ropes ropes{rope, rope};
    const auto local_base = model.find_positive("rope.freq_base_swa");
    if (!local_base && !model.has_key("rope.freq_base_per_layer"))
        fail(TSR_NOT_FOUND, "{}: key '{}' is missing", model.source(), model.key("rope.freq_base_swa"));
    ropes.local.base = local_base.value_or(0);
    ropes.local.dimensions = model.find_count("rope.dimension_count_swa").value_or(rope.dimensions);
    ropes.local.uses_factors = false;
    ropes.all.dimensions /= 2;  // the key is of those with a window
    ropes.all.factors = rope.dimensions / 2;
    if (ropes.all.dimensions % 2 != 0 || ropes.local.dimensions % 2 != 0 || ropes.local.dimensions > rope.dimensions) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, {} {}: half of the one and the other are even", model.source(),
             model.key("rope.dimension_count"), rope.dimensions, model.key("rope.dimension_count_swa"),
             ropes.local.dimensions);
    }
    return ropes;
}

// Some converters write these for each layer, too, or the base of windows there alone; they are to say the same.
void read_rope_of_layers(ModelFile& model, Ropes& ropes, const std::vector<Layer>& layers) {
    const auto count = static_cast<size_t>(model.get_count("block_count"));
    const auto dimensions = model.find_counts("rope.dimension_count_per_layer", count);
    const auto bases = model.find_numbers("rope.freq_base_per_layer", count);
    for (size_t i = 0; i < layers.size(); ++i) {
        Rope& rope = layers[i].attention.window > 0 ? ropes.local : ropes.all;
        if (bases && !((*bases)[i] > 0)) {
            fail(TSR_CORRUPT_DATA, "{}: {} is {} for layer {}; a positive number is needed", model.source(),
                 model.key("rope.freq_base_per_layer"), (*bases)[i], i);
        }
        if (bases && rope.base == 0) rope.base = (*bases)[i];
        if (dimensions && (*dimensions)[i] != rope.dimensions) {
            fail(TSR_UNSUPPORTED, "{}: {} is {} for layer {}, which has {} by {}", model.source(),
                 model.key("rope.dimension_count_per_layer"), (*dimensions)[i], i, rope.dimensions,
                 model.key("rope.dimension_count"));
        }
        if (bases && (*bases)[i] != rope.base) {
            fail(TSR_UNSUPPORTED, "{}: {} is {} for layer {}; others of its kind have {}", model.source(),
                 model.key("rope.freq_base_per_layer"), (*bases)[i], i, rope.base);
        }
    }
}

// Of each layer, 0 where nothing is clamped. The key has two names.
std::vector<double> read_limits(ModelFile& model, std::string_view name, std::string_view other) {
    const auto count = static_cast<size_t>(model.get_count("block_count"));
    const auto limits = model.find_numbers(name, count), others = model.find_numbers(other, count);
    if (limits && others && *limits != *others) {
        fail(TSR_CORRUPT_DATA, "{}: {} and {} are two names of the same limits, and differ", model.source(),
             model.key(name), model.key(other));
    }
    if (limits || others) return limits ? *limits : *others;
    model.say_default(name, "0 (activations are not clamped)");
    return std::vector<double>(count, 0.0);
}

ModelDescription describe_step35(ModelFile& model) {
    CommonParameters common = read_common(model);
    common.layers -= read_prediction_layers(model, common.layers);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNeox);
    attention.head_norm = HeadNorm::kHeads;
    attention.gate = OutputGate::kHeads;
    common.model.layers = make_expert_layers(model, common, attention, {.normalize = true, .gating = Gating::kSigmoid});
    read_needed_windows(model, common.model.layers);
    Ropes ropes = read_ropes(model, *attention.rope);
    read_rope_of_layers(model, ropes, common.model.layers);
    if (!model.has_tensor(tensor_name(ModelTensor::kRopeFactors).name))
        model.note("rope_freqs.weight is not in the file: no layer divides the frequencies of its rotary embedding");
    const std::vector<double> limits = read_limits(model, "swiglu_clamp_exp", "swiglu_limits");
    const std::vector<double> shared = read_limits(model, "swiglu_clamp_shexp", "swiglu_limits_shared");
    for (size_t i = 0; i < common.model.layers.size(); ++i) {
        Layer& layer = common.model.layers[i];
        layer.attention.rope = layer.attention.window > 0 ? ropes.local : ropes.all;
        layer.feed_forward.unit.limit = shared[i];
        if (!layer.feed_forward.experts) continue;
        layer.feed_forward.experts->unit.limit = limits[i];
        layer.feed_forward.experts->shared_unit.limit = shared[i];
    }
    return common.model;
}

}  // namespace

extern const Architecture step35;
const Architecture step35{{"step35"}, describe_step35, {}};

}  // namespace tessera::architectures
