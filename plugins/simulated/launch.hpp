// Kernels on queues: what prepare keeps, and a launch with all of its addresses resolved.
#pragma once

#include "command.hpp"
#include "device.hpp"
#include "plugins/reference/oracle/oracle.hpp"

#include <tessera/kernel.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace tessera::simulated {

// A prepared kernel.
class State : public Held {
  public:
    // `node` outlives it, or is not used after mark_released().
    State(Device& on, const oracle::Op& computes, const tsr_node& of, uint64_t workspace) noexcept
        : device(on), op(computes), node(of), workspace_bytes(workspace) {}
    std::string describe() const override { return std::string("the state of a kernel of ") + op.name; }

    Device& device;
    const oracle::Op& op;
    const tsr_node& node;
    uint64_t workspace_bytes;
};

// Resolves the addresses and puts the work on launch.queue. Throws sdk::Failure naming op, node and operand.
void enqueue_launch(State& state, const tsr_launch& launch);

}  // namespace tessera::simulated
