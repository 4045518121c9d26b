#include "cache_rows.hpp"
#include "cache_write.hpp"

#include <tessera/cpu/isa/avx2_vectors.hpp>

namespace tessera::x86 {

void run_cache_write(const CacheWrite& write, const tsr_run& run) {
    attention::run_cache_write<cpu::isa::Avx2Vectors>(write, run);
}

}  // namespace tessera::x86
