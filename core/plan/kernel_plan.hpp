// What a kernel says in its plan is data from outside: it is checked before anything of it is used.
#pragma once

#include "core/registry/registry.hpp"

#include <tessera/kernel.h>

#include <string>
#include <string_view>

namespace tessera {

// What in it breaks the rules of kernel.h, what was found and what expected; empty if nothing does. `interop`
// of the device that it is for, "" for the CPU.
std::string kernel_plan_fault(const tsr_kernel_plan& plan, const tsr_node& node, std::string_view interop,
                              const Registry& registry);

}  // namespace tessera
