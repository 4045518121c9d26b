// Kernels on queues: what prepare keeps, and a launch with all of its addresses resolved.
#pragma once

#include "command.hpp"
#include "device.hpp"
#include "kernels/plain/plain.hpp"
#include "layouts.hpp"

#include <tessera/kernel.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace tessera::simulated {

// A node whose packed weights are described as the canonical rows that they are computed as.
class CanonicalNode {
  public:
    // `node` outlives it. Throws sdk::Failure for a layout that is none of this plugin's.
    explicit CanonicalNode(const tsr_node& node);
    CanonicalNode(const CanonicalNode&) = delete;

    const tsr_node& node() const noexcept { return node_; }
    // Of operand `index`; without layout if that is canonical.
    const PackedWeight& packed(uint32_t index) const noexcept { return packed_[index]; }

  private:
    tsr_node node_;
    std::array<const tsr_tensor*, TSR_MAX_OPERANDS> pointers_{};
    std::array<tsr_tensor, TSR_MAX_OPERANDS> tensors_{};
    std::array<PackedWeight, TSR_MAX_OPERANDS> packed_{};
};

// A prepared kernel.
class State : public Held {
  public:
    // `node` outlives it, or is not used after mark_released().
    State(Device& on, const plain::Op& computes, const tsr_node& of, uint64_t workspace)
        : device(on), op(computes), canonical(of), node(canonical.node()), workspace_bytes(workspace) {}
    std::string describe() const override { return std::string("the state of a kernel of ") + op.name; }

    Device& device;
    const plain::Op& op;
    CanonicalNode canonical;
    const tsr_node& node;
    uint64_t workspace_bytes;
};

// Resolves the addresses and puts the work on launch.queue. Throws sdk::Failure naming op, node and operand.
void enqueue_launch(State& state, const tsr_launch& launch);

}  // namespace tessera::simulated
