#include "core/run/expert_streamer.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/graph/types.hpp"
#include "core/plan/predict.hpp"
#include "core/run/each_on_team.hpp"
#include "core/run/work_text.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace tessera {
namespace {

using Operands = ExpertOperands;
constexpr size_t kTensors = StreamedGraph::kTensors;

// A worker's piece of filling a wave.
constexpr uint64_t kPieceBytes = 512 << 10;

}  // namespace

struct ExpertStreamer::Queues {
    explicit Queues(OpenDevice& opened)
        : device(opened),
          copies(opened.create_queue()),
          kernels(opened.create_queue()),
          copied{opened.create_event(), opened.create_event()},
          computed{opened.create_event(), opened.create_event()} {}

    // After a failure copies may still read the host's memory.
    void drain() noexcept {
        device.drain(copies);
        device.drain(kernels);
    }

    OpenDevice& device;
    tsr_queue copies, kernels;
    tsr_event copied[2], computed[2];  // of the wave that was in that half last
};

// A node's kernels, bound to the device's memory for streaming.
class ExpertStreamer::Prepared {
  public:
    Prepared(const Plan& plan, const Registry& registry, PlanMemory& memory, const StreamedNode& of)
        : streamed(of),
          planned(plan.nodes[of.node]),
          node(plan.graph.nodes()[planned.node]),
          wave(graph_of(plan, of)),
          there(device_layout(plan, of)),
          here(host_layout(plan, of)),
          registry_(registry),
          device_(*memory.device(of.device)),
          base_(static_cast<std::byte*>(memory.streaming(of.device))) {
        for (size_t tensor = 0; tensor < kTensors; ++tensor) one_[tensor] = expert_bytes(plan.graph, node, tensor);
        try {
            for (size_t i = 0; i < wave.graph.nodes().size(); ++i)
                nodes_.push_back(std::make_unique<Bound>(*this, wave.graph.nodes()[i], *of.kernels[i]));
        } catch (const Error& error) {
            fail(error);
        }
    }
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;

    std::byte* on_device(uint64_t offset) const { return base_ + offset; }
    std::byte* storage_on_device(Value value) const { return on_device(there.storages[wave.graph.storage_of(value)]); }
    const tsr_tensor& tensor(Value value) const { return wave.graph.tensor(value); }
    // Of StreamedGraph::kTensors; 0 if it is absent.
    uint64_t bytes_of_one(size_t tensor) const { return one_[tensor]; }

    // The wave whose experts and ids are in a half of the memory; what is past the first is added to it.
    void enqueue(uint32_t half, bool first, const StepBounds& bounds, tsr_queue queue) const {
        tsr_launch launch{};
        launch.struct_size = sizeof launch;
        launch.ranges = reinterpret_cast<const tsr_range*>(on_device(there.ranges));
        launch.row_bounds = bounds.rows;
        launch.token_bound = bounds.tokens;
        launch.workspace = on_device(there.workspace);
        launch.queue = queue;
        for (size_t i = 0; i + (first ? 1 : 0) < nodes_.size(); ++i) {
            std::vector<void*> data;
            for (const auto* list : {&nodes_[i]->node.inputs, &nodes_[i]->node.outputs}) {
                for (const Value value : *list) data.push_back(address(value, half, first));
            }
            launch.data = data.data();
            nodes_[i]->enqueue(launch);
        }
    }

    [[noreturn]] void fail(const Error& error) const {
        throw device_.noted(Error(error.code(), fmt::format("{}, its experts copied to {}: {}", node_text(node),
                                                            device_.info().id, error.what())));
    }

    const StreamedNode& streamed;
    const PlannedNode& planned;
    const Node& node;
    const StreamedGraph wave;
    const StreamingLayout there, here;

  private:
    class Bound {
      public:
        Bound(const Prepared& of, const Node& what, const tsr_kernel& kernel)
            : node(what), of_(of), kernel_(kernel), view_(of.wave.graph, what) {
            call_checked(call("prepare"), [&] {
                return kernel_.prepare(&kernel_, &view_.abi(), &of_.device_.info(), of_.device_.abi(), &state_);
            });
        }
        ~Bound() {
            try {
                call_plugin(call("release"), [&] { kernel_.release(&kernel_, state_); });
            } catch (const Error& error) {
                log().warn("{}", error.what());  // the failure has no consequences
            }
        }
        Bound(const Bound&) = delete;
        Bound& operator=(const Bound&) = delete;

