// What the files of this plugin bring to its table.
#pragma once

#include <tessera/graph.h>
#include <tessera/kernel.h>

namespace example {

extern const tsr_kernel kAddKernel;
extern const tsr_kernel kSoftCapKernel;
extern const tsr_operator kSoftCapOperator;

// Of plain C++ on one core, for estimates of time: elements a second, with an exponential for each.
inline constexpr double kElementsASecond = 3e8;

// Fills in the estimates of an element-wise kernel.
void estimate(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) noexcept;

}  // namespace example
