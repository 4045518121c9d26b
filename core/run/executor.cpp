#include "core/run/executor.hpp"

#include "core/base/error.hpp"
#include "core/base/seconds.hpp"
#include "core/graph/needed.hpp"
#include "core/plan/step_walk.hpp"
#include "core/run/work_text.hpp"

#include <tessera/extensions/launch_pages.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// How long weights are packed before a step, as a part of the time of the previous step. Packed weights save a step of
// few rows a quarter of its time and one of many less than a tenth, so a prompt is processed first.
double packing_share(const tsr_range& rows) {
    constexpr int32_t kFewRows = 32;
    return rows.end - rows.begin <= kFewRows ? 1 : 0.1;
}

// A plan for a rig may name kernels whose instructions this processor does not have.
Plan runnable(Plan plan, const Registry& registry) {
    for (const PlannedNode& node : plan.nodes) {
        const PluginRecord& owner = registry.owner(*node.kernel);
        if (!owner.for_plans_only) continue;
        fail(TSR_UNSUPPORTED,
             "the plan is for another machine: the processor of this one cannot run kernels of the plugin {}",
             owner.manifest.name);
    }
    return plan;
}

}  // namespace

Executor::Executor(Plan plan, const Registry& registry, Team& team)
    : plan_(runnable(std::move(plan), registry)),
      registry_(registry),
      team_(team),
      memory_(plan_, registry),
      tracks_(plan_, memory_),
      page_copies_(plan_, memory_, tracks_),
      deferred_(plan_, registry, memory_, team),
      streamer_(
          plan_, registry, memory_, team, [this](InstanceId id) { return bind(id); }, cancelled_),
      host_nodes_(team, memory_, streamer_, nodes_, cancelled_) {
    for (const Action& action : plan_.step.actions) {
        if (action.peer == 0) continue;
        const OpenDevice& peer = *memory_.device(plan_.instances[action.peer].device);
        if (tracks_.device(action.track).reaches(peer)) direct_.insert(action.from);
    }
}

Executor::~Executor() {
    tracks_.drain();
}

void Executor::load(const WeightSource& source, const LoadProgress& progress) {
    source_ = &source;
    load_weights(plan_, registry_, memory_, source, team_, progress);
    const bool pinned = memory_.pin_host();
    for (const PlannedNode& planned : plan_.nodes) nodes_.push_back(prepare(planned));
    find_unneeded();
    memory_.touch_host();
    if (!pinned) {
        notes_.emplace_back("host memory could not be page-locked for every device: copies to and from it are slower");
    }
    warm_up();
    streamer_.load();
    // Steps of generation are without what gives states of all rows.
    choose_output(plan_.graph.find_output("row_states") ? "logits" : "");
    recorded_ = left_out_;
    recordings_.record(plan_, registry_, tracks_, static_cast<int32_t>(plan_.options.max_sequences),
                       [this](ActionId id, const StepBounds& bounds) { enqueue(id, bounds); });
    for (std::string& note : memory_.context_notes()) notes_.push_back(std::move(note));
}

void Executor::find_unneeded() {
    const Graph& graph = plan_.graph;
    if (graph.outputs().size() < 2) return;
    for (const auto& [name, value] : graph.outputs()) {
        Unneeded unneeded{name, {}, {}};
        const std::set<StorageId> own = storages_needed_by(graph, value);
        for (const auto& [other_name, other] : graph.outputs())
            std::ranges::set_difference(storages_needed_by(graph, other), own,
                                        std::inserter(unneeded.storages, unneeded.storages.end()));
        for (uint32_t i = 0; i < plan_.nodes.size(); ++i) {
            const auto is_unneeded = [&](Value of) { return of && unneeded.storages.contains(graph.storage_of(of)); };
            const Node& node = graph.nodes()[plan_.nodes[i].node];
            if (!node.outputs.empty() && std::ranges::all_of(node.outputs, is_unneeded)) unneeded.nodes.push_back(i);
        }
        unneeded_.push_back(std::move(unneeded));
    }
}

void Executor::choose_output(std::string_view name) {
    left_out_ = nullptr;
    for (const Unneeded& one : unneeded_) {
        for (const uint32_t node : one.nodes) nodes_[node].leave_out(false);
    }
    const auto chosen = std::ranges::find(unneeded_, name, &Unneeded::output);
    if (chosen == unneeded_.end() || chosen->nodes.empty()) return;
    for (const uint32_t node : chosen->nodes) nodes_[node].leave_out(true);
    left_out_ = &*chosen;
}

