// The layouts that this plugin's products read: eight rows interleaved.
#pragma once

#include <tessera/tensor.h>

#include <span>

namespace tessera::x86 {

// One for each weight format. Lives as long as the library; any thread.
std::span<const tsr_layout* const> weight_layouts() noexcept;

// The layouts of a weight of `type`, best first, for tsr_kernel_plan: packed, then canonical. `packable`: its rows are
// whole groups.
const char* const* layouts_of(tsr_type type, bool packable) noexcept;

}  // namespace tessera::x86
