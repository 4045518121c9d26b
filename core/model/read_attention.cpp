#include "core/base/error.hpp"
#include "core/model/readers.hpp"
#include "core/model/rope.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

// Factors of 1 are nothing; the op of latent attention takes no others.
void leave_out_neutral_factors(ModelFile& model, int64_t rotary) {
    const gguf::TensorEntry* entry = model.file().find_tensor(tensor_name(ModelTensor::kRopeFactors).name);
    if (!entry || entry->type != TSR_TYPE_F32 || std::cmp_not_equal(entry->elements(), rotary / 2)) return;
    std::vector<float> factors(entry->elements());
    model.file().read(*entry, 0, std::as_writable_bytes(std::span(factors)));
    if (std::ranges::all_of(factors, [](float factor) { return factor == 1.0f; }))
        model.leave_out({"^rope_freqs\\.weight$", "its factors are all 1"});
}

}  // namespace

Attention read_grouped_attention(ModelFile& model, const CommonParameters& common, RopeMode mode) {
    Attention a;
    a.heads = common.heads;
    a.kv_heads = common.kv_heads;
    a.key_length = model.find_count("attention.key_length").value_or(common.model.embedding / common.heads);
    if (a.key_length == 0) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, more than {}, {}, and key '{}' is missing", model.source(),
             model.key("attention.head_count"), common.heads, model.key("embedding_length"), common.model.embedding,
             model.key("attention.key_length"));
    }
    a.value_length = model.find_count("attention.value_length").value_or(a.key_length);
    const int64_t rotary = model.find_count("rope.dimension_count").value_or(a.key_length);
    if (rotary % 2 != 0 || rotary > a.key_length) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, {} {}: an even part of the key is expected", model.source(),
             model.key("attention.key_length"), a.key_length, model.key("rope.dimension_count"), rotary);
    }
    a.scale = model.find_number("attention.scale").value_or(1.0 / std::sqrt(static_cast<double>(a.key_length)));
    a.rope = read_rope(model, mode, rotary, common.model.context).rope;
    return a;
}

Attention read_partly_rotated_attention(ModelFile& model, const CommonParameters& common, RopeMode mode) {
    Attention a = read_grouped_attention(model, common, mode);
    if (!model.has_key("rope.dimension_count"))
        model.say_default("rope.dimension_count", fmt::format("{}", a.key_length));
    return a;
}

void read_rope_tables(ModelFile& model, Rope& rope, int64_t context) {
    if (!model.has_tensor(tensor_name(ModelTensor::kRopeFactorsShort).name) &&
        !model.has_tensor(tensor_name(ModelTensor::kRopeFactorsLong).name))
        return;
    constexpr std::string_view kTrained = "rope.scaling.original_context_length";
    rope.short_context = model.or_said(kTrained, model.find_count(kTrained), context);
    rope.uses_factors = false;
}

void read_windows(ModelFile& model, std::vector<Layer>& layers, size_t every) {
    const auto window = model.find_count("attention.sliding_window");
    if (!window) return;
    // Of layers of prediction, too.
    const auto pattern =
        model.find_pattern("attention.sliding_window_pattern", static_cast<size_t>(model.get_count("block_count")));
    for (size_t i = 0; i < layers.size(); ++i) {
        const bool has = pattern ? (*pattern)[i] : every == 0 || i % every + 1 < every;
        if (has) layers[i].attention.window = *window;
    }
}

void read_needed_windows(ModelFile& model, std::vector<Layer>& layers) {
    model.get_count("attention.sliding_window");
    if (!model.has_key("attention.sliding_window_pattern"))
        fail(TSR_NOT_FOUND, "{}: key '{}' is missing", model.source(), model.key("attention.sliding_window_pattern"));
    read_windows(model, layers, 0);
}

Attention read_latent_attention(ModelFile& model, const CommonParameters& common, const LatentDefaults& defaults) {
    Attention a;
    a.kind = AttentionKind::kLatent;
    a.heads = a.kv_heads = common.heads;
    a.q_lora = model.find_count("attention.q_lora_rank", 0).value_or(0);
    a.kv_lora = model.get_count("attention.kv_lora_rank");
    // Files with the absorbed matrices alone give the latent lengths under the plain names.
    const bool latent_names = model.has_key("attention.key_length_mla");
    const auto plain_key = model.find_count("attention.key_length");
    auto plain_value = model.find_count("attention.value_length");
    if (!plain_value && defaults.value_length > 0) plain_value = defaults.value_length;
    a.key_length = latent_names || !plain_key ? model.get_count("attention.key_length_mla") : *plain_key;
    a.value_length = latent_names || !plain_value ? model.get_count("attention.value_length_mla") : *plain_value;
    const int64_t rotary = model.get_count("rope.dimension_count");
    if (rotary >= a.key_length || rotary % 2 != 0) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, the key's length {}", model.source(), model.key("rope.dimension_count"),
             rotary, a.key_length);
    }
    ScaledRope scaled = read_rope(model, defaults.mode, rotary, common.model.context);
    if (scaled.given_attn_factor != 1) {
        fail(TSR_UNSUPPORTED, "{}: {} is {}; this version computes 1 for '{}'", model.source(),
             model.key("rope.scaling.attn_factor"), scaled.given_attn_factor, model.architecture());
    }
    // YaRN's temperature goes into the scale of the scores as a whole (both of DeepSeek's mscales are equal), not into
    // the rotary part alone, so sine and cosine are not scaled.
    const bool yarn = scaled.rope.original_context > 0;
    const double log_multiplier = yarn ? model.or_said("rope.scaling.yarn_log_multiplier",
                                                       model.find_number("rope.scaling.yarn_log_multiplier"), 0.0)
                                       : scaled.log_multiplier;
    const double mscale = 1.0 + log_multiplier * std::log(scaled.factor);
    scaled.rope.attn_factor = 1.0;
    a.scale = mscale * mscale / std::sqrt(static_cast<double>(a.key_length));
    a.rope = scaled.rope;
    leave_out_neutral_factors(model, rotary);
    return a;
}

void read_temperature(ModelFile& model, Attention& a) {
    constexpr std::string_view kLength = "attention.temperature_length";
    a.temperature_scale = model.find_number("attention.temperature_scale").value_or(0.0);
    if (a.temperature_scale == 0) return;
    // It is the model's, too, where positions are scaled by something else than YaRN.
    const auto given = model.find_count("rope.scaling.original_context_length");
    const int64_t trained = a.rope && a.rope->original_context > 0 ? a.rope->original_context : given.value_or(0);
    const auto length = model.find_count(kLength);
    if (!length && trained == 0) {
        fail(TSR_NOT_FOUND, "{}: {} is {}, but key '{}' is missing", model.source(),
             model.key("attention.temperature_scale"), a.temperature_scale, model.key(kLength));
    }
    a.temperature_length = model.or_said(kLength, length, trained);
}

}  // namespace tessera
