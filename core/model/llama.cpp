// Llama and what follows its shape: grouped queries, and dense feed-forward networks or, as in Mixtral, experts in
// every layer.
#include "core/model/architectures.hpp"
#include "core/model/grouped_query.hpp"

namespace tessera {
namespace {

// Llama 3.1 and later divide frequencies by factors that lie in the file; some converters left them out.
void check_rope_factors(ModelFile& model, const RopeParameters& rope, const CommonParameters& common) {
    constexpr double kBaseOfLlama3 = 500000;
    constexpr int64_t kContextOfLlama3 = 8192;
    if (rope.base == kBaseOfLlama3 && common.context != kContextOfLlama3 && !model.has_tensor("rope_freqs.weight"))
        model.note("rope_freqs.weight is not in the file; files of Llama 3.1 and later have it");
}

Graph build(ModelFile& model, const OpSet& ops, const GraphLimits& limits) {
    const CommonParameters common = read_common(model);
    const GroupedQueryParameters attention = read_grouped_query(model, common, "norm");
    const ExpertParameters moe = read_experts(model, common.layers, true, common.feed_forward);
    check_rope_factors(model, attention.rope, common);
    ModelBuilder b(model, ops, limits, common);
    Value hidden = b.embed();
    for (int64_t layer = 0; layer < common.layers; ++layer) {
        b.graph.set_layer(static_cast<int>(layer));
        const Value x = b.norm(hidden, ModelBuilder::block(layer, "attn_norm"), common.embedding);
        const Value heads = grouped_query_attention(b, attention, layer, x);
        hidden =
            b.finish_layer(layer, heads, attention.head_dim * common.heads, hidden, moe.count > 0 ? &moe : nullptr, 0);
    }
    return b.finish(hidden);
}

}  // namespace

const Architecture kLlama{"llama", nullptr, build, {}};

}  // namespace tessera