        void enqueue(tsr_launch& launch) const {
            call_checked(call("enqueue"), [&] { return kernel_.enqueue(&kernel_, state_, &launch); });
        }

        const Node& node;

      private:
        PluginCall call(const char* function) const { return of_.registry_.call(kernel_, function, node.name.c_str()); }

        const Prepared& of_;
        const tsr_kernel& kernel_;
        NodeView view_;
        void* state_ = nullptr;
    };

    void* address(Value value, uint32_t half, bool first) const {
        if (value == 0) return nullptr;
        if (value == wave.ids) return on_device(there.ids + half * there.ids_bytes);
        for (size_t tensor = 0; tensor < kTensors; ++tensor) {
            if (value == wave.tensors[tensor])
                return on_device(there.experts + half * there.experts_bytes + there.tensors[tensor]);
        }
        return storage_on_device(first && value == wave.wave ? wave.all : value);
    }

    const Registry& registry_;
    OpenDevice& device_;
    std::byte* const base_;
    uint64_t one_[kTensors] = {};
    std::vector<std::unique_ptr<Bound>> nodes_;
};

// The operands on the host for one run, and the rows of it.
struct ExpertStreamer::Run {
    const Prepared& prepared;
    std::vector<PreparedNode::Bound> operands;
    tsr_range rows;
    bool warming_up;  // the memory of activations holds anything: every row names the first expert

    std::byte* address(uint32_t index) const { return static_cast<std::byte*>(operands[index].address); }
    // Where the id of a slot of a row is in their storage.
    size_t place_of_id(int64_t slot, int64_t row) const {
        const tsr_tensor& ids = prepared.tensor(prepared.wave.ids);
        return static_cast<size_t>(static_cast<int64_t>(ids.offset) + slot * ids.strides[0] + row * ids.strides[1]);
    }
    int32_t id(int64_t slot, int64_t row) const {
        if (warming_up) return 0;
        int32_t value;
        std::memcpy(&value, address(Operands::kIds) + place_of_id(slot, row), sizeof value);
        return value;
    }
    int64_t slots() const { return prepared.tensor(prepared.wave.ids).dims[0]; }
};

ExpertStreamer::ExpertStreamer(const Plan& plan, const Registry& registry, PlanMemory& memory, Team& team, Bind bind,
                               const std::atomic<uint32_t>& cancelled)
    : plan_(plan), registry_(registry), memory_(memory), team_(team), bind_(std::move(bind)), cancelled_(cancelled) {}

ExpertStreamer::~ExpertStreamer() = default;

ExpertStreamer::Queues& ExpertStreamer::queues(DeviceIndex device) {
    std::unique_ptr<Queues>& found = queues_[device];
    if (!found) found = std::make_unique<Queues>(*memory_.device(device));
    return *found;
}

void ExpertStreamer::load() {
    tsr_range one[TSR_RANGE_COUNT] = {};
    one[TSR_RANGE_ROWS] = one[TSR_RANGE_PROMPT_ROWS] = {0, 1};
    for (const StreamedNode& streamed : plan_.streamed) {
        auto made = std::make_unique<Prepared>(plan_, registry_, memory_, streamed);
        queues(streamed.device);
        prepared_[streamed.node] = std::move(made);
    }
    for (const StreamedNode& streamed : plan_.streamed) run(streamed.node, one, true);
}

bool ExpertStreamer::takes(uint32_t node, const tsr_range (&ranges)[TSR_RANGE_COUNT]) const {
    const auto found = prepared_.find(node);
    if (found == prepared_.end()) return false;
    const tsr_range& rows = ranges[working_range(plan_.graph, found->second->node)];
    return rows.end - rows.begin >= static_cast<int64_t>(found->second->streamed.rows_from);
}

void ExpertStreamer::run(uint32_t node, const tsr_range (&ranges)[TSR_RANGE_COUNT]) {
    run(node, ranges, false);
}

