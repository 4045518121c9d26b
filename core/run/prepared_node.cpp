#include "core/run/prepared_node.hpp"

#include "core/base/log.hpp"
#include "core/run/work_text.hpp"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

// The range that decides whether a node has work: that of its output, or of its first input.
int32_t working_range(const tsr_node& node) {
    if (node.output_count && node.outputs[0]->range != TSR_RANGE_FIXED) return node.outputs[0]->range;
    return node.input_count && sdk::present(node.inputs[0]) ? node.inputs[0]->range : TSR_RANGE_FIXED;
}

// Of the seconds of such a node most are the barrier and the call; few bytes say that one worker reads them as soon as
// several would. A depth that costs time, as in attention, is in seconds_one_row_full.
bool is_short(const NodeEstimate& estimate) noexcept {
    constexpr double kMaximumSeconds = 4e-6, kMaximumBytes = 128 << 10;
    const double seconds = std::max(estimate.seconds_one_row, estimate.seconds_one_row_full);
    return seconds > 0 && seconds <= kMaximumSeconds && estimate.bytes_one_row > 0 &&
           estimate.bytes_one_row <= kMaximumBytes;
}

}  // namespace

PreparedNode::PreparedNode(const Plan& plan, const Registry& registry, const PlannedNode& planned,
                           const OpenDevice* device, const Bind& bind)
    : plan_(&plan),
      registry_(&registry),
      planned_(&planned),
      device_(device),
      view_(std::make_unique<NodeView>(plan.graph, plan.graph.nodes()[planned.node])),
      working_range_(working_range(view_->abi())),
      is_short_(is_short(planned.estimate)) {
    for (uint32_t i = 0; i < planned.operands.size(); ++i) {
        const InstanceId id = planned.operands[i];
        if (id == 0) {
            data_.push_back(nullptr);
            continue;
        }
        const Bound bound = bind(id);
        data_.push_back(bound.address);
        view_->operand(i).layout = bound.layout;
    }
    const tsr_kernel& kernel = *planned.kernel;
    const char* name = view_->abi().name;
    running_ = registry.call(kernel, kernel.run ? "run" : "enqueue", name);
    try {
        call_checked(registry.call(kernel, "prepare", name), [&] {
            return kernel.prepare(&kernel, &view_->abi(), plan.devices[planned.device],
                                  device ? device->abi() : nullptr, &state_);
        });
    } catch (const Error& error) {
        fail(error);
    }
    prepared_ = true;
}

PreparedNode::~PreparedNode() {
    if (!prepared_) return;
    const tsr_kernel& kernel = *planned_->kernel;
    try {
        call_plugin(registry_->call(kernel, "release", view_->abi().name), [&] { kernel.release(&kernel, state_); });
    } catch (const Error& error) {
        log().warn("{}", error.what());  // the failure has no consequences
    }
}

PreparedNode::PreparedNode(PreparedNode&& other) noexcept
    : plan_(other.plan_),
      registry_(other.registry_),
      planned_(other.planned_),
      device_(other.device_),
      view_(std::move(other.view_)),
      state_(other.state_),
      prepared_(std::exchange(other.prepared_, false)),
      data_(std::move(other.data_)),
      running_(other.running_),
      working_range_(other.working_range_),
      is_short_(other.is_short_) {}

PreparedNode& PreparedNode::operator=(PreparedNode&& other) noexcept {
    std::swap(plan_, other.plan_);
    std::swap(registry_, other.registry_);
    std::swap(planned_, other.planned_);
    std::swap(device_, other.device_);
    std::swap(view_, other.view_);
    std::swap(state_, other.state_);
    std::swap(prepared_, other.prepared_);
    std::swap(data_, other.data_);
    std::swap(running_, other.running_);
    std::swap(working_range_, other.working_range_);
    std::swap(is_short_, other.is_short_);
    std::swap(left_out_, other.left_out_);
    return *this;
}

bool PreparedNode::idle(const tsr_range (&ranges)[TSR_RANGE_COUNT]) const noexcept {
    if (left_out_) return true;
    if (working_range_ == TSR_RANGE_FIXED) return false;
    const tsr_range& range = ranges[working_range_];
    return range.begin >= range.end;
}

bool PreparedNode::suits_one_worker(const tsr_range (&ranges)[TSR_RANGE_COUNT]) const noexcept {
    if (!is_short_ || working_range_ == TSR_RANGE_FIXED) return false;
    return ranges[working_range_].end - ranges[working_range_].begin == 1;
}

const tsr_status* PreparedNode::run(tsr_run& run) const {
    run.data = data_.data();
    return call_plugin(running_, [&] { return planned_->kernel->run(planned_->kernel, state_, &run); });
}

void PreparedNode::enqueue(tsr_launch& launch) const {
    launch.data = data_.data();
    call_checked(running_, [&] { return planned_->kernel->enqueue(planned_->kernel, state_, &launch); });
}

void PreparedNode::fail(const Error& error) const {
    const Error named(error.code(), fmt::format("{} on {}: {}", node_text(plan_->graph.nodes()[planned_->node]),
                                                plan_->devices[planned_->device]->id, error.what()));
    throw device_ ? device_->noted(named) : named;
}

}  // namespace tessera
