#include "core/plan/streaming.hpp"

#include "core/base/checked.hpp"
#include "core/graph/types.hpp"
#include "core/plan/arena.hpp"
#include "core/plan/fit.hpp"
#include "core/plan/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tessera {
namespace {

using Operands = ExpertOperands;
constexpr size_t kMatrices = StreamedGraph::kMatrices, kTensors = StreamedGraph::kTensors;

uint64_t aligned_on_device(uint64_t bytes) {
    return checked_align_up(bytes, kDeviceAlignment, "bytes for streaming");
}

Value operand(const Node& node, uint32_t index) {
    return index < node.inputs.size() ? node.inputs[index] : node.outputs[index - node.inputs.size()];
}

const Storage& storage_of(const Graph& graph, const Node& node, uint32_t index) {
    return graph.storage(graph.storage_of(operand(node, index)));
}

int64_t experts_of(const Graph& graph, const Node& node) {
    return graph.tensor(operand(node, Operands::kFirstTensor)).dims[2];
}

// The operand's value; 0 if it is absent.
Value tensor_of(const Node& node, size_t tensor) {
    const size_t index = Operands::kFirstTensor + tensor;
    return index < node.inputs.size() ? node.inputs[index] : 0;
}

// Rows are copied whole, and the result's whole rows come back; experts lie one after the other in whole groups of
// rows, which are unpacked apart from each other.
bool can_be_cut(const Plan& plan, const Registry& registry, const PlannedNode& planned, const Node& node) {
    const Graph& graph = plan.graph;
    const tsr_tensor& y = graph.tensor(operand(node, Operands::y(node)));
    const Storage& result = storage_of(graph, node, Operands::y(node));
    if (y.offset != 0 || y.rank != 2 || static_cast<uint64_t>(y.dims[0]) * sizeof(float) != result.row_bytes)
        return false;
    for (size_t tensor = 0; tensor < kTensors; ++tensor) {
        const Value value = tensor_of(node, tensor);
        if (value == 0) continue;
        const uint32_t index = Operands::kFirstTensor + static_cast<uint32_t>(tensor);
        const tsr_tensor& experts = graph.tensor(value);
        const Storage& storage = storage_of(graph, node, index);
        if (storage.role != TSR_ROLE_WEIGHT || experts.rank != (tensor < kMatrices ? 3 : 2) || experts.offset != 0 ||
            experts.dims[experts.rank - 1] != experts_of(graph, node) ||
            storage.bytes % static_cast<uint64_t>(experts_of(graph, node)) != 0)
            return false;
        for (const std::string& name : {plan.instances[planned.operands[index]].layout, storage.source_layout}) {
            if (name.empty()) continue;
            const tsr_layout* layout = registry.find_layout(name);
            if (!layout || !layout->unpack || experts.rank != 3 || experts.dims[1] % layout->group_rows != 0)
                return false;
        }
    }
    return true;
}

std::optional<KernelCandidate> canonical_kernel(const tsr_node& node, const tsr_device_info& device,
                                                const Registry& registry) {
    for (const KernelCandidate& candidate : find_kernels(node, device, registry).able) {
        bool canonical = true;
        for (uint32_t i = 0; i < node.input_count + node.output_count; ++i) canonical &= candidate.accepts(i, "");
        if (canonical) return candidate;
    }
    return std::nullopt;
}

// Experts that rows name, which choose alike and independently of each other, on average.
double experts_named(double experts, double used, double rows) {
    return experts * (1 - std::pow(1 - std::min(used / experts, 1.0), rows));
}

// Of a step with so many rows, nothing cached: time is linear in the rows.
double seconds_of(const Plan& plan, const NodeEstimate& estimate, double rows) {
    const double share = plan.options.max_rows > 1 ? (rows - 1) / (plan.options.max_rows - 1) : 0;
    return estimate.seconds_one_row + share * (estimate.seconds_all_rows - estimate.seconds_one_row);
}

// The fewest rows from which on streaming is faster; none if it never is.
std::optional<uint32_t> rows_from(const Plan& plan, const StreamedNode& streamed) {
    const PlannedNode& planned = plan.nodes[streamed.node];
    const uint32_t most = plan.options.max_rows;
    const auto gains = [&](uint32_t rows) {
        return streamed_seconds(plan, streamed, rows) < seconds_of(plan, planned.estimate, rows);
    };
    if (!gains(most)) return std::nullopt;
    // Both rise with the rows, the host's by more.
    uint32_t lowest = 1, enough = most;
    while (lowest < enough) {
        const uint32_t middle = lowest + (enough - lowest) / 2;
        if (gains(middle)) {
            enough = middle;
        } else {
            lowest = middle + 1;
        }
    }
    return enough;
}

class Streaming {
  public:
    // `any_room`: as if devices had room for whatever is faster so.
    Streaming(const Plan& plan, const Registry& registry, bool any_room)
        : plan_(plan), registry_(registry), any_room_(any_room), bytes_(plan.devices.size()) {}

