// Kernels that may start while the one before them ends: programmatic dependent launch (CUDA programming guide; PTX ISA
// manual, "griddepcontrol").
#pragma once

#include <string>

namespace tessera::cuda::compiler {

// Whether code for sm_`real` can wait for the grid that it was launched behind.
constexpr bool can_overlap(int real) {
    return real >= 90;
}

// The PTX for sm_`real`, with every kernel made to wait until the grids that it was launched behind have ended and what
// they wrote is seen, so that each kernel of a chain waits for all before it, whichever memory it shares with them: at
// its beginning, or where it has the comment "// tessera wait". Grids of few blocks then let the next one start. The
// comment "// tessera prefetch [ADDRESS]" becomes a prefetch into the second-level cache. Throws std::runtime_error for
// text that is no PTX of NVRTC's.
std::string overlapping(const std::string& ptx, int real);

}  // namespace tessera::cuda::compiler
