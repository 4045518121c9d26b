// A node of the plan with its kernel prepared and its operands bound to memory.
#pragma once

#include "core/base/error.hpp"
#include "core/base/plugin_call.hpp"
#include "core/plan/plan.hpp"
#include "core/run/open_device.hpp"

#include <tessera/kernel.h>

#include <functional>
#include <memory>
#include <vector>

namespace tessera {

class PreparedNode {
  public:
    // Address and current layout of an instance.
    struct Bound {
        void* address = nullptr;
        const char* layout = "";
    };
    using Bind = std::function<Bound(InstanceId)>;

    // `device`: nullptr for the CPU. It, `plan` and `registry` outlive the node. Throws Error as fail does.
    PreparedNode(const Plan& plan, const Registry& registry, const PlannedNode& planned, const OpenDevice* device,
                 const Bind& bind);
    ~PreparedNode();
    PreparedNode(PreparedNode&& other) noexcept;
    PreparedNode& operator=(PreparedNode&& other) noexcept;

    const PlannedNode& planned() const noexcept { return *planned_; }
    // Until it is called with false, the node has nothing to do.
    void leave_out(bool left_out) noexcept { left_out_ = left_out; }
    // Whether the node has nothing to do for these row counts of the ranges.
    bool idle(const tsr_range (&ranges)[TSR_RANGE_COUNT]) const noexcept;
    // Of the host: whether for these row counts one worker is expected to compute it in less time than several take to
    // meet, by the kernel's estimate.
    bool suits_one_worker(const tsr_range (&ranges)[TSR_RANGE_COUNT]) const noexcept;

    // Thread rules are those of the kernel's functions.
    // Throws Error naming plugin and kernel if the kernel throws.
    const tsr_status* run(tsr_run& run) const;
    // Throws Error naming plugin and kernel if the kernel throws or fails.
    void enqueue(tsr_launch& launch) const;

    // Describes a call of run() for messages.
    const PluginCall& running() const noexcept { return running_; }
    // Throws the Error with node, op, layer and device before its message, noted by the device.
    [[noreturn]] void fail(const Error& error) const;

  private:
    const Plan* plan_;
    const Registry* registry_;
    const PlannedNode* planned_;
    const OpenDevice* device_;
    std::unique_ptr<NodeView> view_;
    void* state_ = nullptr;
    bool prepared_ = false;
    std::vector<void*> data_;
    PluginCall running_;
    int32_t working_range_ = TSR_RANGE_FIXED;
    bool is_short_ = false;  // for one row
    bool left_out_ = false;
};

}  // namespace tessera
