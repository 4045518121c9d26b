// Qwen3 with experts: grouped queries with normalised heads, experts in every layer.
#include "core/base/error.hpp"
#include "core/model/architectures.hpp"
#include "core/model/grouped_query.hpp"

namespace tessera {
namespace {

Graph build(ModelFile& model, const OpSet& ops, const GraphLimits& limits) {
    const CommonParameters common = read_common(model);
    GroupedQueryParameters attention = read_grouped_query(model, common, "neox");
    attention.normalize_heads = true;
    // Converters of others may leave out the length of an expert, which is a share of the dense one then.
    const int64_t used = model.find_count("expert_used_count", 0).value_or(0);
    const ExpertParameters moe = read_experts(model, common.layers, true, used > 0 ? common.feed_forward / used : 0);
    if (moe.count == 0) {
        fail(TSR_CORRUPT_DATA, "{}: {} is missing or 0, but every layer of this architecture has experts",
             model.source(), model.key("expert_count"));
    }
    ModelBuilder b(model, ops, limits, common);
    Value hidden = b.embed();
    for (int64_t layer = 0; layer < common.layers; ++layer) {
        b.graph.set_layer(static_cast<int>(layer));
        const Value x = b.norm(hidden, ModelBuilder::block(layer, "attn_norm"), common.embedding);
        const Value heads = grouped_query_attention(b, attention, layer, x);
        hidden = b.finish_layer(layer, heads, attention.head_dim * common.heads, hidden, &moe, 0);
    }
    return b.finish(hidden);
}

}  // namespace

const Architecture kQwen3moe{"qwen3moe", nullptr, build, {}};

}  // namespace tessera