    void run() {
        if (!plan_.options.stream_experts || plan_.devices.size() < 2) return;
        for (uint32_t i = 0; i < plan_.nodes.size(); ++i) {
            const PlannedNode& planned = plan_.nodes[i];
            const Node& node = plan_.graph.nodes()[planned.node];
            if (planned.device != 0 || node.op != "moe_ffn" || !can_be_cut(plan_, registry_, planned, node)) continue;
            if (auto best = best_device(i, node)) add(*best);
        }
    }

    std::vector<StreamedNode> take_nodes() { return std::move(nodes_); }
    const std::vector<uint64_t>& bytes() const { return bytes_; }

  private:
    std::optional<StreamedNode> best_device(uint32_t index, const Node& node) const {
        std::optional<StreamedNode> best;
        double seconds = 0;
        for (DeviceIndex device = 1; device < plan_.devices.size(); ++device) {
            std::optional<StreamedNode> found = on_device(index, node, device);
            if (!found || !has_room(*found)) continue;
            const double there = streamed_seconds(plan_, *found, plan_.options.max_rows);
            if (best && seconds <= there) continue;
            best = found;
            seconds = there;
        }
        return best;
    }

    std::optional<StreamedNode> on_device(uint32_t index, const Node& node, DeviceIndex device) const {
        const tsr_device_info& info = *plan_.devices[device];
        // Without activations nothing else of the step is there, and it would be opened for this alone.
        if (plan_.memory[device].activations == 0 || info.link_bandwidth <= 0) return std::nullopt;
        uint64_t one = 0;
        for (size_t tensor = 0; tensor < kTensors; ++tensor) one += expert_bytes(plan_.graph, node, tensor);
        const int64_t all = experts_of(plan_.graph, node);
        StreamedNode made;
        made.node = index;
        made.device = device;
        made.experts_at_once = static_cast<uint32_t>(
            std::clamp<int64_t>(static_cast<int64_t>(plan_.options.stream_wave_bytes / one), 1, all));
        made.wave_bytes = one * made.experts_at_once;
        if (!choose_kernels(made, node, info, true) && !choose_kernels(made, node, info, false)) return std::nullopt;
        const auto from = plan_.options.stream_rows_from ? plan_.options.stream_rows_from : rows_from(plan_, made);
        if (!from || *from > plan_.options.max_rows) return std::nullopt;
        made.rows_from = *from;
        return made;
    }

    bool choose_kernels(StreamedNode& made, const Node& node, const tsr_device_info& info, bool fused) const {
        made.fused = fused;
        made.kernels.clear();
        made.workspace_bytes = 0;
        made.estimate = {};
        const StreamedGraph wave(plan_.graph, node, made.experts_at_once, fused);
        const StreamedGraph whole(plan_.graph, node, experts_of(plan_.graph, node), fused);
        for (size_t i = 0; i < wave.graph.nodes().size(); ++i) {
            const NodeView view(wave.graph, wave.graph.nodes()[i]), of_all(whole.graph, whole.graph.nodes()[i]);
            const auto kernel = canonical_kernel(view.abi(), info, registry_);
            const auto estimated = canonical_kernel(of_all.abi(), info, registry_);
            if (!kernel || !estimated) return false;
            made.kernels.push_back(kernel->kernel);
            made.workspace_bytes = std::max(made.workspace_bytes, kernel->plan.workspace_bytes);
            made.estimate.seconds_one_row += estimated->plan.seconds_one_row;
            made.estimate.seconds_all_rows += estimated->plan.seconds_all_rows;
        }
        return true;
    }

