// Llama and what follows its shape: grouped queries and dense feed-forward networks.
#include "core/model/architectures.hpp"
#include "core/model/grouped_query.hpp"

namespace tessera {

Graph build_llama(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits) {
    const CommonParameters common = read_common(file);
    const GroupedQueryParameters attention = read_grouped_query(file.metadata(), common, "norm");
    ModelBuilder b(file, ops, limits, common);
    Value hidden = b.embed();
    for (int64_t layer = 0; layer < common.layers; ++layer) {
        b.graph.set_layer(static_cast<int>(layer));
        const Value x = b.norm(hidden, ModelBuilder::block(layer, "attn_norm"), common.embedding);
        const Value heads = grouped_query_attention(b, attention, layer, x);
        hidden = b.finish_layer(layer, heads, attention.head_dim * common.heads, hidden, nullptr, 0);
    }
    return b.finish(hidden);
}

}  // namespace tessera
