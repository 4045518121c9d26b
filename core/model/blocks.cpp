#include "core/model/blocks.hpp"

#include "core/base/error.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tessera {
namespace {

using sdk::attribute;

// Numbers of expert_gating_func in files.
constexpr int64_t kNotGiven = 0, kSoftmax = 1, kSigmoid = 2;

// In one of the layers that are computed.
bool has_selection_bias(const ModelFile& model, int64_t layers) {
    for (int64_t layer = 0; layer < layers; ++layer) {
        for (const char* name : {"exp_probs_b.bias", "exp_probs_b"}) {
            if (model.has_tensor(ModelBuilder::block(layer, name))) return true;
        }
    }
    return false;
}

// Only the gating by sigmoids (DeepSeek-V3, arXiv 2412.19437) has a bias on selection.
int64_t read_gating(ModelFile& model, bool biased) {
    const int64_t given = model.find_count("expert_gating_func", 0).value_or(kNotGiven);
    if (given == kSoftmax || given == kSigmoid) return given;
    if (given != kNotGiven) {
        fail(TSR_UNSUPPORTED, "{}: {} is {}; 1 (softmax) and 2 (sigmoid) are known", model.source(),
             model.key("expert_gating_func"), given);
    }
    model.say_default("expert_gating_func", biased ? "2 (sigmoid, since there is exp_probs_b)" : "1 (softmax)");
    return biased ? kSigmoid : kSoftmax;
}

}  // namespace

CommonParameters read_common(ModelFile& model) {
    CommonParameters common;
    common.architecture = model.architecture();
    common.layers = model.get_count("block_count");
    // Every layer has tensors of its own, but for those of prediction, which some converters drop.
    const size_t tensors = model.file().tensors().size();
    if (std::cmp_greater(common.layers, tensors + kMaxPredictionLayers)) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, but the file has {} tensors", model.source(), model.key("block_count"),
             common.layers, tensors);
    }
    common.embedding = model.get_count("embedding_length");
    common.context = model.get_count("context_length");
    common.heads = model.get_count("attention.head_count");
    common.kv_heads = model.find_count("attention.head_count_kv").value_or(common.heads);
    common.feed_forward = model.find_count("feed_forward_length", 0).value_or(0);
    common.epsilon = model.get_positive("attention.layer_norm_rms_epsilon");
    const uint64_t rows = model.file().tensor("token_embd.weight").dims[1];
    if (rows > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
        fail(TSR_CORRUPT_DATA, "{}: token_embd.weight has {} rows", model.source(), rows);
    common.vocabulary = static_cast<int64_t>(rows);
    if (const auto said = model.find_count("vocab_size", 0); said.value_or(common.vocabulary) != common.vocabulary) {
        model.note(fmt::format("{} is {}; the vocabulary has the {} rows of token_embd.weight", model.key("vocab_size"),
                               *said, common.vocabulary));
    }
    return common;
}

ExpertParameters read_experts(ModelFile& model, int64_t layers, bool normalize, int64_t feed_forward) {
    ExpertParameters moe;
    moe.count = model.find_count("expert_count", 0).value_or(0);
    if (moe.count == 0) return moe;
    moe.used = model.get_count("expert_used_count");
    if (moe.used > moe.count) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {} of {} experts", model.source(), model.key("expert_used_count"), moe.used,
             moe.count);
    }
    const auto length = model.find_count("expert_feed_forward_length");
    if (!length && feed_forward == 0)
        fail(TSR_NOT_FOUND, "{}: key '{}' is missing", model.source(), model.key("expert_feed_forward_length"));
    moe.feed_forward = length.value_or(feed_forward);
    const auto groups = model.find_count("expert_group_count", 0);
    const auto groups_used = model.find_count("expert_group_used_count", 0);
    if (!groups && groups_used) model.say_default("expert_group_count", "1");
    moe.groups = std::max<int64_t>(groups.value_or(1), 1);
    if (moe.groups > 1) moe.groups_used = model.get_count("expert_group_used_count");
    const bool biased = has_selection_bias(model, layers);
    moe.sigmoid = read_gating(model, biased) == kSigmoid;
    if (moe.sigmoid && !biased)
        model.note("exp_probs_b.bias is not in the file: experts are selected by their weights alone");
    moe.normalize = model.or_said("expert_weights_norm", model.find_bool("expert_weights_norm"), normalize);
    moe.scale = model.or_said("expert_weights_scale", model.find_number("expert_weights_scale"), 1.0);
    return moe;
}

ModelBuilder::ModelBuilder(ModelFile& from, const OpSet& ops, const GraphLimits& limits,
                           const CommonParameters& parameters)
    : graph(ops), weights(from, graph), common(parameters), model(from), reduction_(limits.experts) {
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
    return graph.add_one(TSR_OP_RMS_NORM, weight, {x, weights.get_vector(weight + ".weight", length)},
                         {attribute("epsilon", common.epsilon)});
}