    bool has_room(const StreamedNode& streamed) const {
        const auto fits = [&](DeviceIndex device, uint64_t wanted) {
            const DeviceMemory& memory = plan_.memory[device];
            const uint64_t others = memory.allocated() - memory.streaming;
            return checked_add(others, std::max(bytes_[device], wanted), "bytes for streaming") <=
                   usable_bytes(plan_.devices, device);
        };
        return fits(0, host_layout(plan_, streamed).bytes) &&
               (any_room_ || fits(streamed.device, device_layout(plan_, streamed).bytes));
    }

    // One node is streamed at a time.
    void add(const StreamedNode& streamed) {
        bytes_[0] = std::max(bytes_[0], host_layout(plan_, streamed).bytes);
        bytes_[streamed.device] = std::max(bytes_[streamed.device], device_layout(plan_, streamed).bytes);
        nodes_.push_back(streamed);
    }

    const Plan& plan_;
    const Registry& registry_;
    const bool any_room_;
    std::vector<StreamedNode> nodes_;
    std::vector<uint64_t> bytes_;  // by device
};

}  // namespace

StreamedGraph::StreamedGraph(const Graph& from, const Node& node, int64_t experts, bool fused) : graph(from.ops()) {
    const auto activation = [&](uint32_t index, const char* name) {
        const tsr_tensor& tensor = from.tensor(operand(node, index));
        const Storage& storage = storage_of(from, node, index);
        const auto element = static_cast<int64_t>(type_info(tensor.type).block_bytes);
        const auto row = static_cast<int64_t>(storage.row_bytes) / element;
        const Value whole = graph.buffer(
            name, {tensor.type, {row, static_cast<int64_t>(storage.bytes / storage.row_bytes)}, tensor.range});
        return graph.view(whole, tensor);
    };
    const auto buffer = [&](const char* name, std::vector<int64_t> dims, int32_t range) {
        return graph.buffer(name, {TSR_TYPE_F32, std::move(dims), range});
    };
    x = activation(Operands::kX, "x");
    ids = activation(Operands::kIds, "ids");
    weights = activation(Operands::kWeights, "weights");
    const char* const names[kTensors] = {"gate", "up", "down", "gate bias", "up bias", "down bias"};
    for (size_t i = 0; i < kTensors; ++i) {
        const Value value = tensor_of(node, i);
        if (value == 0) continue;
        const tsr_tensor& tensor = from.tensor(value);
        std::vector<int64_t> dims(tensor.dims, tensor.dims + tensor.rank);
        dims.back() = experts;
        tensors[i] = graph.weight(names[i], {tensor.type, std::move(dims)});
    }
    const tsr_tensor& y = from.tensor(operand(node, Operands::y(node)));
    wave = buffer("part", {y.dims[0], y.dims[1]}, y.range);
    all = buffer("all parts", {y.dims[0], y.dims[1]}, y.range);
    graph.set_layer(node.layer);
    if (fused) {
        std::vector<Value> operands{x, ids, weights};
        operands.insert(operands.end(), tensors, tensors + (node.inputs.size() - Operands::kFirstTensor));
        graph.add("moe_ffn", node.name, std::move(operands), node.attributes, {wave});
    } else {
        const auto product = [&](const char* name, Value rows, size_t tensor) {
            const Value made = graph.add_one("matmul_id", node.name + name, {rows, tensors[tensor], ids});
            const Value bias = tensors[kMatrices + tensor];
            if (bias) graph.add("add_id", node.name + name + "_bias", {made, bias, ids}, {}, {made});
            return made;
        };
        const Value gate = product(".gate", x, 0), up = product(".up", x, 1);
        const bool silu = node.attributes.empty();
        const Value hidden =
            graph.add(silu ? "silu_mul" : "glu", node.name + (silu ? ".silu" : ".glu"), {gate, up}, node.attributes)
                .front();
        graph.add("weighted_sum", node.name + ".sum", {product(".down", hidden, 2), weights}, {}, {wave});
    }
    graph.add("add", node.name + ".parts", {all, wave}, {}, {all});
}

StreamedGraph graph_of(const Plan& plan, const StreamedNode& streamed) {
    return {plan.graph, plan.graph.nodes()[plan.nodes[streamed.node].node], streamed.experts_at_once, streamed.fused};
}

