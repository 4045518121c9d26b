#include "core/model/grouped_query.hpp"

#include "core/base/error.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/ops.h>

#include <cmath>

namespace tessera {

GroupedQueryParameters read_grouped_query(const gguf::Metadata& metadata, const CommonParameters& common,
                                          const char* mode) {
    const std::string prefix = common.architecture + ".";
    if (common.heads % common.kv_heads != 0) {
        fail(TSR_CORRUPT_DATA, "{}: {} heads do not divide into {} key-value heads", metadata.source(), common.heads,
             common.kv_heads);
    }
    GroupedQueryParameters p;
    p.head_dim = find_count(metadata, prefix + "attention.key_length", common.embedding / common.heads);
    const int64_t value = find_count(metadata, prefix + "attention.value_length", p.head_dim);
    const int64_t rotary = find_count(metadata, prefix + "rope.dimension_count", p.head_dim);
    if (value != p.head_dim || rotary != p.head_dim || p.head_dim % 2 != 0) {
        fail(TSR_UNSUPPORTED, "{}: keys of {}, values of {} and {} rotary elements a head; they must be equal and even",
             metadata.source(), p.head_dim, value, rotary);
    }
    p.rope = read_rope(metadata, common.architecture, mode, static_cast<uint32_t>(common.context));
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
    Value q = b.reshape(projections[0], {d, h, rows}), k = b.reshape(projections[1], {d, kv, rows});
    if (p.normalize_heads) {
        q = b.norm(q, name("attn_q_norm"), d);
        k = b.norm(k, name("attn_k_norm"), d);
    }
    const Value factors = b.weights.find("rope_freqs", {d / 2});
    const std::vector<tsr_attribute> rope = p.rope.attributes(kRopeNames);
    q = b.graph.add(TSR_OP_ROPE, name("attn_q_rope"), {q, b.positions, factors}, rope).front();
    k = b.graph.add(TSR_OP_ROPE, name("attn_k_rope"), {k, b.positions, factors}, rope).front();
    const Value heads =
        b.graph.add_one(TSR_OP_CACHED_ATTENTION, name("attn"),
                        {q, k, b.reshape(projections[2], {d, kv, rows}), b.positions, b.sequences, b.page_table},
                        {sdk::attribute("scale", 1.0 / std::sqrt(static_cast<double>(d)))});
    return b.reshape(heads, {d * h, rows});
}

}  // namespace tessera
