// DeepSeek-V2, V2-Lite, V2.5, V3, R1 (arXiv 2405.04434, 2412.19437): multi-head latent attention and many experts.
#include "core/base/error.hpp"
#include "core/model/architectures.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/ops.h>

#include <cmath>

namespace tessera {
namespace {

using sdk::attribute;

struct Parameters {
    CommonParameters common;
    ExpertParameters moe;
    RopeParameters rope;
    int64_t dense_layers = 0;
    int64_t shared_experts = 0;
    int64_t q_lora = 0;  // 0: queries are not compressed
    int64_t kv_lora = 0;
    int64_t nope = 0;    // elements of a head's key without rotary embedding
    int64_t rotary = 0;  // elements of a head's key with it
    int64_t v = 0;
    int64_t skipped_layers = 0;
    double scale = 0;  // of attention scores
};

Parameters read(const gguf::GgufFile& file) {
    const gguf::Metadata& metadata = file.metadata();
    Parameters p;
    p.common = read_common(file);
    const std::string prefix = p.common.architecture + ".";
    p.skipped_layers = find_count(metadata, prefix + "nextn_predict_layers", 0, 0);
    if (p.skipped_layers >= p.common.layers) {
        fail(TSR_CORRUPT_DATA, "{}: {}nextn_predict_layers is {} of {} layers", metadata.source(), prefix,
             p.skipped_layers, p.common.layers);
    }
    p.common.layers -= p.skipped_layers;
    p.dense_layers = std::min(find_count(metadata, prefix + "leading_dense_block_count", 0, 0), p.common.layers);
    if (p.dense_layers < p.common.layers) p.moe = read_experts(metadata, p.common.architecture);
    p.shared_experts = find_count(metadata, prefix + "expert_shared_count", 0, 0);
    p.q_lora = find_count(metadata, prefix + "attention.q_lora_rank", 0, 0);
    p.kv_lora = get_count(metadata, prefix + "attention.kv_lora_rank");
    // Files with the absorbed matrices alone give the latent lengths under the plain names.
    const bool latent_names = metadata.contains(prefix + "attention.key_length_mla");
    const int64_t key =
        get_count(metadata, prefix + (latent_names ? "attention.key_length_mla" : "attention.key_length"));
    p.v = get_count(metadata, prefix + (latent_names ? "attention.value_length_mla" : "attention.value_length"));
    p.rotary = get_count(metadata, prefix + "rope.dimension_count");
    p.nope = key - p.rotary;
    if (p.nope <= 0 || p.rotary % 2 != 0) {
        fail(TSR_CORRUPT_DATA, "{}: {}rope.dimension_count is {}, the key's length {}", metadata.source(), prefix,
             p.rotary, key);
    }
    p.rope = read_rope(metadata, p.common.architecture, "norm", static_cast<uint32_t>(p.common.context));
    // YaRN's temperature goes into the scale of the scores as a whole (both of DeepSeek's mscales are equal), not into
    // the rotary part alone, so sine and cosine are not scaled.
    const double mscale = 1.0 + p.rope.log_multiplier * std::log(p.rope.factor);
    p.rope.attn_factor = 1.0;
    p.scale = mscale * mscale / std::sqrt(static_cast<double>(key));
    return p;
}

Value attention(ModelBuilder& b, const Parameters& p, int64_t layer, Value x) {
    const auto name = [&](const char* part) { return ModelBuilder::block(layer, part); };
    const int64_t e = p.common.embedding, h = p.common.heads, key = p.nope + p.rotary;
    const Value kv_a = b.weights.get(name("attn_kv_a_mqa"), {e, p.kv_lora + p.rotary});
    Value q, kv;
    if (p.q_lora > 0) {
        const auto both = b.graph.add(TSR_OP_MATMUL_GROUP, name("attn_qkv_a"),
                                      {x, b.weights.get(name("attn_q_a"), {e, p.q_lora}), kv_a});
        const Value low = b.norm(both[0], name("attn_q_a_norm"), p.q_lora);
        q = b.graph.add_one(TSR_OP_MATMUL, name("attn_q_b"),
                            {low, b.weights.get(name("attn_q_b"), {p.q_lora, h * key})});
        kv = both[1];
    } else {
        const auto both = b.graph.add(TSR_OP_MATMUL_GROUP, name("attn_qkv_a"),
                                      {x, b.weights.get(name("attn_q"), {e, h * key}), kv_a});
        q = both[0];
        kv = both[1];
    }
    const Value kv_norm = b.weights.get(name("attn_kv_a_norm"), {p.kv_lora});
    const Value wkv_b = b.weights.find(name("attn_kv_b"), {p.kv_lora, h * (p.nope + p.v)});
    // Absorbed matrices come with three dimensions, from some tools with the last two joined.
    const auto split = [&](const char* part, int64_t in, int64_t out) -> Value {
        const std::string full = name(part) + ".weight";
        if (!b.weights.has(full)) return 0;
        if (b.weights.extent(full, 2) == h || h == 1) return b.weights.get(name(part), {in, out, h});
        return b.weights.get(name(part), {in, out * h});
    };
    const Value wk_b = split("attn_k_b", p.nope, p.kv_lora), wv_b = split("attn_v_b", p.kv_lora, p.v);
    if (!wkv_b && !(wk_b && wv_b)) {
        fail(TSR_NOT_FOUND, "layer {}: neither attn_kv_b nor both of attn_k_b and attn_v_b are in the file", layer);
    }
    std::vector<tsr_attribute> attributes = p.rope.attributes(kPrefixedRopeNames);
    for (const tsr_attribute& a :
         {attribute("heads", h), attribute("nope", p.nope), attribute("rope", p.rotary), attribute("v", p.v),
          attribute("kv_lora", p.kv_lora), attribute("epsilon", p.common.epsilon), attribute("scale", p.scale)}) {
        attributes.push_back(a);
    }
    return b.graph
        .add("mla_attention", name("attn"), {q, kv, kv_norm, wkv_b, wk_b, wv_b, b.positions, b.sequences, b.page_table},
             attributes)
        .front();
}

}  // namespace

void describe_deepseek2(const gguf::GgufFile& file, ModelInfo& info) {
    const Parameters p = read(file);
    info.layers = static_cast<uint32_t>(p.common.layers);
    info.latent_attention = true;
    if (p.skipped_layers > 0) {
        info.notes.push_back(fmt::format("{} further-prediction layer(s) of the file are not used", p.skipped_layers));
    }
}

Graph build_deepseek2(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits) {
    const Parameters p = read(file);
    ModelBuilder b(file, ops, limits, p.common);
    Value hidden = b.embed();
    for (int64_t layer = 0; layer < p.common.layers; ++layer) {
        b.graph.set_layer(static_cast<int>(layer));
        const Value x = b.norm(hidden, ModelBuilder::block(layer, "attn_norm"), p.common.embedding);
        const Value heads = attention(b, p, layer, x);
        hidden = b.finish_layer(layer, heads, p.common.heads * p.v, hidden, layer < p.dense_layers ? nullptr : &p.moe,
                                p.shared_experts * p.moe.feed_forward);
    }
    return b.finish(hidden);
}

}  // namespace tessera
