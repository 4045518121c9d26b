#include "core/model/blocks.hpp"

#include "core/base/error.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/ops.h>

#include <cmath>
#include <limits>

namespace tessera {
namespace {

using sdk::attribute;

int64_t checked_count(const gguf::Metadata& metadata, const std::string& key, uint64_t value, int64_t minimum) {
    if (value < static_cast<uint64_t>(minimum) || value > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}; expected at least {}", metadata.source(), key, value, minimum);
    }
    return static_cast<int64_t>(value);
}

}  // namespace

int64_t get_count(const gguf::Metadata& metadata, const std::string& key, int64_t minimum) {
    return checked_count(metadata, key, metadata.get_u64(key), minimum);
}

int64_t find_count(const gguf::Metadata& metadata, const std::string& key, int64_t otherwise, int64_t minimum) {
    const auto value = metadata.find_u64(key);
    return value ? checked_count(metadata, key, *value, minimum) : otherwise;
}

CommonParameters read_common(const gguf::GgufFile& file) {
    const gguf::Metadata& metadata = file.metadata();
    CommonParameters common;
    common.architecture = metadata.get_string("general.architecture");
    const std::string prefix = common.architecture + ".";
    common.layers = get_count(metadata, prefix + "block_count");
    common.embedding = get_count(metadata, prefix + "embedding_length");
    common.context = get_count(metadata, prefix + "context_length");
    common.heads = get_count(metadata, prefix + "attention.head_count");
    common.kv_heads = find_count(metadata, prefix + "attention.head_count_kv", common.heads);
    common.feed_forward = find_count(metadata, prefix + "feed_forward_length", 0, 0);
    common.epsilon = metadata.get_f32(prefix + "attention.layer_norm_rms_epsilon");
    if (!(common.epsilon > 0) || !std::isfinite(common.epsilon)) {
        fail(TSR_CORRUPT_DATA, "{}: {}attention.layer_norm_rms_epsilon is {}", metadata.source(), prefix,
             common.epsilon);
    }
    const gguf::TensorEntry& table = file.tensor("token_embd.weight");
    common.vocabulary = checked_count(metadata, "token_embd.weight rows", table.dims[1], 1);
    return common;
}

ExpertParameters read_experts(const gguf::Metadata& metadata, const std::string& architecture) {
    const std::string prefix = architecture + ".";
    ExpertParameters moe;
    moe.count = get_count(metadata, prefix + "expert_count");
    moe.used = get_count(metadata, prefix + "expert_used_count");
    moe.feed_forward = get_count(metadata, prefix + "expert_feed_forward_length");
    moe.groups = find_count(metadata, prefix + "expert_group_count", 1);
    moe.groups_used = moe.groups > 1 ? get_count(metadata, prefix + "expert_group_used_count") : 1;
    const uint32_t gating = metadata.find_u32(prefix + "expert_gating_func").value_or(1);
    if (gating != 1 && gating != 2) {
        fail(TSR_UNSUPPORTED, "{}: {}expert_gating_func is {}; 1 (softmax) and 2 (sigmoid) are known",
             metadata.source(), prefix, gating);
    }
    moe.sigmoid = gating == 2;
    moe.normalize = metadata.find_bool(prefix + "expert_weights_norm").value_or(false);
    moe.scale = metadata.find_f32(prefix + "expert_weights_scale").value_or(1.0f);
    if (moe.scale == 0.0) moe.scale = 1.0;  // converters write 0 where the model has no scale
    if (!std::isfinite(moe.scale))
        fail(TSR_CORRUPT_DATA, "{}: {}expert_weights_scale is {}", metadata.source(), prefix, moe.scale);
    return moe;
}

ModelBuilder::ModelBuilder(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits,
                           const CommonParameters& parameters)
    : graph(ops), weights(file, graph), common(parameters), reduction_(limits.experts) {
    const int64_t rows = limits.rows;
    tokens = graph.input(kTokens, {TSR_TYPE_I32, {rows}, TSR_RANGE_ROWS});
    positions = graph.input(kPositions, {TSR_TYPE_I32, {rows}, TSR_RANGE_ROWS});
    sequences = graph.input(kSequences, {TSR_TYPE_I32, {rows}, TSR_RANGE_ROWS});
    page_table = graph.input(kPageTable, {TSR_TYPE_I32, {limits.sequence_pages, limits.sequences}});
    output_rows = graph.input(kOutputRows, {TSR_TYPE_I32, {limits.output_rows}, TSR_RANGE_OUTPUT_ROWS});
}

Value ModelBuilder::embed() {
    const Value table = weights.get("token_embd", {common.embedding, common.vocabulary});
    return graph.add_one(TSR_OP_GET_ROWS, "token_embd", {table, tokens});
}

