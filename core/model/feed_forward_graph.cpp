#include "core/model/graph_builder.hpp"

#include <tessera/ops.h>

#include <array>

namespace tessera {

using sdk::attribute;

Value GraphBuilder::feed_forward(int64_t layer, const FeedForward& described, Value x) {
    if (described.experts) return experts(layer, *described.experts, x);
    const Value gate_bias = weights_.get(TensorPart::kGateBias, layer);
    const Value up_bias = weights_.get(TensorPart::kUpBias, layer);
    const Value down =
        gate_bias || up_bias
            ? biased_network(layer, x, gate_bias, up_bias)
            : graph_.add_one(TSR_OP_GATED_FFN, in_layer(layer, "ffn"),
                             {x, weights_.get(TensorPart::kGate, layer), weights_.get(TensorPart::kUp, layer),
                              weights_.get(TensorPart::kDown, layer)});
    return add_bias(down, TensorPart::kDownBias, layer, "ffn_down");
}

// gated_ffn in its parts, between which there is room for biases.
Value GraphBuilder::biased_network(int64_t layer, Value x, Value gate_bias, Value up_bias) {
    const auto name = [&](const char* part) { return in_layer(layer, part); };
    const auto both = graph_.add(TSR_OP_MATMUL_GROUP, name("ffn_gate_up"),
                                 {x, weights_.get(TensorPart::kGate, layer), weights_.get(TensorPart::kUp, layer)});
    Value gate = both[0], up = both[1];
    if (gate_bias) gate = graph_.add_one(TSR_OP_ADD, name("ffn_gate_bias"), {gate, gate_bias});
    if (up_bias) up = graph_.add_one(TSR_OP_ADD, name("ffn_up_bias"), {up, up_bias});
    const Value active = graph_.add_one(TSR_OP_SILU_MUL, name("ffn_act"), {gate, up});
    return graph_.add_one(TSR_OP_MATMUL, name("ffn_down"), {active, weights_.get(TensorPart::kDown, layer)});
}

Value GraphBuilder::experts(int64_t layer, const Experts& e, Value x) {
    const auto name = [&](const char* part) { return in_layer(layer, part); };
    const Value logits =
        graph_.add_one(TSR_OP_MATMUL, name("ffn_gate_inp"), {x, weights_.get(TensorPart::kRouter, layer)});
    const Value bias = weights_.get(TensorPart::kSelectionBias, layer);
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
        graph_.add_one(TSR_OP_MOE_FFN, name("ffn_experts"),
                       {x, chosen[0], chosen[1], weights_.get(TensorPart::kGateExperts, layer),
                        weights_.get(TensorPart::kUpExperts, layer), weights_.get(TensorPart::kDownExperts, layer)});
    if (e.shared_length == 0) return sum;
    return graph_.add_one(TSR_OP_ADD, name("ffn_sum"), {sum, shared_experts(layer, e, x)});
}

Value GraphBuilder::shared_experts(int64_t layer, const Experts& e, Value x) {
    const auto name = [&](const char* part) { return in_layer(layer, part); };
    const Value given =
        graph_.add_one(TSR_OP_GATED_FFN, name("ffn_shared"),
                       {x, weights_.get(TensorPart::kGateShared, layer), weights_.get(TensorPart::kUpShared, layer),
                        weights_.get(TensorPart::kDownShared, layer)});
    if (!e.shared_gate) return given;
    // One expert that is always chosen, whose weight is the sigmoid of its logit.
    const Value logit =
        graph_.add_one(TSR_OP_MATMUL, name("ffn_shared_gate"), {x, weights_.get(TensorPart::kSharedGate, layer)});
    const auto chosen = graph_.add(TSR_OP_MOE_ROUTE, name("ffn_shared_route"), {logit, 0},
                                   std::array{attribute("used", int64_t{1}), attribute("gating", "sigmoid")});
    const int64_t rows = graph_.tensor(x).dims[1];
    return graph_.add_one(TSR_OP_WEIGHTED_SUM, name("ffn_shared_gated"),
                          {reshape(given, {description_.embedding, 1, rows}), chosen[1]});
}

}  // namespace tessera
