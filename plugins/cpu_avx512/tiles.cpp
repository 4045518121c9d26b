#include "code.hpp"
#include "gemm_tiles.hpp"

#include <tessera/cpu/isa/amx.hpp>

namespace tessera::x86 {

constinit const TileUnit kTiles = make_tile_unit<cpu::isa::Avx512Amx>();

}  // namespace tessera::x86
