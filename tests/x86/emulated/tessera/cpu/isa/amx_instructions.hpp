// In place of the header of this name in the kit: tile registers of each thread in plain C++, as the Software
// Developer's Manual describes them. What a processor answers with a fault is an exception here.
#pragma once

#include "emulated_tiles.hpp"

#include <cstdint>

namespace tessera::cpu::isa::amx {

inline bool request_permission() noexcept {
    return tests::emulated::tile_system().request();
}
inline void load_configuration(const void* from) {
    tests::emulated::tile_registers().load_configuration(from);
}
inline void store_configuration(void* to) noexcept {
    tests::emulated::tile_registers().store_configuration(to);
}
inline void release() noexcept {
    tests::emulated::tile_registers().release();
}
template <int kRegister>
inline void load(const void* from, int64_t stride) {
    tests::emulated::tile_registers().load(kRegister, from, stride);
}
template <int kRegister>
inline void store(void* to, int64_t stride) {
    tests::emulated::tile_registers().store(kRegister, to, stride);
}
template <int kRegister>
inline void zero() {
    tests::emulated::tile_registers().zero(kRegister);
}
template <int kSums, int kRows, int kLanes>
inline void add_byte_products() {
    tests::emulated::tile_registers().add_byte_products(kSums, kRows, kLanes);
}

}  // namespace tessera::cpu::isa::amx
