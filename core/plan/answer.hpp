// What a kernel's plan answers is data from outside: it is checked before anything of it is used.
#pragma once

#include "core/registry/registry.hpp"

#include <tessera/kernel.h>

#include <cstdint>
#include <string>

namespace tessera {

// No workspace, and no minimum of scratch memory, is larger (kernel.h).
constexpr uint64_t kMaxWorkspaceBytes = uint64_t{1} << 46;
// Nor has a list of layouts more names.
constexpr uint32_t kMaxLayouts = 64;

// What in the answer breaks the rules of kernel.h, what was found and what expected; empty if nothing does.
std::string answer_fault(const tsr_kernel_plan& plan, const tsr_node& node, const Registry& registry);

}  // namespace tessera