// Runs each node once, so that code and data which kernels load lazily are present before anything is recorded.
void Executor::warm_up() {
    StepRanges one{};
    one[TSR_RANGE_ROWS] = {0, 1};
    one[TSR_RANGE_OUTPUT_ROWS] = {0, 1};
    one[TSR_RANGE_PROMPT_ROWS] = {0, 1};
    one[TSR_RANGE_GENERATION_ROWS] = {1, 1};
    take_step(one, 0, true);
    one[TSR_RANGE_PROMPT_ROWS] = {0, 0};
    one[TSR_RANGE_GENERATION_ROWS] = {0, 1};
    take_step(one, 0, true);
}

void Executor::check_order() {
    finish();
    checker_ = std::make_unique<StepChecker>(plan_);
    submitted_ = finished_ = 0;
}

// With the current layouts and addresses of its operands.
PreparedNode Executor::prepare(const PlannedNode& planned) const {
    return {plan_, registry_, planned, memory_.device(planned.device), [this](InstanceId id) { return bind(id); }};
}

PreparedNode::Bound Executor::bind(InstanceId id) const {
    const Instance& instance = plan_.instances[id];
    const Storage& storage = plan_.graph.storage(instance.storage);
    if (instance.place != Place::kMapped && !deferred_.waits(id))
        return {memory_.address(instance), instance.layout.c_str()};
    const std::byte* at = source_->mapped(storage.name);
    if (!at) fail(TSR_INTERNAL, "{}: planned as mapped, but the source does not map it", storage.name);
    // Kernels only read weights.
    return {const_cast<std::byte*>(at), deferred_.waits(id) ? "" : instance.layout.c_str()};
}

void Executor::pack_one() {
    if (deferred_.empty()) return;
    const InstanceId packed = deferred_.pack_next(*source_);
    for (PreparedNode& node : nodes_) {
        const auto& operands = node.planned().operands;
        if (std::ranges::find(operands, packed) == operands.end()) continue;
        // Until this succeeds the node reads the weight at its old address, which is still valid.
        node = prepare(node.planned());
    }
}

void Executor::pack_for(double seconds) {
    const double end = deferred_.progress().seconds + seconds;
    while (!deferred_.empty() && deferred_.progress().seconds < end) pack_one();
}

std::span<std::byte> Executor::input(std::string_view name) {
    const uint32_t slots = plan_.step.slots;
    if (submitted_ >= slots) finish_up_to(submitted_ - slots + 1);
    for (const Instance& instance : plan_.instances) {
        const Storage& storage = plan_.graph.storage(instance.storage);
        if (instance.storage == 0 || instance.device != 0 || storage.role != TSR_ROLE_INPUT || storage.name != name)
            continue;
        const auto slot = static_cast<uint32_t>(submitted_ % slots);
        return {static_cast<std::byte*>(memory_.address(instance, slot)), instance.bytes};
    }
    return {};
}

const std::byte* Executor::output(std::string_view name) const {
    const Value value = plan_.graph.find_output(name);
    if (!value) fail(TSR_NOT_FOUND, "the graph has no output '{}'", name);
    for (InstanceId id = 1; id < plan_.instances.size(); ++id) {
        const Instance& instance = plan_.instances[id];
        if (instance.storage != plan_.graph.storage_of(value) || !plan_.is_output(id)) continue;
        return static_cast<const std::byte*>(memory_.address(instance)) + plan_.graph.tensor(value).offset;
    }
    fail(TSR_INTERNAL, "the output '{}' is not on the host", name);
}

void Executor::run(const StepSize& size, uint32_t threads, std::string_view output) {
    pack_for(packing_share(size.ranges[TSR_RANGE_ROWS]) * last_step_seconds_);
    choose_output(output);
    const auto begin = Clock::now();
    take_step(size, threads, true);
    last_step_seconds_ = seconds_since(begin);
}

void Executor::submit(const StepSize& size, uint32_t threads, std::string_view output) {
    if (size.ranges[TSR_RANGE_OUTPUT_ROWS].begin < size.ranges[TSR_RANGE_OUTPUT_ROWS].end)
        fail(TSR_INVALID_ARGUMENT, "a step that is not waited for cannot have outputs");
    if (plan_.step.slots == 1) return run(size, threads, output);
    choose_output(output);
    take_step(size, threads, false);
}

void Executor::finish() {
    finish_up_to(submitted_);
    check_faults();
}

void Executor::finish_up_to(uint64_t steps) {
    if (finished_ >= steps) return;
    try {
        // Tracks end steps in order: the events of the last step imply those of all.
        tracks_.finish(steps - 1);
    } catch (const Error& error) {
        abandon(error);
    } catch (...) {
        drain();
        throw;
    }
    if (checker_) checker_->finish(steps - 1);
    finished_ = steps;
}

