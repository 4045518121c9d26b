// A node of the plan with its kernel prepared and its operands bound to memory.
#pragma once

#include "core/plan/plan.hpp"

#include <tessera/kernel.h>

#include <functional>
#include <memory>
#include <vector>

namespace tessera {

class PreparedNode {
  public:
    // Where an instance lies, and in which layout it is now.
    struct Bound {
        void* address = nullptr;
        const char* layout = "";
    };
    using Bind = std::function<Bound(InstanceId)>;

    // `device`: opened; nullptr for the CPU. `plan` and `registry` outlive the node. Throws Error as fail does.
    PreparedNode(const Plan& plan, const Registry& registry, const PlannedNode& planned, tsr_device* device,
                 const Bind& bind);
    ~PreparedNode();
    PreparedNode(PreparedNode&& other) noexcept;
    PreparedNode& operator=(PreparedNode&& other) noexcept;

    const PlannedNode& planned() const noexcept { return *planned_; }
    // Whether the node has nothing to do where that many rows of each range are there.
    bool idle(const tsr_range (&ranges)[TSR_RANGE_COUNT]) const noexcept;

    // Thread rules are those of the kernel's functions.
    const tsr_status* run(tsr_run& run) const noexcept;
    const tsr_status* enqueue(tsr_launch& launch) const noexcept;

    // Throws Error naming node, op, layer, device, plugin and kernel. Takes the status.
    [[noreturn]] void fail(const tsr_status* status) const;

  private:
    const Plan* plan_;
    const Registry* registry_;
    const PlannedNode* planned_;
    std::unique_ptr<NodeView> view_;
    void* state_ = nullptr;
    bool prepared_ = false;
    std::vector<void*> data_;
    int32_t working_range_ = TSR_RANGE_FIXED;
};

}  // namespace tessera