void ExpertStreamer::run(uint32_t index, const tsr_range (&ranges)[TSR_RANGE_COUNT], bool warming_up) {
    const Prepared& prepared = *prepared_.at(index);
    Queues& queues = this->queues(prepared.streamed.device);
    try {
        run_waves(prepared, queues, ranges, warming_up);
    } catch (const Error& error) {
        queues.drain();
        if (error.code() == TSR_CANCELLED) throw;
        prepared.fail(error);
    } catch (...) {
        queues.drain();
        throw;
    }
}

void ExpertStreamer::check_cancelled() const {
    if (cancelled_.load(std::memory_order_relaxed)) fail(TSR_CANCELLED, "the step was cancelled");
}

// Experts that the rows name, in order: an id that is none's is -1.
std::vector<int32_t> ExpertStreamer::named_experts(const Run& run) const {
    const int64_t all = plan_.graph.tensor(run.prepared.node.inputs[Operands::kFirstTensor]).dims[2];
    std::vector<bool> named(static_cast<size_t>(all));
    for (int64_t row = run.rows.begin; row < run.rows.end; ++row) {
        for (int64_t slot = 0; slot < run.slots(); ++slot) {
            const int32_t id = run.id(slot, row);
            if (id == -1) continue;
            if (id < -1 || id >= all) fail(TSR_INTERNAL, "row {} names expert {} of {}", row, id, all);
            named[static_cast<size_t>(id)] = true;
        }
    }
    std::vector<int32_t> experts;
    for (int32_t id = 0; id < all; ++id) {
        if (named[static_cast<size_t>(id)]) experts.push_back(id);
    }
    return experts;
}

// Of each canonical tensor the experts one after the other, and the ids of the rows as places among them.
void ExpertStreamer::fill(const Run& run, std::span<const int32_t> experts, std::byte* tensors, std::byte* ids) {
    struct Piece {
        const std::byte* from;
        std::byte* to;
        const tsr_layout* layout;  // nullptr: canonical, and `count` are bytes; else groups of rows
        uint64_t count;
        int64_t elements;
    };
    std::vector<Piece> pieces;
    for (size_t which = 0; which < kTensors; ++which) {
        const uint64_t one = run.prepared.bytes_of_one(which);
        if (one == 0) continue;
        const uint32_t index = Operands::kFirstTensor + static_cast<uint32_t>(which);
        const PreparedNode::Bound& bound = run.operands[index];
        const tsr_tensor& tensor = run.prepared.tensor(run.prepared.wave.tensors[which]);
        const tsr_layout* layout = *bound.layout ? registry_.find_layout(bound.layout) : nullptr;
        std::byte* to = tensors + run.prepared.here.tensors[which];
        const uint64_t groups = layout ? static_cast<uint64_t>(tensor.dims[1]) / layout->group_rows : 0;
        const uint64_t packed = layout ? layout->group_bytes(layout, tensor.dims[0]) : 0;
        for (const int32_t expert : experts) {
            const auto number = static_cast<uint64_t>(expert);
            const std::byte* from = run.address(index) + number * (layout ? groups * packed : one);
            const uint64_t units = layout ? groups : one, unit_from = layout ? packed : 1;
            const uint64_t unit_to = layout ? one / groups : 1;
            const uint64_t at_once = std::max<uint64_t>(kPieceBytes / unit_to, 1);
            for (uint64_t unit = 0; unit < units; unit += at_once) {
                pieces.push_back({from + unit * unit_from, to + unit * unit_to, layout, std::min(at_once, units - unit),
                                  tensor.dims[0]});
            }
            to += one;
        }
    }
    each_on_team(team_, 0, pieces.size(), [&](uint32_t, size_t i) {
        const Piece& piece = pieces[i];
        if (!piece.layout) {
            std::copy_n(piece.from, piece.count, piece.to);
        } else {
            call_plugin(registry_.call(*piece.layout, "unpack"), [&] {
                piece.layout->unpack(piece.layout, piece.elements, static_cast<int64_t>(piece.count), piece.from,
                                     piece.to);
            });
        }
    });
    for (int64_t row = run.rows.begin; row < run.rows.end; ++row) {
        for (int64_t slot = 0; slot < run.slots(); ++slot) {
            const int32_t id = run.id(slot, row);
            const auto found = std::ranges::lower_bound(experts, id);
            const bool is_here = found != experts.end() && *found == id;
            const int32_t place = is_here ? static_cast<int32_t>(found - experts.begin()) : -1;
            std::memcpy(ids + run.place_of_id(slot, row), &place, sizeof place);
        }
    }
}

