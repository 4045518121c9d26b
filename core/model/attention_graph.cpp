#include "core/base/error.hpp"
#include "core/model/graph_builder.hpp"

#include <tessera/ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace tessera {

using sdk::attribute;

std::vector<tsr_attribute> rope_attributes(const Rope& rope, RopePrefix prefix) {
    constexpr const char* kNames[8][2] = {{"mode", "rope_mode"},
                                          {"base", "rope_base"},
                                          {"freq_scale", "rope_freq_scale"},
                                          {"ext_factor", "rope_ext_factor"},
                                          {"attn_factor", "rope_attn_factor"},
                                          {"beta_fast", "rope_beta_fast"},
                                          {"beta_slow", "rope_beta_slow"},
                                          {"original_context", "rope_original_context"}};
    const auto name = [&](size_t i) { return kNames[i][prefix == RopePrefix::kRope]; };
    if (rope.ext_factor != 0 && !rope.whole_ramp && prefix == RopePrefix::kNone) {
        // The pair that turns so many times within the context that the model was trained for first.
        const auto pair = [&](double turns) {
            return static_cast<double>(rope.dimensions) *
                   std::log(static_cast<double>(rope.original_context) / (turns * 2 * std::numbers::pi)) /
                   (2 * std::log(rope.base));
        };
        const auto last = static_cast<double>(rope.dimensions - 1);
        return {attribute(name(0), rope.mode == RopeMode::kNeox ? "neox" : "norm"),
                attribute(name(1), rope.base),
                attribute(name(2), rope.freq_scale),
                attribute(name(3), rope.ext_factor),
                attribute(name(4), rope.attn_factor),
                attribute("ramp_low", std::max(0.0, pair(rope.beta_fast))),
                attribute("ramp_high", std::min(last, pair(rope.beta_slow)))};
    }
    return {attribute(name(0), rope.mode == RopeMode::kNeox ? "neox" : "norm"),
            attribute(name(1), rope.base),
            attribute(name(2), rope.freq_scale),
            attribute(name(3), rope.ext_factor),
            attribute(name(4), rope.attn_factor),
            attribute(name(5), rope.beta_fast),
            attribute(name(6), rope.beta_slow),
            attribute(name(7), rope.original_context)};
}

Value GraphBuilder::attention(int64_t layer, const Attention& described, Value x) {
    return described.kind == AttentionKind::kLatent ? latent_attention(layer, described, x)
                                                    : grouped_attention(layer, described, x);
}

Value GraphBuilder::with_temperature(int64_t layer, const Attention& a, Value q) {
    if (a.temperature_scale == 0) return q;
    return graph_
        .add(TSR_OP_SCALE_BY_POSITION, in_layer(layer, "attn_temperature"), {q, positions_},
             std::array{attribute("scale", a.temperature_scale), attribute("length", a.temperature_length)}, {q})
        .front();
}

Value GraphBuilder::rotated(const Attention& a, Value heads, std::string name) {
    if (!a.rope) return heads;
    const Value factors = a.rope->uses_factors ? weights_.get(ModelTensor::kRopeFactors) : rope_factors(*a.rope);
    const std::vector<tsr_attribute> attributes = rope_attributes(*a.rope, RopePrefix::kNone);
    if (a.rope->dimensions == a.key_length)
        return graph_.add(TSR_OP_ROPE, std::move(name), {heads, positions_, factors}, attributes).front();
    tsr_tensor first = graph_.tensor(heads);
    first.dims[0] = a.rope->dimensions;
    const Value part = graph_.view(heads, first);
    graph_.add(TSR_OP_ROPE, std::move(name), {part, positions_, factors}, attributes, {part});
    return heads;
}

int64_t GraphBuilder::window_of(const Attention& a) const {
    return a.window < int64_t{limits_.sequence_pages} * TSR_PAGE_TOKENS ? a.window : 0;
}

Value GraphBuilder::page_table_of(const Attention& a) {
    const int64_t window = window_of(a);
    if (window == 0) return page_table_;
    Value& table = window_tables_[window];
    if (table == 0)
        table = graph_.page_table(fmt::format("{}.window_{}", kPageTable, window),
                                  {TSR_TYPE_I32, {limits_.sequence_pages, limits_.sequences}},
                                  {static_cast<uint32_t>(window)});
    return table;
}