uint64_t expert_bytes(const Graph& graph, const Node& node, size_t tensor) {
    const Value value = tensor_of(node, tensor);
    return value == 0 ? 0
                      : graph.storage(graph.storage_of(value)).bytes / static_cast<uint64_t>(experts_of(graph, node));
}

StreamingLayout device_layout(const Plan& plan, const StreamedNode& streamed) {
    const StreamedGraph wave = graph_of(plan, streamed);
    StreamingLayout at;
    const auto take = [&](uint64_t bytes) {
        const uint64_t begin = at.bytes;
        at.bytes = checked_add(begin, aligned_on_device(bytes), "bytes for streaming");
        return begin;
    };
    at.ids_bytes = aligned_on_device(wave.graph.storage(wave.graph.storage_of(wave.ids)).bytes);
    const Node& node = plan.graph.nodes()[plan.nodes[streamed.node].node];
    for (size_t tensor = 0; tensor < kTensors; ++tensor) {
        at.tensors[tensor] = at.experts_bytes;
        at.experts_bytes += aligned_on_device(expert_bytes(plan.graph, node, tensor) * streamed.experts_at_once);
    }
    at.storages.resize(wave.graph.storage_count());
    for (StorageId id = 1; id < wave.graph.storage_count(); ++id) {
        const Storage& storage = wave.graph.storage(id);
        const bool has_halves = storage.role == TSR_ROLE_WEIGHT || id == wave.graph.storage_of(wave.ids);
        if (!has_halves) at.storages[id] = take(storage.bytes);
    }
    at.ranges = take(sizeof(tsr_range) * TSR_RANGE_COUNT);
    at.workspace = take(streamed.workspace_bytes);
    at.ids = take(2 * at.ids_bytes);
    at.experts = take(checked_mul(at.experts_bytes, uint64_t{2}, "bytes for streaming"));
    return at;
}

StreamingLayout host_layout(const Plan& plan, const StreamedNode& streamed) {
    const StreamingLayout device = device_layout(plan, streamed);
    StreamingLayout at;
    at.ids_bytes = device.ids_bytes;
    at.experts_bytes = device.experts_bytes;
    std::ranges::copy(device.tensors, at.tensors);
    at.ids = aligned_on_device(sizeof(tsr_range) * TSR_RANGE_COUNT);
    at.experts = at.ids + 2 * at.ids_bytes;
    at.bytes = at.experts + 2 * at.experts_bytes;
    return at;
}

double streamed_seconds(const Plan& plan, const StreamedNode& streamed, double rows) {
    const PlannedNode& planned = plan.nodes[streamed.node];
    const Node& node = plan.graph.nodes()[planned.node];
    const double link = plan.devices[streamed.device]->link_bandwidth;
    const auto experts = static_cast<double>(experts_of(plan.graph, node));
    const auto used = static_cast<double>(plan.graph.tensor(operand(node, Operands::kIds)).dims[0]);
    const double named = experts_named(experts, used, rows);
    const double one = static_cast<double>(streamed.wave_bytes) / streamed.experts_at_once;
    // The team reads each weight and writes it to the buffer, from which the card reads it.
    const double memory = plan.devices[0]->memory_bandwidth;
    const double copying = named * one * std::max(1 / link, memory > 0 ? 3 / memory : 0);
    const double computing = seconds_of(plan, streamed.estimate, rows);
    const double ends = rows *
                        static_cast<double>(storage_of(plan.graph, node, Operands::kX).row_bytes +
                                            storage_of(plan.graph, node, Operands::y(node)).row_bytes) /
                        link;
    const double waves = std::ceil(named / streamed.experts_at_once);
    // The first wave is copied before anything is computed.
    return ends + copying / std::max(waves, 1.0) + std::max(copying, computing) + waves * kStreamedWaveSeconds;
}

void plan_streaming(Plan& plan, const Registry& registry) {
    Streaming streaming(plan, registry, false);
    streaming.run();
    plan.streamed = streaming.take_nodes();
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device)
        plan.memory[device].streaming = streaming.bytes()[device];
}

std::vector<uint64_t> streaming_wish(const Plan& plan, const Registry& registry) {
    Streaming streaming(plan, registry, true);
    streaming.run();
    return streaming.bytes();
}

}  // namespace tessera