void ExpertStreamer::run_waves(const Prepared& prepared, Queues& queues, const tsr_range (&ranges)[TSR_RANGE_COUNT],
                               bool warming_up) {
    Run run{prepared, {}, ranges[working_range(plan_.graph, prepared.node)], warming_up};
    for (const InstanceId id : prepared.planned.operands)
        run.operands.push_back(id ? bind_(id) : PreparedNode::Bound{});
    const std::vector<int32_t> experts = named_experts(run);
    const uint32_t at_once = prepared.streamed.experts_at_once;
    OpenDevice& device = queues.device;
    std::byte* const host = memory_.host_streaming();

    // Of the rows of this run in the storage of a value: first byte and bytes.
    const auto rows_of = [&](Value value) {
        const uint64_t row = prepared.wave.graph.storage(prepared.wave.graph.storage_of(value)).row_bytes;
        return std::pair(static_cast<uint64_t>(run.rows.begin) * row,
                         static_cast<uint64_t>(run.rows.end - run.rows.begin) * row);
    };
    const auto upload_rows = [&](tsr_queue queue, Value value, std::byte* to, const std::byte* from) {
        const auto [begin, bytes] = rows_of(value);
        device.upload(queue, to + begin, from + begin, bytes);
    };
    const StreamedGraph& graph_of_wave = prepared.wave;

    std::memcpy(host + prepared.here.ranges, ranges, sizeof ranges);
    device.upload(queues.kernels, prepared.on_device(prepared.there.ranges), host + prepared.here.ranges,
                  sizeof ranges);
    for (const auto& [value, index] :
         {std::pair(graph_of_wave.x, Operands::kX), std::pair(graph_of_wave.weights, Operands::kWeights)})
        upload_rows(queues.kernels, value, prepared.storage_on_device(value), run.address(index));
    StepBounds bounds;
    bounds.tokens = plan_.options.max_tokens;
    for (int i = 0; i < TSR_RANGE_COUNT; ++i) bounds.rows[i] = std::max(ranges[i].end - ranges[i].begin, 0);

    // Without any expert one empty wave makes the result zero.
    const size_t waves = std::max<size_t>((experts.size() + at_once - 1) / at_once, 1);
    for (size_t wave = 0; wave < waves; ++wave) {
        check_cancelled();
        const auto half = static_cast<uint32_t>(wave % 2);
        const auto named =
            std::span(experts).subspan(wave * at_once, std::min<size_t>(at_once, experts.size() - wave * at_once));
        std::byte* const tensors = host + prepared.here.experts + half * prepared.here.experts_bytes;
        std::byte* const ids = host + prepared.here.ids + half * prepared.here.ids_bytes;
        if (wave > 1) {
            device.wait(queues.copied[half]);
            device.wait_before(queues.copies, device, queues.computed[half]);
        }
        fill(run, named, tensors, ids);
        for (size_t tensor = 0; tensor < kTensors && !named.empty(); ++tensor) {
            if (prepared.bytes_of_one(tensor) == 0) continue;
            const uint64_t begin = prepared.here.tensors[tensor];
            device.upload(queues.copies,
                          prepared.on_device(prepared.there.experts + half * prepared.there.experts_bytes + begin),
                          tensors + begin, named.size() * prepared.bytes_of_one(tensor));
        }
        upload_rows(queues.copies, graph_of_wave.ids,
                    prepared.on_device(prepared.there.ids + half * prepared.there.ids_bytes), ids);
        device.record(queues.copies, queues.copied[half]);
        device.wait_before(queues.kernels, device, queues.copied[half]);
        prepared.enqueue(half, wave == 0, bounds, queues.kernels);
        device.record(queues.kernels, queues.computed[half]);
    }
    const auto [begin, bytes] = rows_of(graph_of_wave.all);
    device.download(queues.kernels, run.address(Operands::y(prepared.node)) + begin,
                    prepared.storage_on_device(graph_of_wave.all) + begin, bytes);
    // What failed is told to those who wait for it.
    device.wait_queue(queues.copies);
    device.wait_queue(queues.kernels);
}

}  // namespace tessera