Value ModelBuilder::add_bias(Value x, int64_t layer, const char* part, int64_t length) {
    const Value bias = weights.find_in_layer(layer, std::string(part) + ".bias", length);
    return bias ? graph.add_one(TSR_OP_ADD, block(layer, part) + "_bias", {x, bias}) : x;
}

Value ModelBuilder::reshape(Value x, std::initializer_list<int64_t> dims) {
    tsr_tensor shape = dense_tensor({TSR_TYPE_F32, dims, graph.tensor(x).range}, TSR_ROLE_ACTIVATION);
    shape.offset = graph.tensor(x).offset;
    return graph.view(x, shape);
}

Value ModelBuilder::dense_ffn(int64_t layer, Value x) {
    if (common.feed_forward == 0) {
        fail(TSR_NOT_FOUND, "{}: layer {} is dense, but key '{}' is missing or 0", model.source(), layer,
             model.key("feed_forward_length"));
    }
    const int64_t e = common.embedding, f = common.feed_forward;
    const Value gate_bias = weights.find_in_layer(layer, "ffn_gate.bias", f);
    const Value up_bias = weights.find_in_layer(layer, "ffn_up.bias", f);
    const Value down = gate_bias || up_bias ? biased_ffn(x, layer, gate_bias, up_bias)
                                            : graph.add_one(TSR_OP_GATED_FFN, block(layer, "ffn"),
                                                            {x, weights.get(block(layer, "ffn_gate"), {e, f}),
                                                             weights.get(block(layer, "ffn_up"), {e, f}),
                                                             weights.get(block(layer, "ffn_down"), {f, e})});
    return add_bias(down, layer, "ffn_down", e);
}

// gated_ffn in its parts, between which there is room for biases.
Value ModelBuilder::biased_ffn(Value x, int64_t layer, Value gate_bias, Value up_bias) {
    const int64_t e = common.embedding, f = common.feed_forward;
    const auto both =
        graph.add(TSR_OP_MATMUL_GROUP, block(layer, "ffn_gate_up"),
                  {x, weights.get(block(layer, "ffn_gate"), {e, f}), weights.get(block(layer, "ffn_up"), {e, f})});
    Value gate = both[0], up = both[1];
    if (gate_bias) gate = graph.add_one(TSR_OP_ADD, block(layer, "ffn_gate_bias"), {gate, gate_bias});
    if (up_bias) up = graph.add_one(TSR_OP_ADD, block(layer, "ffn_up_bias"), {up, up_bias});
    const Value active = graph.add_one(TSR_OP_SILU_MUL, block(layer, "ffn_act"), {gate, up});
    return graph.add_one(TSR_OP_MATMUL, block(layer, "ffn_down"),
                         {active, weights.get(block(layer, "ffn_down"), {f, e})});
}

Value ModelBuilder::expert_ffn(int64_t layer, Value x, const ExpertParameters& moe, int64_t shared) {
    const int64_t e = common.embedding, f = moe.feed_forward, n = moe.count;
    const Value logits = graph.add_one(TSR_OP_MATMUL, block(layer, "ffn_gate_inp"),
                                       {x, weights.get(block(layer, "ffn_gate_inp"), {e, n})});
    // Older converters left ".bias" out.
    const Value bias = weights.find_in_layer(layer, "exp_probs_b.bias", n, "exp_probs_b");
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
        add_bias(graph.add_one(TSR_OP_MATMUL, block(layer, "attn_output"),
                               {attention, weights.get(block(layer, "attn_output"), {width, common.embedding})}),
                 layer, "attn_output", common.embedding);
    const Value middle = graph.add_one(TSR_OP_ADD, block(layer, "attn_residual"), {projected, residual});
    const Value x = norm(middle, block(layer, "ffn_norm"), common.embedding);
    const Value ffn = moe ? expert_ffn(layer, x, *moe, shared_feed_forward) : dense_ffn(layer, x);
    return graph.add_one(TSR_OP_ADD, block(layer, "ffn_residual"), {ffn, middle});
}

Graph ModelBuilder::finish(Value x) {
    graph.set_layer(static_cast<int>(common.layers));
    x = norm(x, "output_norm", common.embedding);
    Value matrix = weights.find("output", {common.embedding, common.vocabulary});
    if (!matrix) {
        matrix = weights.get("token_embd", {common.embedding, common.vocabulary});
        model.note("output.weight is not in the file: token_embd.weight is the output matrix, too");
    }
    Value logits = graph.add_one(TSR_OP_MATMUL, "output", {x, matrix});
    if (const Value bias = weights.find_vector("output.bias", common.vocabulary))
        logits = graph.add_one(TSR_OP_ADD, "output_bias", {logits, bias});
    graph.set_output(kLogits, logits);
    weights.check_layers();
    return std::move(graph);
}

}  // namespace tessera
