#include "core/model/grouped_query.hpp"

#include "core/base/error.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/ops.h>

#include <cmath>

namespace tessera {

GroupedQueryParameters read_grouped_query(ModelFile& model, const CommonParameters& common, const char* mode) {
    if (common.heads % common.kv_heads != 0) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, which is not a multiple of {}, {}", model.source(),
             model.key("attention.head_count"), common.heads, model.key("attention.head_count_kv"), common.kv_heads);
    }
    GroupedQueryParameters p;
    p.head_dim = model.find_count("attention.key_length").value_or(common.embedding / common.heads);
    const int64_t value = model.find_count("attention.value_length").value_or(p.head_dim);
    const int64_t rotary = model.find_count("rope.dimension_count").value_or(p.head_dim);
    if (value != p.head_dim || rotary != p.head_dim || p.head_dim % 2 != 0) {
        fail(TSR_UNSUPPORTED,
             "{}: {} is {}, {} {} and {} {}; what this version computes as '{}' needs them equal and even",
             model.source(), model.key("attention.key_length"), p.head_dim, model.key("attention.value_length"), value,
             model.key("rope.dimension_count"), rotary, model.architecture());
    }
    p.scale = model.find_number("attention.scale").value_or(1.0 / std::sqrt(static_cast<double>(p.head_dim)));
    p.rope = read_rope(model, mode, common.context);
    return p;
}

Value grouped_query_attention(ModelBuilder& b, const GroupedQueryParameters& p, int64_t layer, Value x) {
    const auto name = [&](const char* part) { return ModelBuilder::block(layer, part); };
    const int64_t e = b.common.embedding, d = p.head_dim, h = b.common.heads, kv = b.common.kv_heads;
    const int64_t rows = b.graph.tensor(x).dims[1];
    const auto projections =
        b.graph.add(TSR_OP_MATMUL_GROUP, name("attn_qkv"),
                    {x, b.weights.get(name("attn_q"), {e, d * h}), b.weights.get(name("attn_k"), {e, d * kv}),
                     b.weights.get(name("attn_v"), {e, d * kv})});
    Value q = b.reshape(b.add_bias(projections[0], layer, "attn_q", d * h), {d, h, rows});
    Value k = b.reshape(b.add_bias(projections[1], layer, "attn_k", d * kv), {d, kv, rows});
    const Value v = b.reshape(b.add_bias(projections[2], layer, "attn_v", d * kv), {d, kv, rows});
    if (p.normalize_heads) {
        q = b.norm(q, name("attn_q_norm"), d);
        k = b.norm(k, name("attn_k_norm"), d);
    }
    const Value factors = b.weights.find_vector("rope_freqs.weight", d / 2);
    const std::vector<tsr_attribute> rope = p.rope.attributes(kRopeNames);
    q = b.graph.add(TSR_OP_ROPE, name("attn_q_rope"), {q, b.positions, factors}, rope).front();
    k = b.graph.add(TSR_OP_ROPE, name("attn_k_rope"), {k, b.positions, factors}, rope).front();
    const Value heads =
        b.graph.add_one(TSR_OP_CACHED_ATTENTION, name("attn"), {q, k, v, b.positions, b.sequences, b.page_table},
                        {sdk::attribute("scale", p.scale)});
    return b.reshape(heads, {d * h, rows});
}

}  // namespace tessera
