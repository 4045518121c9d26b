// Checks by the name of their op.
#pragma once

#include <tessera/cpu/check.hpp>

#include <string_view>

namespace tessera::cpu {

// Refuses in `plan` a node that does not agree with ops.h or cannot be computed from canonical data, else sets
// plan.supported and estimates the work. No allocation, any thread.
using CheckFunction = void (*)(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept;

struct NamedCheck {
    std::string_view op;
    CheckFunction check;
};

}  // namespace tessera::cpu
