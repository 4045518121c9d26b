// DeepSeek-V2, V2-Lite, V2.5, V3, R1 (arXiv 2405.04434, 2412.19437): multi-head latent attention and many experts.
#include "core/base/error.hpp"
#include "core/model/architectures.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace tessera {
namespace {

using sdk::attribute;

struct Parameters {
    CommonParameters common;
    ExpertParameters moe;
    RopeParameters rope;
    int64_t dense_layers = 0;
    int64_t shared_length = 0;  // of all shared experts together
    int64_t q_lora = 0;         // 0: queries are not compressed
    int64_t kv_lora = 0;
    int64_t nope = 0;    // elements of a head's key without rotary embedding
    int64_t rotary = 0;  // elements of a head's key with it
    int64_t v = 0;
    double scale = 0;  // of attention scores
};

// What the tensors of one of the last layers tell.
struct LayerTensors {
    bool any = false, predicts = false;
};

// Of the last layers, the last first: as many as may predict, and one more. The file is gone through once.
std::vector<LayerTensors> tensors_of_last_layers(const ModelFile& model, int64_t layers) {
    std::vector<LayerTensors> last(static_cast<size_t>(std::min(layers, kMaxPredictionLayers + 1)));
    for (const gguf::TensorEntry& tensor : model.file().tensors()) {
        std::string_view name = tensor.name;
        if (!name.starts_with("blk.")) continue;
        name.remove_prefix(4);
        int64_t layer = -1;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
        if (error != std::errc() || layer < 0 || layer >= layers) continue;
        name.remove_prefix(static_cast<size_t>(end - name.data()));
        const auto from_last = static_cast<size_t>(layers - 1 - layer);
        if (!name.starts_with('.') || from_last >= last.size()) continue;
        last[from_last].any = true;
        if (name.starts_with(".nextn.")) last[from_last].predicts = true;
    }
    return last;
}

// How many of the last layers predict further tokens. Files tell by the key, by the layers' own tensors, or both; some
// count them in block_count and have dropped their tensors, and some have the key and count the other layers alone.
int64_t prediction_layers(ModelFile& model, int64_t layers) {
    const int64_t said = model.find_count("nextn_predict_layers", 0).value_or(0);
    if (said >= layers || said > kMaxPredictionLayers) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {} of {} layers", model.source(), model.key("nextn_predict_layers"), said,
             layers);
    }
    const std::vector<LayerTensors> last = tensors_of_last_layers(model, layers);
    int64_t found = 0, dropped = 0;
    while (found + 1 < layers && found <= kMaxPredictionLayers) {
        const LayerTensors& tensors = last[static_cast<size_t>(found)];
        if (!tensors.predicts && (found >= said || tensors.any)) break;
        if (!tensors.any) ++dropped;
        ++found;
    }
    if (found > kMaxPredictionLayers) {
        fail(TSR_CORRUPT_DATA, "{}: more than {} of the last layers have nextn tensors", model.source(),
             kMaxPredictionLayers);
    }
    if (found < said) {
        model.note(fmt::format("{} is {}, but blk.{} has no nextn tensors: it is computed as the others are",
                               model.key("nextn_predict_layers"), said, layers - 1 - found));
    }
    if (dropped > 0) {
        model.note(fmt::format("{} is {}, but {} of these layers have no tensors in the file: they are not computed",
                               model.key("nextn_predict_layers"), said, dropped));
    }
    std::string numbers;
    for (int64_t layer = layers - found; layer < layers; ++layer)
        numbers += (numbers.empty() ? "" : "|") + std::to_string(layer);
    if (found > 0)
        model.leave_out(
            {fmt::format(R"(^blk\.(?:{})\.)", numbers), "layers that predict further tokens are not computed"});
    return found;
}

// The length of all shared experts of a layer together; 0: there are none. Two keys may tell it.
int64_t shared_length(ModelFile& model, int64_t first_layer, int64_t layers, const ExpertParameters& moe) {
    const auto count = model.find_count("expert_shared_count", 0);
    const auto together = model.find_count("expert_shared_feed_forward_length", 0);
    if (first_layer >= layers) return 0;
    if (count && together && *together != 0 && *together != *count * moe.feed_forward) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, but {} of {} make {}", model.source(),
             model.key("expert_shared_feed_forward_length"), *together, model.key("expert_shared_count"),
             moe.feed_forward, *count * moe.feed_forward);
    }
    if (count) return *count * moe.feed_forward;
    if (together && *together != 0) return *together;
    const std::string name = ModelBuilder::block(first_layer, "ffn_gate_shexp.weight");
    if (!model.has_tensor(name)) return 0;
    const auto length = static_cast<int64_t>(model.file().tensor(name).dims[1]);
    model.say_default("expert_shared_count", fmt::format("what the {} rows of {} make", length, name));
    return length;
}

