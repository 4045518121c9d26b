#include "core/model/graph_builder.hpp"

#include <tessera/ops.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

using sdk::attribute;

Value GraphBuilder::feed_forward(int64_t layer, const FeedForward& described, Value x) {
    if (described.experts) return experts(layer, *described.experts, x);
    return network(TSR_OP_GATED_FFN, in_layer(layer, "ffn"),
                   {x, weights_.get(ModelTensor::kGate, layer), weights_.get(ModelTensor::kUp, layer),
                    weights_.get(ModelTensor::kDown, layer)},
                   {weights_.get(ModelTensor::kGateBias, layer), weights_.get(ModelTensor::kUpBias, layer),
                    weights_.get(ModelTensor::kDownBias, layer)},
                   described.unit);
}

Value GraphBuilder::network(const char* op, std::string name, std::vector<Value> operands,
                            const std::array<Value, 3>& biases, const Unit& unit) {
    constexpr const char* kActivations[] = {"silu", "gelu", "swiglu_oai"};
    std::vector<tsr_attribute> attributes;
    if (unit != Unit{})
        attributes.push_back(attribute("activation", kActivations[static_cast<size_t>(unit.activation)]));
    if (unit.limit != 0) attributes.push_back(attribute("limit", unit.limit));
    // Where there is nothing of both, a node is one that any kernel takes.
    if (!attributes.empty() || biases != std::array<Value, 3>{})
        operands.insert(operands.end(), biases.begin(), biases.end());
    return graph_.add(op, std::move(name), std::move(operands), attributes).front();
}

Value GraphBuilder::experts(int64_t layer, const Experts& e, Value x) {
    const auto name = [&](const char* part) { return in_layer(layer, part); };
    const Value logits =
        add_bias(graph_.add_one(TSR_OP_MATMUL, name("ffn_gate_inp"), {x, weights_.get(ModelTensor::kRouter, layer)}),
                 ModelTensor::kRouterBias, layer, "ffn_gate_inp");
    const Value bias = weights_.get(ModelTensor::kSelectionBias, layer);
    const tsr_attribute route[] = {
        attribute("used", e.used),
        attribute("gating", e.gating == Gating::kSigmoid ? "sigmoid" : "softmax"),
        attribute("groups", e.groups),
        attribute("groups_used", e.groups_used),
        attribute("normalize", int64_t{e.normalize}),
        attribute("scale", e.scale),
        attribute("keep_at_least", limits_.experts.ratio > 0 ? int64_t{limits_.experts.at_least} : e.used),
        attribute("keep_ratio", limits_.experts.ratio)};
    const auto chosen = graph_.add(TSR_OP_MOE_ROUTE, name("ffn_route"), {logits, bias}, route);
    const Value sum =
        network(TSR_OP_MOE_FFN, name("ffn_experts"),
                {x, chosen[0], chosen[1], weights_.get(ModelTensor::kGateExperts, layer),
                 weights_.get(ModelTensor::kUpExperts, layer), weights_.get(ModelTensor::kDownExperts, layer)},
                {weights_.get(ModelTensor::kGateExpertsBias, layer), weights_.get(ModelTensor::kUpExpertsBias, layer),
                 weights_.get(ModelTensor::kDownExpertsBias, layer)},
                e.unit);
    if (e.shared_length == 0) return sum;
    return graph_.add_one(TSR_OP_ADD, name("ffn_sum"), {sum, shared_experts(layer, e, x)});
}

Value GraphBuilder::shared_experts(int64_t layer, const Experts& e, Value x) {
    const auto name = [&](const char* part) { return in_layer(layer, part); };
    const Value given =
        network(TSR_OP_GATED_FFN, name("ffn_shared"),
                {x, weights_.get(ModelTensor::kGateShared, layer), weights_.get(ModelTensor::kUpShared, layer),
                 weights_.get(ModelTensor::kDownShared, layer)},
                {}, e.shared_unit);
    if (!e.shared_gate) return given;
    // One expert that is always chosen, whose weight is the sigmoid of its logit.
    const Value logit =
        graph_.add_one(TSR_OP_MATMUL, name("ffn_shared_gate"), {x, weights_.get(ModelTensor::kSharedGate, layer)});
    const auto chosen = graph_.add(TSR_OP_MOE_ROUTE, name("ffn_shared_route"), {logit, 0},
                                   std::array{attribute("used", int64_t{1}), attribute("gating", "sigmoid")});
    const int64_t rows = graph_.tensor(x).dims[1];
    return graph_.add_one(TSR_OP_WEIGHTED_SUM, name("ffn_shared_gated"),
                          {reshape(given, {description_.embedding, 1, rows}), chosen[1]});
}

}  // namespace tessera
