#include "code.hpp"
#include "plugins/cpu_x86/matmul/gemm_tiles.hpp"

#include <tessera/cpu/isa/amx.hpp>

namespace tessera::cpu_x86 {

constinit const TileUnit kTiles = make_tile_unit<cpu::isa::Avx512Amx>();

}  // namespace tessera::cpu_x86
