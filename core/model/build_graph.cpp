#include "core/model/build_graph.hpp"

#include "core/base/error.hpp"
#include "core/model/graph_builder.hpp"
#include "core/model/not_computed.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/ops.h>

#include <array>
#include <string>
#include <utility>

namespace tessera {

GraphBuilder::GraphBuilder(const ModelDescription& description, ModelFile& model, const OpSet& ops,
                           const GraphLimits& limits)
    : description_(description),
      model_(model),
      limits_(limits),
      context_(int64_t{limits.sequence_pages} * TSR_PAGE_TOKENS),
      expected_(description),
      graph_(ops),
      weights_(model, graph_, expected_) {
    const GraphInputs inputs = add_inputs(graph_, limits);
    tokens_ = inputs.tokens;
    positions_ = inputs.positions;
    sequences_ = inputs.sequences;
    page_table_ = inputs.page_table;
    output_rows_ = inputs.output_rows;
}

Value GraphBuilder::norm(Value x, ModelTensor weight, int64_t layer, Value into) {
    const Value factors = weights_.get(weight, layer);
    if (!factors) return x;
    std::string name = graph_.tensor(factors).name;
    name.resize(name.rfind('.'));
    return graph_
        .add(TSR_OP_RMS_NORM, std::move(name), {x, factors},
             std::array{sdk::attribute("epsilon", description_.epsilon)}, {into})
        .front();
}

Value GraphBuilder::add_bias(Value x, ModelTensor bias, int64_t layer, const char* part) {
    const Value value = weights_.get(bias, layer);
    return value ? graph_.add_one(TSR_OP_ADD, in_layer(layer, part) + "_bias", {x, value}) : x;
}

Value GraphBuilder::scaled(Value x, double factor, std::string name) {
    if (factor == 1) return x;
    return graph_.add(TSR_OP_SCALE, std::move(name), {x}, std::array{sdk::attribute("factor", factor)}, {x}).front();
}

Value GraphBuilder::reshape(Value x, std::initializer_list<int64_t> dims) {
    tsr_tensor shape = dense_tensor({TSR_TYPE_F32, dims, graph_.tensor(x).range}, TSR_ROLE_ACTIVATION);
    shape.offset = graph_.tensor(x).offset;
    return graph_.view(x, shape);
}

Value GraphBuilder::layer(int64_t index, Value rows) {
    const auto name = [&](const char* part) { return in_layer(index, part); };
    const int64_t place = index - description_.first_layer;
    graph_.set_layer(static_cast<int>(place));
    Value heads = attention(index, description_.layers[static_cast<size_t>(place)].attention,
                            norm(rows, ModelTensor::kAttentionNorm, index));
    if (std::cmp_equal(place + 1, description_.layers.size())) {
        // Computed apart from the output rows, whose bits would be others among many.
        if (limits_.states && !description_.predicts) row_states_ = layer_end(index, heads, rows);
        heads = graph_.add_one(TSR_OP_GET_ROWS, name("output_rows"), {heads, output_rows_});
        rows = graph_.add_one(TSR_OP_GET_ROWS, name("output_residual"), {rows, output_rows_});
    }
    return layer_end(index, heads, rows);
}

Value GraphBuilder::layer_end(int64_t index, Value heads, Value rows) {
    const Layer& described = description_.layers[static_cast<size_t>(index - description_.first_layer)];
    const auto name = [&](const char* part) { return in_layer(index, part); };
    const Value projected =
        graph_.add_one(TSR_OP_MATMUL, name("attn_output"), {heads, weights_.get(ModelTensor::kAttentionOutput, index)});
    const Value biased = add_bias(projected, ModelTensor::kAttentionOutputBias, index, "attn_output");
    const Value attended = scaled(norm(biased, ModelTensor::kPostAttentionNorm, index), described.residual_scale,
                                  name("attn_residual_scale"));
    const Value middle = graph_.add_one(TSR_OP_ADD, name("attn_residual"), {attended, rows});
    Value given = feed_forward(index, described.feed_forward, norm(middle, ModelTensor::kFeedForwardNorm, index));
    given = scaled(norm(given, ModelTensor::kPostFeedForwardNorm, index), described.residual_scale,
                   name("ffn_residual_scale"));
    return graph_.add_one(TSR_OP_ADD, name("ffn_residual"), {given, middle});
}

Value GraphBuilder::predicted_rows(Value embeddings) {
    const int64_t layer = description_.first_layer, e = description_.embedding;
    // What reads given states alone would be computed on the host else.
    graph_.set_layer(0);
    const Value states = graph_.input(kGivenStates, {TSR_TYPE_F32, {e, limits_.rows}, TSR_RANGE_ROWS});
    const Value both =
        graph_.buffer(in_layer(layer, "nextn.eh"), {TSR_TYPE_F32, {2 * e, limits_.rows}, TSR_RANGE_ROWS});
    const auto half = [&](int64_t first) {
        tsr_tensor part = graph_.tensor(both);
        part.dims[0] = e;
        part.offset = first * part.strides[0];
        return graph_.view(both, part);
    };
    norm(embeddings, ModelTensor::kPredictionTokenNorm, layer, half(0));
    norm(states, ModelTensor::kPredictionStateNorm, layer, half(e));
    return graph_.add_one(TSR_OP_MATMUL, in_layer(layer, "nextn.eh_proj"),
                          {both, weights_.get(ModelTensor::kPredictionProjection, layer)});
}

Value GraphBuilder::output(Value rows) {
    graph_.set_layer(static_cast<int>(description_.layers.size()));
    if (row_states_) graph_.set_output(kRowStates, norm(row_states_, ModelTensor::kOutputNorm));
    rows = norm(rows, ModelTensor::kOutputNorm);
    if (limits_.states) graph_.set_output(kStates, rows);
    if (limits_.hidden_states) {
        graph_.set_output(kHidden, rows);
        rows = reshape(rows, {description_.embedding, limits_.output_rows});
    }
    const Value matrix =
        weights_.get(description_.tied_embeddings ? ModelTensor::kTokenEmbeddings : ModelTensor::kOutput);
    Value logits = graph_.add_one(TSR_OP_MATMUL, "output", {rows, matrix});
    if (const Value bias = weights_.get(ModelTensor::kOutputBias))
        logits = graph_.add_one(TSR_OP_ADD, "output_bias", {logits, bias});
    return scaled(logits, description_.logit_scale, "logit_scale");
}

Graph GraphBuilder::build() {
    Value rows = graph_.add_one(TSR_OP_GET_ROWS, "token_embd", {weights_.get(ModelTensor::kTokenEmbeddings), tokens_});
    rows = scaled(rows, description_.embedding_scale, "embedding_scale");
    if (description_.predicts) rows = predicted_rows(rows);
    for (int64_t i = 0; std::cmp_less(i, description_.layers.size()); ++i)
        rows = layer(description_.first_layer + i, rows);
    graph_.set_output(kLogits, output(rows));
    weights_.check_all_taken();
    return std::move(graph_);
}

GraphInputs add_inputs(Graph& graph, const GraphLimits& limits) {
    const int64_t rows = limits.rows;
    GraphInputs inputs{};
    inputs.tokens = graph.input(kTokens, {TSR_TYPE_I32, {rows}, TSR_RANGE_ROWS});
    inputs.positions = graph.input(kPositions, {TSR_TYPE_I32, {rows}, TSR_RANGE_ROWS});
    inputs.sequences = graph.input(kSequences, {TSR_TYPE_I32, {rows}, TSR_RANGE_ROWS});
    inputs.page_table = graph.input(kPageTable, {TSR_TYPE_I32, {limits.sequence_pages, limits.sequences}});
    inputs.output_rows = graph.input(
        kOutputRows, {TSR_TYPE_I32, {limits.hidden_states ? limits.rows : limits.output_rows}, TSR_RANGE_OUTPUT_ROWS});
    return inputs;
}

Graph build_graph(const ModelDescription& description, ModelFile& model, const OpSet& ops, const GraphLimits& limits) {
    check_computed(description, model);
    GraphBuilder builder(description, model, ops, limits);
    Graph graph = builder.build();
    if (description.tied_embeddings)
        model.note("output.weight is not in the file: token_embd.weight is the output matrix, too");
    return graph;
}

}  // namespace tessera
