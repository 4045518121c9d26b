#include "core/run/executor.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// How long weights are packed before a step, in parts of what the step before took. Packed weights save a step of few
// rows a quarter of its time and one of many less than a tenth: a prompt had better be answered first.
double packing_share(const tsr_range& rows) {
    constexpr int32_t kFewRows = 32;
    return rows.end - rows.begin <= kFewRows ? 1 : 0.1;
}

// The range that tells whether a node has rows to work on: that of what it makes, or of what it reads first.
int32_t working_range(const tsr_node& node) {
    if (node.output_count && node.outputs[0]->range != TSR_RANGE_FIXED) return node.outputs[0]->range;
    return node.input_count && sdk::present(node.inputs[0]) ? node.inputs[0]->range : TSR_RANGE_FIXED;
}

bool is_empty(const tsr_range& range) {
    return range.begin >= range.end;
}

}  // namespace

Executor::Executor(Plan plan, const Registry& registry, Team& team)
    : plan_(std::move(plan)),
      registry_(registry),
      team_(team),
      memory_(plan_, registry),
      deferred_(plan_, registry, memory_, team) {
    for (DeviceIndex i = 0; i < plan_.devices.size(); ++i) {
        auto* workspace = static_cast<std::byte*>(memory_.workspace(i));
        device_ranges_.push_back(memory_.device(i) ? workspace + plan_.memory[i].workspace - kRangesBytes : nullptr);
    }
}

Executor::~Executor() {
    for (const Prepared& node : nodes_) release(node);
}

void Executor::release(const Prepared& node) noexcept {
    if (node.state) node.planned->kernel->release(node.planned->kernel, node.state);
}

void Executor::load(const WeightSource& source, const LoadProgress& progress) {
    source_ = &source;
    load_weights(plan_, registry_, memory_, source, team_, progress);
    for (const PlannedNode& planned : plan_.nodes) nodes_.push_back(prepare(planned));
    memory_.touch_host();
    std::array<tsr_range, TSR_RANGE_COUNT> one{};
    one[TSR_RANGE_ROWS] = {0, 1};
    one[TSR_RANGE_OUTPUT_ROWS] = {0, 1};
    one[TSR_RANGE_PROMPT_ROWS] = {0, 1};
    one[TSR_RANGE_GENERATION_ROWS] = {1, 1};
    take_step(one);
    one[TSR_RANGE_PROMPT_ROWS] = {0, 0};
    one[TSR_RANGE_GENERATION_ROWS] = {0, 1};
    take_step(one);
}

void* Executor::host_address(InstanceId id) const {
    const Instance& instance = plan_.instances[id];
    const Storage& storage = plan_.graph.storage(instance.storage);
    if (!instance.mapped && !deferred_.waits(id)) return memory_.address(instance, storage.role);
    const std::byte* at = source_->mapped(storage.name);
    if (!at) fail(TSR_INTERNAL, "{}: planned as mapped, but the source does not map it", storage.name);
    return const_cast<std::byte*>(at);  // kernels only read weights
}

// With its operands as they now are.
Executor::Prepared Executor::prepare(const PlannedNode& planned) const {
    Prepared node;
    node.planned = &planned;
    node.view = std::make_unique<NodeView>(plan_.graph, plan_.graph.nodes()[planned.node]);
    node.skip_range = working_range(node.view->abi());
    for (uint32_t i = 0; i < planned.operands.size(); ++i) {
        const InstanceId id = planned.operands[i];
        node.data.push_back(id == 0 ? nullptr : host_address(id));
        if (id) node.view->operand(i).layout = deferred_.waits(id) ? "" : plan_.instances[id].layout.c_str();
    }
    const tsr_status* status = planned.kernel->prepare(
        planned.kernel, &node.view->abi(), plan_.devices[planned.device],
        memory_.device(planned.device) ? memory_.device(planned.device)->abi() : nullptr, &node.state);
    if (status) fail_node(node, status);
    return node;
}

