// Routed experts of the host that steps of many rows compute on a card: their weights are copied there wave by wave
// while the wave before is computed.
#pragma once

#include "core/plan/plan.hpp"
#include "core/registry/registry.hpp"

#include <tessera/kernel.h>

#include <cstdint>
#include <vector>

namespace tessera {

// What a wave is assumed to cost beside its bytes: two launches, events, and the team that fills the next one.
constexpr double kStreamedWaveSeconds = 50e-6;

// What a card computes of a node of the op moe_ffn: one wave of its experts. A graph of its own, whose last node adds
// the wave to those before it.
class StreamedGraph {
  public:
    // Of each expert: gate, up, down, then their biases.
    static constexpr size_t kMatrices = 3, kTensors = 6;

    // With `experts` of the node's experts; `fused`: by one kernel of moe_ffn, else by the parts of that op.
    StreamedGraph(const Graph& graph, const Node& node, int64_t experts, bool fused);

    Graph graph;
    // Of moe_ffn: views of whole storages of the size that they have in the node's graph.
    Value x = 0, ids = 0, weights = 0;
    Value tensors[kTensors] = {};  // 0: absent
    Value wave = 0, all = 0;       // the result of this wave, and of all so far
};

// Operands of the op moe_ffn, inputs first.
struct ExpertOperands {
    static constexpr uint32_t kX = 0, kIds = 1, kWeights = 2, kFirstTensor = 3;
    static uint32_t y(const Node& node) { return static_cast<uint32_t>(node.inputs.size()); }
};

// Bytes of one expert in one of StreamedGraph::kTensors of the node, canonical; 0 if that is absent.
uint64_t expert_bytes(const Graph& graph, const Node& node, size_t tensor);

// Where a streamed node's data lie in the memory for streaming. Offsets in bytes; of two halves the first.
struct StreamingLayout {
    std::vector<uint64_t> storages;  // on the device: by storage of the StreamedGraph; 0 of ids and experts
    uint64_t ranges = 0, workspace = 0;
    uint64_t ids = 0, ids_bytes = 0;                 // two halves of ids_bytes
    uint64_t experts = 0, experts_bytes = 0;         // likewise
    uint64_t tensors[StreamedGraph::kTensors] = {};  // where each begins in a half of the experts
    uint64_t bytes = 0;                              // in all
};
StreamingLayout device_layout(const Plan& plan, const StreamedNode& streamed);
// On the host: ranges, ids and experts, page-locked where the device can do that.
StreamingLayout host_layout(const Plan& plan, const StreamedNode& streamed);
StreamedGraph graph_of(const Plan& plan, const StreamedNode& streamed);

// Seconds of a node that is streamed, in a step with so many of its rows.
double streamed_seconds(const Plan& plan, const StreamedNode& streamed, double rows);

// Fills Plan::streamed and the memory for it, anew: nodes that are faster so for some number of rows up to max_rows, as
// far as devices and the host have room that nothing else takes.
void plan_streaming(Plan& plan, const Registry& registry);

// Bytes of each device that plan_streaming would take if devices had all room.
std::vector<uint64_t> streaming_wish(const Plan& plan, const Registry& registry);

}  // namespace tessera