Value GraphBuilder::grouped_attention(int64_t layer, const Attention& a, Value x) {
    const auto name = [&](const char* part) { return in_layer(layer, part); };
    const int64_t d = a.key_length, h = a.heads, kv = a.kv_heads, rows = graph_.tensor(x).dims[1];
    const auto projections = graph_.add(TSR_OP_MATMUL_GROUP, name("attn_qkv"),
                                        {x, weights_.get(ModelTensor::kQ, layer), weights_.get(ModelTensor::kK, layer),
                                         weights_.get(ModelTensor::kV, layer)});
    Value q = add_bias(projections[0], ModelTensor::kQBias, layer, "attn_q");
    Value k = add_bias(projections[1], ModelTensor::kKBias, layer, "attn_k");
    const Value v = reshape(
        scaled(add_bias(projections[2], ModelTensor::kVBias, layer, "attn_v"), a.value_scale, name("attn_v_scale")),
        {a.value_length, kv, rows});
    const auto normalise = [&] {
        q = norm(q, ModelTensor::kQNorm, layer);
        k = norm(k, ModelTensor::kKNorm, layer);
    };
    if (a.head_norm == HeadNorm::kRows) normalise();
    q = reshape(q, {d, h, rows});
    k = reshape(k, {d, kv, rows});
    if (a.head_norm == HeadNorm::kHeads && !a.norm_after_rope) normalise();
    q = rotated(a, q, name("attn_q_rope"));
    k = rotated(a, k, name("attn_k_rope"));
    if (a.head_norm == HeadNorm::kHeads && a.norm_after_rope) normalise();
    q = with_temperature(layer, a, q);
    std::vector<Value> operands = {q, k, v, positions_, sequences_, page_table_of(a)};
    std::vector<tsr_attribute> attributes = {attribute("scale", a.scale)};
    if (a.sinks) operands.push_back(weights_.get(ModelTensor::kSinks, layer));
    if (const int64_t window = window_of(a); window > 0) attributes.push_back(attribute("window", window));
    Value heads = graph_.add(TSR_OP_CACHED_ATTENTION, name("attn"), std::move(operands), attributes).front();
    if (a.gate == OutputGate::kHeads) {
        const Value gate =
            graph_.add_one(TSR_OP_MATMUL, name("attn_gate"), {x, weights_.get(ModelTensor::kAttentionGate, layer)});
        heads = graph_.add(TSR_OP_SIGMOID_MUL, name("attn_gated"), {heads, gate}, {}, {heads}).front();
    }
    return reshape(heads, {a.value_length * h, rows});
}

Value GraphBuilder::rope_factors(const Rope& rope) {
    if (rope.short_context == 0) return 0;
    const bool is_long = context_ > rope.short_context;
    const ModelTensor used = is_long ? ModelTensor::kRopeFactorsLong : ModelTensor::kRopeFactorsShort;
    model_.claim_tensor(tensor_name(is_long ? ModelTensor::kRopeFactorsShort : ModelTensor::kRopeFactorsLong).name);
    return weights_.get(used);
}

Value GraphBuilder::latent_attention(int64_t layer, const Attention& a, Value x) {
    const auto name = [&](const char* part) { return in_layer(layer, part); };
    const Value kv_a = weights_.get(ModelTensor::kKvA, layer);
    const Value q_a = weights_.get(a.q_lora > 0 ? ModelTensor::kQA : ModelTensor::kQ, layer);
    const auto both = graph_.add(TSR_OP_MATMUL_GROUP, name("attn_qkv_a"), {x, q_a, kv_a});
    Value q = both[0];
    if (a.q_lora > 0) {
        const Value low = norm(q, ModelTensor::kQANorm, layer);
        q = graph_.add_one(TSR_OP_MATMUL, name("attn_q_b"), {low, weights_.get(ModelTensor::kQB, layer)});
    }
    q = with_temperature(layer, a, q);
    const Value kv_norm = weights_.get(ModelTensor::kKvANorm, layer);
    const Value wkv_b = weights_.get(ModelTensor::kKvB, layer);
    const Value wk_b = weights_.get(ModelTensor::kKB, layer), wv_b = weights_.get(ModelTensor::kVB, layer);
    if (!wkv_b && !(wk_b && wv_b)) {
        fail(TSR_NOT_FOUND, "{}: layer {}: neither attn_kv_b nor both of attn_k_b and attn_v_b are in the file",
             model_.source(), layer);
    }
    std::vector<tsr_attribute> attributes = rope_attributes(*a.rope, RopePrefix::kRope);
    for (const tsr_attribute& one :
         {attribute("heads", a.heads), attribute("nope", a.key_length - a.rope->dimensions),
          attribute("rope", a.rope->dimensions), attribute("v", a.value_length), attribute("kv_lora", a.kv_lora),
          attribute("epsilon", description_.epsilon), attribute("scale", a.scale)}) {
        attributes.push_back(one);
    }
    std::vector<Value> inputs = {q, both[1], kv_norm, wkv_b, wk_b, wv_b, positions_, sequences_, page_table_};
    if (const Value factors = rope_factors(*a.rope)) inputs.push_back(factors);
    return graph_.add("mla_attention", name("attn"), std::move(inputs), attributes).front();
}

}  // namespace tessera