void Executor::pack_one() {
    if (deferred_.empty()) return;
    const auto begin = Clock::now();
    const InstanceId packed = deferred_.pack_next(*source_);
    for (Prepared& node : nodes_) {
        const auto& operands = node.planned->operands;
        if (std::ranges::find(operands, packed) == operands.end()) continue;
        // Until this succeeds the node reads the weight where it did: that is not gone.
        Prepared fresh = prepare(*node.planned);
        release(node);
        node = std::move(fresh);
    }
    packing_seconds_ += seconds_since(begin);
}

void Executor::pack_for(double seconds) {
    const double end = packing_seconds_ + seconds;
    while (!deferred_.empty() && packing_seconds_ < end) pack_one();
}

PackingProgress Executor::packing() const noexcept {
    return {deferred_.packed_bytes(), deferred_.total_bytes(), packing_seconds_};
}

void Executor::fail_node(const Prepared& node, const tsr_status* status) const {
    const Node& what = plan_.graph.nodes()[node.planned->node];
    try {
        check(status);
        throw Error(TSR_INTERNAL, "no status");
    } catch (const Error& error) {
        fail(error.code(), "{} ({}, layer {}, {}): {}", what.name, what.op, what.layer,
             plan_.devices[node.planned->device]->id, error.what());
    }
}

std::span<std::byte> Executor::input(std::string_view name) {
    for (const Instance& instance : plan_.instances) {
        const Storage& storage = plan_.graph.storage(instance.storage);
        if (instance.storage == 0 || instance.device != 0 || storage.role != TSR_ROLE_INPUT || storage.name != name)
            continue;
        return {static_cast<std::byte*>(memory_.address(instance, TSR_ROLE_INPUT)), instance.bytes};
    }
    return {};
}

const std::byte* Executor::output(std::string_view name) const {
    const Value value = plan_.graph.find_output(name);
    if (!value) fail(TSR_NOT_FOUND, "the graph has no output '{}'", name);
    for (const Instance& instance : plan_.instances) {
        if (instance.storage != plan_.graph.storage_of(value) || instance.device != 0) continue;
        return static_cast<const std::byte*>(memory_.address(instance, TSR_ROLE_ACTIVATION)) +
               plan_.graph.tensor(value).offset;
    }
    fail(TSR_INTERNAL, "the output '{}' is not on the host", name);
}

void Executor::run(const std::array<tsr_range, TSR_RANGE_COUNT>& ranges, uint32_t threads) {
    pack_for(packing_share(ranges[TSR_RANGE_ROWS]) * last_step_seconds_);
    const auto begin = Clock::now();
    take_step(ranges, threads);
    last_step_seconds_ = seconds_since(begin);
}

void Executor::take_step(const std::array<tsr_range, TSR_RANGE_COUNT>& ranges, uint32_t threads) {
    ranges_ = ranges;
    for (DeviceIndex i = 1; i < plan_.devices.size(); ++i) {
        if (OpenDevice* device = memory_.device(i)) device->upload(device_ranges_[i], ranges_.data(), sizeof ranges_);
    }
    for (const InstanceId id : plan_.uploads) {
        const Instance& there = plan_.instances[id];
        const std::span<std::byte> here = input(plan_.graph.storage(there.storage).name);
        memory_.device(there.device)->upload(memory_.address(there, TSR_ROLE_INPUT), here.data(), here.size());
    }
    for (const Segment& segment : plan_.segments) {
        for (const Transfer& t : segment.transfers) transfer(t);
        if (segment.device == 0) {
            run_on_team(segment, threads);
        } else {
            enqueue(segment);
        }
    }
    for (DeviceIndex i = 1; i < plan_.devices.size(); ++i) {
        if (OpenDevice* device = memory_.device(i)) device->wait();
    }
}