// After a failure no device may still use memory that the next step uses. Returns what else failed.
std::vector<Error> Executor::drain() noexcept {
    std::vector<Error> failures = tracks_.drain();
    if (checker_) checker_->drain();
    finished_ = submitted_;
    return failures;
}

// The same, and throws the error with what else failed. Later devices compute with data that the failed one has not
// written, so a device's own failure is named before others.
void Executor::abandon(const Error& error) {
    const auto weight = [](tsr_code code) { return code == TSR_DEVICE_LOST ? 2 : code == TSR_DEVICE_ERROR ? 1 : 0; };
    tsr_code code = error.code();
    std::string message = error.what();
    for (const Error& other : drain()) {
        if (message.find(other.what()) != std::string::npos) continue;
        if (weight(other.code()) > weight(code)) {
            message = fmt::format("{}; then {}", other.what(), message);
            code = other.code();
        } else {
            message += fmt::format("; also {}", other.what());
        }
    }
    if (code == TSR_DEVICE_LOST) lost_.emplace(code, message);
    throw Error(code, message);
}

void Executor::check_faults() const {
    if (!checker_ || checker_->faults().empty()) return;
    std::string lines;
    for (const std::string& fault : checker_->faults()) lines += "\n  " + fault;
    fail(TSR_INTERNAL, "the order of the step is not safe:{}", lines);
}

// Does a step's actions: runs those of the host on the team and puts those of devices on their queues.
class Executor::StepVisitor {
  public:
    StepVisitor(Executor& executor, uint32_t threads, bool outputs)
        : executor_(executor),
          threads_(threads),
          outputs_(outputs),
          number_(executor.submitted_),
          slot_(static_cast<uint32_t>(number_ % executor.plan_.step.slots)) {}

    void wait(ActionId id, ActionId other, uint64_t step) {
        if (is_skipped(id)) return;
        executor_.tracks_.wait(executor_.plan_.step.actions[id].track, other, step);
        if (executor_.checker_) executor_.checker_->wait(id, other, step);
    }

    void run(ActionId id) {
        if (is_skipped(id)) return;
        const Action& action = executor_.plan_.step.actions[id];
        if (executor_.checker_) executor_.checker_->run(id, number_);
        if (executor_.cancelled_.load(std::memory_order_relaxed)) fail(TSR_CANCELLED, "the step was cancelled");
        if (action.track != 0) executor_.tracks_.begin(id, number_);
        switch (action.kind) {
            case ActionKind::kUpload:
            case ActionKind::kDownload:
                executor_.copy(action, slot_);
                break;
            case ActionKind::kNodes:
                if (action.track == 0) {
                    executor_.host_nodes_.run(action.first, action.count, executor_.ranges_, threads_);
                } else {
                    launch(id, action);
                }
                break;
            case ActionKind::kInputs:
            case ActionKind::kOutputs:
                break;  // done by the caller, before and after
        }
    }

    void signal(ActionId id) {
        executor_.tracks_.signal(id, number_);
        if (executor_.checker_) executor_.checker_->signal(id, number_);
    }

  private:
    bool is_skipped(ActionId id) const {
        return executor_.plan_.step.actions[id].kind == ActionKind::kOutputs && !outputs_;
    }

    void launch(ActionId id, const Action& action) {
        const bool recorded = executor_.left_out_ == executor_.recorded_;
        if (const tsr_recording recording = recorded ? executor_.recordings_.find(id, executor_.bounds_) : nullptr) {
            try {
                executor_.tracks_.device(action.track).replay(executor_.tracks_.queue(action.track), recording);
            } catch (const Error& error) {
                fail(error.code(), "{}: {}", nodes_text(executor_.plan_, action.first, action.count), error.what());
            }
        } else {
            executor_.enqueue(id, executor_.bounds_);
        }
    }

    Executor& executor_;
    uint32_t threads_;
    bool outputs_;
    uint64_t number_;
    uint32_t slot_;
};

void Executor::take_step(const StepSize& size, uint32_t threads, bool outputs) {
    if (lost_) throw Error(*lost_);
    cancelled_.store(0, std::memory_order_relaxed);
    try {
        const uint32_t slots = plan_.step.slots;
        if (submitted_ >= slots) finish_up_to(submitted_ - slots + 1);
        std::ranges::copy(size.ranges, ranges_);
        bounds_ =
            recordings_.bounds_of(StepBounds::of_step(size, plan_.options.max_tokens, plan_.options.max_sequences));
        std::byte* block = memory_.input_block(0, static_cast<uint32_t>(submitted_ % slots));
        std::memcpy(block + plan_.input_block.ranges, ranges_, sizeof ranges_);
        StepVisitor visitor(*this, threads, outputs);
        walk_step(plan_.step, submitted_, visitor);
        ++submitted_;
        if (outputs) finish_up_to(submitted_);
    } catch (const Error& error) {
        abandon(error);
    } catch (...) {
        drain();
        throw;
    }
    check_faults();
}