Value ModelBuilder::norm(Value x, const std::string& weight, int64_t length) {
    return graph.add_one(TSR_OP_RMS_NORM, weight, {x, weights.get(weight, {length})},
                         {attribute("epsilon", common.epsilon)});
}

Value ModelBuilder::reshape(Value x, std::initializer_list<int64_t> dims) {
    tsr_tensor shape = dense_tensor({TSR_TYPE_F32, dims, graph.tensor(x).range}, TSR_ROLE_ACTIVATION);
    shape.offset = graph.tensor(x).offset;
    return graph.view(x, shape);
}

Value ModelBuilder::dense_ffn(int64_t layer, Value x) {
    if (common.feed_forward == 0) {
        fail(TSR_NOT_FOUND, "layer {} is dense, but the file has no {}.feed_forward_length", layer,
             common.architecture);
    }
    const int64_t e = common.embedding, f = common.feed_forward;
    return graph.add_one(TSR_OP_GATED_FFN, block(layer, "ffn"),
                         {x, weights.get(block(layer, "ffn_gate"), {e, f}), weights.get(block(layer, "ffn_up"), {e, f}),
                          weights.get(block(layer, "ffn_down"), {f, e})});
}

Value ModelBuilder::expert_ffn(int64_t layer, Value x, const ExpertParameters& moe, int64_t shared) {
    const int64_t e = common.embedding, f = moe.feed_forward, n = moe.count;
    const Value logits = graph.add_one(TSR_OP_MATMUL, block(layer, "ffn_gate_inp"),
                                       {x, weights.get(block(layer, "ffn_gate_inp"), {e, n})});
    Value bias = weights.find_exact(block(layer, "exp_probs_b.bias"), {n});
    if (!bias) bias = weights.find_exact(block(layer, "exp_probs_b"), {n});
    const tsr_attribute route[] = {
        attribute("used", moe.used),
        attribute("gating", moe.sigmoid ? "sigmoid" : "softmax"),
        attribute("groups", moe.groups),
        attribute("groups_used", moe.groups_used),
        attribute("normalize", int64_t{moe.normalize}),
        attribute("scale", moe.scale),
        attribute("keep_at_least", reduction_.ratio > 0 ? int64_t{reduction_.at_least} : moe.used),
        attribute("keep_ratio", reduction_.ratio)};
    const auto chosen = graph.add(TSR_OP_MOE_ROUTE, block(layer, "ffn_route"), {logits, bias}, route);
    Value sum = graph.add_one(
        TSR_OP_MOE_FFN, block(layer, "ffn_experts"),
        {x, chosen[0], chosen[1], weights.get(block(layer, "ffn_gate_exps"), {e, f, n}),
         weights.get(block(layer, "ffn_up_exps"), {e, f, n}), weights.get(block(layer, "ffn_down_exps"), {f, e, n})});
    if (shared > 0) {
        const Value always = graph.add_one(TSR_OP_GATED_FFN, block(layer, "ffn_shared"),
                                           {x, weights.get(block(layer, "ffn_gate_shexp"), {e, shared}),
                                            weights.get(block(layer, "ffn_up_shexp"), {e, shared}),
                                            weights.get(block(layer, "ffn_down_shexp"), {shared, e})});
        sum = graph.add_one(TSR_OP_ADD, block(layer, "ffn_sum"), {sum, always});
    }
    return sum;
}

Value ModelBuilder::finish_layer(int64_t layer, Value attention, int64_t width, Value residual,
                                 const ExpertParameters* moe, int64_t shared_feed_forward) {
    if (layer + 1 == common.layers) {
        attention = graph.add_one(TSR_OP_GET_ROWS, block(layer, "output_rows"), {attention, output_rows});
        residual = graph.add_one(TSR_OP_GET_ROWS, block(layer, "output_residual"), {residual, output_rows});
    }
    const Value projected =
        graph.add_one(TSR_OP_MATMUL, block(layer, "attn_output"),
                      {attention, weights.get(block(layer, "attn_output"), {width, common.embedding})});
    const Value middle = graph.add_one(TSR_OP_ADD, block(layer, "attn_residual"), {projected, residual});
    const Value x = norm(middle, block(layer, "ffn_norm"), common.embedding);
    const Value ffn = moe ? expert_ffn(layer, x, *moe, shared_feed_forward) : dense_ffn(layer, x);
    return graph.add_one(TSR_OP_ADD, block(layer, "ffn_residual"), {ffn, middle});
}

Graph ModelBuilder::finish(Value x) {
    graph.set_layer(static_cast<int>(common.layers));
    x = norm(x, "output_norm", common.embedding);
    Value matrix = weights.find("output", {common.embedding, common.vocabulary});
    if (!matrix) matrix = weights.get("token_embd", {common.embedding, common.vocabulary});
    graph.set_output(kLogits, graph.add_one(TSR_OP_MATMUL, "output", {x, matrix}));
    return std::move(graph);
}

}  // namespace tessera