Parameters read(ModelFile& model) {
    Parameters p;
    p.common = read_common(model);
    p.common.layers -= prediction_layers(model, p.common.layers);
    p.moe = read_experts(model, p.common.layers, false, 0);
    const int64_t leading = model.find_count("leading_dense_block_count", 0).value_or(0);
    p.dense_layers = p.moe.count == 0 ? p.common.layers : std::min(leading, p.common.layers);
    p.shared_length = shared_length(model, p.dense_layers, p.common.layers, p.moe);
    p.q_lora = model.find_count("attention.q_lora_rank", 0).value_or(0);
    p.kv_lora = model.get_count("attention.kv_lora_rank");
    // Files with the absorbed matrices alone give the latent lengths under the plain names.
    const bool latent_names = model.has_key("attention.key_length_mla");
    const auto plain_key = model.find_count("attention.key_length"),
               plain_value = model.find_count("attention.value_length");
    const int64_t key = latent_names || !plain_key ? model.get_count("attention.key_length_mla") : *plain_key;
    p.v = latent_names || !plain_value ? model.get_count("attention.value_length_mla") : *plain_value;
    p.rotary = model.get_count("rope.dimension_count");
    p.nope = key - p.rotary;
    if (p.nope <= 0 || p.rotary % 2 != 0) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, the key's length {}", model.source(), model.key("rope.dimension_count"),
             p.rotary, key);
    }
    p.rope = read_rope(model, "norm", p.common.context);
    if (p.rope.given_attn_factor != 1) {
        fail(TSR_UNSUPPORTED, "{}: {} is {}; this version computes 1 for '{}'", model.source(),
             model.key("rope.scaling.attn_factor"), p.rope.given_attn_factor, model.architecture());
    }
    // YaRN's temperature goes into the scale of the scores as a whole (both of DeepSeek's mscales are equal), not into
    // the rotary part alone, so sine and cosine are not scaled.
    const bool yarn = p.rope.original_context > 0;
    const double log_multiplier = yarn ? model.or_said("rope.scaling.yarn_log_multiplier",
                                                       model.find_number("rope.scaling.yarn_log_multiplier"), 0.0)
                                       : p.rope.log_multiplier;
    const double mscale = 1.0 + log_multiplier * std::log(p.rope.factor);
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
    const Value kv_norm = b.weights.get_vector(name("attn_kv_a_norm.weight"), p.kv_lora);
    const Value wkv_b = b.weights.find(name("attn_kv_b"), {p.kv_lora, h * (p.nope + p.v)});
    // Absorbed matrices come with three dimensions, from some tools with the last two joined.
    const auto split = [&](const char* part, int64_t in, int64_t out) -> Value {
        const std::string full = name(part) + ".weight";
        if (!b.model.has_tensor(full)) return 0;
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

// Factors of 1 are nothing; the op of latent attention takes no others.
void check_rope_factors(ModelFile& model, int64_t rotary) {
    const gguf::TensorEntry* entry = model.file().find_tensor("rope_freqs.weight");
    if (!entry || entry->type != TSR_TYPE_F32 || std::cmp_not_equal(entry->elements(), rotary / 2)) return;
    std::vector<float> factors(entry->elements());
    model.file().read(*entry, 0, std::as_writable_bytes(std::span(factors)));
    if (std::ranges::all_of(factors, [](float factor) { return factor == 1.0f; }))
        model.leave_out({"^rope_freqs\\.weight$", "its factors are all 1"});
}

void describe(ModelFile& model, ModelInfo& info) {
    info.layers = static_cast<uint32_t>(read(model).common.layers);
    info.latent_attention = true;
}

Graph build(ModelFile& model, const OpSet& ops, const GraphLimits& limits) {
    const Parameters p = read(model);
    check_rope_factors(model, p.rotary);
    ModelBuilder b(model, ops, limits, p.common);
    Value hidden = b.embed();
    for (int64_t layer = 0; layer < p.common.layers; ++layer) {
        b.graph.set_layer(static_cast<int>(layer));
        const Value x = b.norm(hidden, ModelBuilder::block(layer, "attn_norm"), p.common.embedding);
        const Value heads = attention(b, p, layer, x);
        hidden = b.finish_layer(layer, heads, p.common.heads * p.v, hidden, layer < p.dense_layers ? nullptr : &p.moe,
                                p.shared_length);
    }
    return b.finish(hidden);
}

const UnusedTensors kUnusedTensors[] = {
    {R"(^blk\.\d+\.indexer\.)", "attention is dense: the indexer of sparse attention is not computed"},
};

constexpr KeyRule kUnusedKeys[] = {
    {"attention.indexer.*", "*", "the indexer is not computed", true},
};

}  // namespace

const Architecture kDeepseek2{"deepseek2", describe, build, {kUnusedTensors, kUnusedKeys}};

}  // namespace tessera
