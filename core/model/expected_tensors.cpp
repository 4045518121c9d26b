#include "core/model/expected_tensors.hpp"

namespace tessera {
namespace {

int64_t place(ModelTensor which, int64_t layer) {
    return (layer + 1) * static_cast<int64_t>(kModelTensors) + static_cast<int64_t>(which);
}

}  // namespace

ExpectedTensors::ExpectedTensors(const ModelDescription& model) : model_(model) {
    const int64_t e = model.embedding;
    add(ModelTensor::kTokenEmbeddings, -1, {e, model.vocabulary});
    bool rope_factors = false;
    if (!model.layers.empty() && model.layers.front().attention.rope) {
        const Rope& rope = *model.layers.front().attention.rope;
        for (const ModelTensor which : {ModelTensor::kRopeFactorsShort, ModelTensor::kRopeFactorsLong}) {
            if (rope.short_context > 0) add_vector(which, -1, rope.dimensions / 2);
        }
    }
    for (size_t i = 0; i < model.layers.size(); ++i) {
        const Layer& one = model.layers[i];
        const int64_t layer = model.first_layer + static_cast<int64_t>(i);
        if (model.predicts) {
            add(ModelTensor::kPredictionProjection, layer, {2 * e, e});
            add_vector(ModelTensor::kPredictionTokenNorm, layer, e);
            add_vector(ModelTensor::kPredictionStateNorm, layer, e);
        }
        if (one.norm_before) add_vector(ModelTensor::kAttentionNorm, layer, e);
        if (one.attention.kind == AttentionKind::kGrouped) {
            add_grouped(one.attention, layer);
            if (!rope_factors && one.attention.rope && one.attention.rope->uses_factors) {
                rope_factors = true;
                add_rope_factors(*one.attention.rope);
            }
        } else if (one.attention.kind == AttentionKind::kLatent) {
            add_latent(one.attention, layer);
        }
        add(ModelTensor::kAttentionOutput, layer, {one.attention.heads * one.attention.value_length, e});
        add_vector(ModelTensor::kAttentionOutputBias, layer, e, Presence::kEverywhere);
        if (one.norm_after) add_vector(ModelTensor::kPostAttentionNorm, layer, e);
        if (one.norm_before) add_vector(ModelTensor::kFeedForwardNorm, layer, e);
        add_feed_forward(one.feed_forward, layer);
        if (one.norm_after) add_vector(ModelTensor::kPostFeedForwardNorm, layer, e);
    }
    add_vector(ModelTensor::kOutputNorm, -1, e);
    if (!model.tied_embeddings) add(ModelTensor::kOutput, -1, {e, model.vocabulary});
    add_vector(ModelTensor::kOutputBias, -1, model.vocabulary, Presence::kOptional);
}

void ExpectedTensors::add_rope_factors(const Rope& rope) {
    const int64_t pairs = rope.dimensions / 2;
    add_vector(ModelTensor::kRopeFactors, -1, pairs, Presence::kOptional);
    if (rope.factors == 0 || rope.factors == pairs) return;
    ExpectedTensor& tensor = all_.back();
    tensor.fused = tensor.name;
    tensor.fused_rows = rope.factors;
    tensor.always_fused = true;
}

void ExpectedTensors::add_grouped(const Attention& a, int64_t layer) {
    const int64_t e = model_.embedding, q = a.heads * a.key_length, k = a.kv_heads * a.key_length,
                  v = a.kv_heads * a.value_length;
    struct Projection {
        ModelTensor weight, bias;
        int64_t first, rows;
    };
    for (const Projection& one : {Projection{ModelTensor::kQ, ModelTensor::kQBias, 0, q},
                                  {ModelTensor::kK, ModelTensor::kKBias, q, k},
                                  {ModelTensor::kV, ModelTensor::kVBias, q + k, v}}) {
        add(one.weight, layer, {e, one.rows});
        part_of(ModelTensor::kQkv, one.first, q + k + v);
        add_vector(one.bias, layer, one.rows, Presence::kEverywhere);
        part_of(ModelTensor::kQkvBias, one.first, q + k + v);
    }
    if (a.gate == OutputGate::kHeads) add(ModelTensor::kAttentionGate, layer, {e, a.heads});
    if (a.sinks) add_vector(ModelTensor::kSinks, layer, a.heads);
    if (a.head_norm == HeadNorm::kNone) return;
    const bool heads = a.head_norm == HeadNorm::kHeads;
    add_vector(ModelTensor::kQNorm, layer, heads ? a.key_length : q);
    add_vector(ModelTensor::kKNorm, layer, heads ? a.key_length : k);
}

void ExpectedTensors::add_latent(const Attention& a, int64_t layer) {
    const int64_t e = model_.embedding, h = a.heads, rotary = a.rope ? a.rope->dimensions : 0,
                  nope = a.key_length - rotary;
    if (a.q_lora > 0) {
        add(ModelTensor::kQA, layer, {e, a.q_lora});
        add_vector(ModelTensor::kQANorm, layer, a.q_lora);
        add(ModelTensor::kQB, layer, {a.q_lora, h * a.key_length});
    } else {
        add(ModelTensor::kQ, layer, {e, h * a.key_length});
    }
    add(ModelTensor::kKvA, layer, {e, a.kv_lora + rotary});
    add_vector(ModelTensor::kKvANorm, layer, a.kv_lora);
    add(ModelTensor::kKvB, layer, {a.kv_lora, h * (nope + a.value_length)}, Presence::kOptional);
    const auto absorbed = [&](ModelTensor which, int64_t in, int64_t out) {
        add({which, layer, "", "", {in, out, h}, {in, out * h}, Presence::kOptional});
    };
    absorbed(ModelTensor::kKB, nope, a.kv_lora);
    absorbed(ModelTensor::kVB, a.kv_lora, a.value_length);
}

void ExpectedTensors::add_feed_forward(const FeedForward& feed_forward, int64_t layer) {
    const int64_t e = model_.embedding;
    if (!feed_forward.experts) {
        const int64_t f = feed_forward.length;
        add_vector(ModelTensor::kGateBias, layer, f, Presence::kEverywhere);
        add_vector(ModelTensor::kUpBias, layer, f, Presence::kEverywhere);
        add(ModelTensor::kGate, layer, {e, f});
        if (feed_forward.fused_gate_up) part_of(ModelTensor::kUp, 0, 2 * f);
        add(ModelTensor::kUp, layer, {e, f});
        if (feed_forward.fused_gate_up) part_of(ModelTensor::kUp, f, 2 * f);
        add(ModelTensor::kDown, layer, {f, e});
        add_vector(ModelTensor::kDownBias, layer, e, Presence::kEverywhere);
        return;
    }
    const Experts& experts = *feed_forward.experts;
    const int64_t n = experts.count, f = experts.length, shared = experts.shared_length;
    add(ModelTensor::kRouter, layer, {e, n});
    if (experts.biased) add_vector(ModelTensor::kRouterBias, layer, n);
    add_vector(ModelTensor::kSelectionBias, layer, n, Presence::kEverywhere);
    add(ModelTensor::kGateExperts, layer, {e, f, n});
    part_of(ModelTensor::kGateUpExperts, 0, 2 * f);
    add(ModelTensor::kUpExperts, layer, {e, f, n});
    part_of(ModelTensor::kGateUpExperts, f, 2 * f);
    add(ModelTensor::kDownExperts, layer, {f, e, n});
    if (experts.biased) {
        const auto biases = [&](ModelTensor which, int64_t length) {
            add({which, layer, "", "", {length, n}, {}, Presence::kRequired, true});
        };
        biases(ModelTensor::kGateExpertsBias, f);
        biases(ModelTensor::kUpExpertsBias, f);
        biases(ModelTensor::kDownExpertsBias, e);
    }
    if (shared == 0) return;
    add(ModelTensor::kGateShared, layer, {e, shared});
    add(ModelTensor::kUpShared, layer, {e, shared});
    add(ModelTensor::kDownShared, layer, {shared, e});
    if (experts.shared_gate) add(ModelTensor::kSharedGate, layer, {e, 1});
}

void ExpectedTensors::add(ModelTensor which, int64_t layer, std::vector<int64_t> dims, Presence presence) {
    add({which, layer, "", "", std::move(dims), {}, presence});
}

void ExpectedTensors::add_vector(ModelTensor which, int64_t layer, int64_t length, Presence presence) {
    add({which, layer, "", "", {length}, {}, presence, true});
}

std::vector<int64_t> ExpectedTensor::fused_dims() const {
    std::vector<int64_t> whole = dims;
    whole[vector ? 0 : 1] = fused_rows;
    return whole;
}

void ExpectedTensors::part_of(ModelTensor whole, int64_t first, int64_t rows) {
    ExpectedTensor& tensor = all_.back();
    tensor.fused = in_layer(tensor.layer, tensor_name(whole).name);
    tensor.first = first;
    tensor.fused_rows = rows;
    tensor.always_fused = tensor.fused == in_layer(tensor.layer, tensor_name(ModelTensor::kUp).name);
}

void ExpectedTensors::add(ExpectedTensor tensor) {
    const auto own = model_.names.find(tensor.which);
    const TensorName& usual = tensor_name(tensor.which);
    tensor.name = own == model_.names.end() ? std::string(usual.name) : own->second;
    if (own == model_.names.end()) tensor.other = usual.other;
    if (tensor.layer >= 0) {
        tensor.name = in_layer(tensor.layer, tensor.name);
        if (!tensor.other.empty()) tensor.other = in_layer(tensor.layer, tensor.other);
    }
    places_.emplace(place(tensor.which, tensor.layer), all_.size());
    all_.push_back(std::move(tensor));
}

const ExpectedTensor* ExpectedTensors::find(ModelTensor which, int64_t layer) const {
    const auto at = places_.find(place(which, layer));
    return at == places_.end() ? nullptr : &all_[at->second];
}

}  // namespace tessera
