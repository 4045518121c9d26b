// Qwen3 with experts: grouped queries with normalised heads, experts in every layer.
#include "core/model/architectures.hpp"
#include "core/model/grouped_query.hpp"

namespace tessera {

Graph build_qwen3moe(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits) {
    const CommonParameters common = read_common(file);
    GroupedQueryParameters attention = read_grouped_query(file.metadata(), common, "neox");
    attention.normalize_heads = true;
    ExpertParameters moe = read_experts(file.metadata(), common.architecture);
    moe.normalize = file.metadata().find_bool(common.architecture + ".expert_weights_norm").value_or(true);
    ModelBuilder b(file, ops, limits, common);
    Value hidden = b.embed();
    for (int64_t layer = 0; layer < common.layers; ++layer) {
        b.graph.set_layer(static_cast<int>(layer));
        const Value x = b.norm(hidden, ModelBuilder::block(layer, "attn_norm"), common.embedding);
        const Value heads = grouped_query_attention(b, attention, layer, x);
        hidden = b.finish_layer(layer, heads, attention.head_dim * common.heads, hidden, &moe, 0);
    }
    return b.finish(hidden);
}

}  // namespace tessera