void Executor::enqueue(ActionId id, const StepBounds& bounds) {
    const Action& action = plan_.step.actions[id];
    const DeviceIndex device = plan_.step.device_of(action);
    tsr_range wanted[TSR_RANGE_COUNT];
    for (int i = 0; i < TSR_RANGE_COUNT; ++i) wanted[i] = {0, bounds.rows[i]};
    const tsr_launch_pages pages{{sizeof(tsr_launch_pages), 0, nullptr, TSR_LAUNCH_PAGES}, bounds.pages};
    tsr_launch launch{};
    launch.struct_size = sizeof launch;
    launch.next = &pages.chain;
    launch.ranges = reinterpret_cast<const tsr_range*>(memory_.input_block(device) + plan_.input_block.ranges);
    launch.row_bounds = bounds.rows;
    launch.token_bound = bounds.tokens;
    launch.workspace = memory_.workspace(device);
    launch.queue = tracks_.queue(action.track);
    for (uint32_t i = action.first; i < action.first + action.count; ++i) {
        const PreparedNode& node = nodes_[i];
        if (node.idle(wanted)) continue;
        try {
            node.enqueue(launch);
        } catch (const Error& error) {
            node.fail(error);
        }
    }
}

// Of the input block what the step has: states of rows are many times as long as all other inputs.
uint64_t Executor::input_bytes() const {
    const InputBlock& block = plan_.input_block;
    if (block.last == 0) return block.bytes;
    const Storage& last = plan_.graph.storage(block.last);
    const auto rows = static_cast<uint64_t>(std::max(ranges_[last.range].end, 0));
    return block.last_begin + std::min(last.bytes, rows * last.row_bytes);
}

void Executor::copy(const Action& action, uint32_t slot) {
    OpenDevice& device = tracks_.device(action.track);
    const tsr_queue queue = tracks_.queue(action.track);
    const auto name_it = [&](uint64_t bytes, auto&& body) {
        try {
            body();
        } catch (const Error& error) {
            fail(error.code(), "{}: {}", copy_text(plan_, action, fmt::format("{} bytes", bytes)), error.what());
        }
    };
    if (action.from == 0) {
        const std::byte* block = memory_.input_block(0, slot);
        std::byte* const to = memory_.input_block(plan_.step.device_of(action));
        const uint64_t bytes = input_bytes();
        return name_it(bytes, [&] { device.upload(queue, to, block, bytes); });
    }
    const Instance &from = plan_.instances[action.from], &to = plan_.instances[action.to];
    if (left_out_ && left_out_->storages.contains(from.storage)) return;
    const Storage& storage = plan_.graph.storage(from.storage);
    uint64_t begin = 0, bytes = action.maximum_bytes;
    if (storage.range != TSR_RANGE_FIXED) {
        const tsr_range& rows = ranges_[storage.range];
        if (rows.begin >= rows.end) return;
        begin = static_cast<uint64_t>(rows.begin) * storage.row_bytes;
        bytes = static_cast<uint64_t>(rows.end - rows.begin) * storage.row_bytes;
    }
    const auto at = [&](const Instance& instance) {
        return static_cast<std::byte*>(memory_.address(instance)) + begin;
    };
    // Rows that a peer copies from this device stay here until then.
    if (action.kind == ActionKind::kDownload && direct_.contains(action.to)) return;
    name_it(bytes, [&] {
        if (action.kind == ActionKind::kDownload) {
            device.download(queue, at(to), at(from), bytes);
        } else if (direct_.contains(action.from)) {
            const Instance& peer = plan_.instances[action.peer];
            device.copy_from_peer(queue, at(to), *memory_.device(peer.device), at(peer), bytes);
        } else {
            device.upload(queue, at(to), at(from), bytes);
        }
    });
}

void Executor::save_page(uint32_t group, uint32_t page, std::span<std::byte> to) {
    if (lost_) throw Error(*lost_);
    try {
        page_copies_.download(group, page, to);
    } catch (const Error& error) {
        abandon(error);
    }
}

void Executor::load_page(uint32_t group, uint32_t page, std::span<const std::byte> from) {
    if (lost_) throw Error(*lost_);
    try {
        page_copies_.upload(group, page, from);
    } catch (const Error& error) {
        abandon(error);
    }
}

void Executor::copy_pages(uint32_t group, std::span<const std::pair<uint32_t, uint32_t>> pages) {
    if (lost_) throw Error(*lost_);
    try {
        page_copies_.enqueue(group, pages);
    } catch (const Error& error) {
        abandon(error);
    }
}

}  // namespace tessera