void Executor::run_on_team(const Segment& segment, uint32_t threads) {
    std::atomic<const tsr_status*> status{nullptr};
    std::atomic<uint32_t> failed_at{segment.count};  // the first node that failed
    auto region = [&](uint32_t worker, uint32_t workers) {
        tsr_run run{sizeof(tsr_run), 0,       nullptr, nullptr,       ranges_.data(), memory_.workspace(0),
                    worker,          workers, &team_,  Team::barrier, Team::piece,    nullptr};
        const bool measured = worker == 0 && !seconds_.empty();
        auto before = measured ? Clock::now() : Clock::time_point();
        for (uint32_t i = 0; i < segment.count; ++i) {
            const Prepared& node = nodes_[segment.first + i];
            if (node.skip_range != TSR_RANGE_FIXED && is_empty(ranges_[node.skip_range])) continue;
            run.data = node.data.data();
            const tsr_kernel& kernel = *node.planned->kernel;
            if (const tsr_status* failed = kernel.run(&kernel, node.state, &run)) {
                const tsr_status* none = nullptr;
                if (status.compare_exchange_strong(none, failed)) {
                    failed_at = i;
                } else if (failed->destroy) {
                    failed->destroy(failed);
                }
            }
            team_.barrier();
            if (measured) {
                const auto after = Clock::now();
                seconds_[segment.first + i] += std::chrono::duration<double>(after - before).count();
                before = after;
            }
            // A worker that is ahead may already have failed at a later node: all leave after the same one.
            if (failed_at.load(std::memory_order_acquire) <= i) return;
        }
    };
    team_.run(threads, region);
    if (const uint32_t i = failed_at.load(); i < segment.count) fail_node(nodes_[segment.first + i], status.load());
}

void Executor::enqueue(const Segment& segment) {
    OpenDevice& device = *memory_.device(segment.device);
    for (uint32_t i = segment.first; i < segment.first + segment.count; ++i) {
        const Prepared& node = nodes_[i];
        std::array<int32_t, TSR_RANGE_COUNT> bounds{};
        for (size_t k = 0; k < bounds.size(); ++k) bounds[k] = ranges_[k].end - ranges_[k].begin;
        tsr_launch launch{};
        launch.struct_size = sizeof launch;
        launch.data = node.data.data();
        launch.ranges = static_cast<const tsr_range*>(device_ranges_[segment.device]);
        launch.row_bounds = bounds.data();
        launch.token_bound = plan_.options.max_tokens;
        launch.workspace = memory_.workspace(segment.device);
        launch.queue = device.queue();
        const tsr_kernel& kernel = *node.planned->kernel;
        if (const tsr_status* status = kernel.enqueue(&kernel, node.state, &launch)) fail_node(node, status);
    }
}

void Executor::transfer(const Transfer& t) {
    const Instance &from = plan_.instances[t.from], &to = plan_.instances[t.to];
    const Storage& storage = plan_.graph.storage(from.storage);
    uint64_t begin = 0, bytes = t.max_bytes;
    if (storage.range != TSR_RANGE_FIXED) {
        const tsr_range& rows = ranges_[storage.range];
        if (is_empty(rows)) return;
        begin = static_cast<uint64_t>(rows.begin) * storage.row_bytes;
        bytes = static_cast<uint64_t>(rows.end - rows.begin) * storage.row_bytes;
    }
    auto* source = static_cast<std::byte*>(memory_.address(from, storage.role)) + begin;
    auto* target = static_cast<std::byte*>(memory_.address(to, storage.role)) + begin;
    OpenDevice *a = memory_.device(from.device), *b = memory_.device(to.device);
    std::byte* host = a && b ? memory_.staging() : (a ? target : source);
    if (a) {
        a->download(host, source, bytes);
        a->wait();
    }
    if (b) {
        b->upload(target, host, bytes);
        b->wait();
    }
}

void Executor::copy_pages(std::span<const std::pair<uint32_t, uint32_t>> pages) {
    for (const Instance& instance : plan_.instances) {
        if (instance.storage == 0 || plan_.graph.storage(instance.storage).role != TSR_ROLE_CACHE) continue;
        auto* base = static_cast<std::byte*>(memory_.address(instance, TSR_ROLE_CACHE));
        const uint64_t page = instance.bytes / plan_.options.cache_pages;
        for (const auto& [from, to] : pages) {
            if (OpenDevice* device = memory_.device(instance.device)) {
                device->copy(base + to * page, base + from * page, page);
            } else {
                std::copy_n(base + from * page, page, base + to * page);
            }
        }
        if (OpenDevice* device = memory_.device(instance.device)) device->wait();
    }
}

}  // namespace tessera
