// Instructions on the tile registers of AMX-TILE and AMX-INT8, as assembly for the reasons that avx512_instructions.hpp
// gives, and the system's leave to use them. Tests put a file of this name, in portable code, in its place.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18, and volume 2.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace tessera::cpu::isa::amx {

// Asks the system to let this process use tile registers: all of its threads, also those that run already. False if it
// refuses: before Linux 5.16, under a filter of system calls, or where a thread's alternate signal stack is too small
// for their contents. May be asked again.
inline bool request_permission() noexcept {
    constexpr long kRequest = 0x1023;  // ARCH_REQ_XCOMP_PERM, which headers of older systems lack
    constexpr long kTileData = 18;     // component of the extended state
    return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

// The 64 bytes of a configuration, to this thread and from it. Without one all of them are zero, and the instructions
// below the next two fault.
inline void load_configuration(const void* from) noexcept {
    asm volatile("ldtilecfg %0" ::"m"(*static_cast<const char(*)[64]>(from)) : "memory");
}
inline void store_configuration(void* to) noexcept {
    asm volatile("sttilecfg %0" : "=m"(*static_cast<char(*)[64]>(to)));
}
// Back to none: the system has nothing to save for this thread any more.
inline void release() noexcept {
    asm volatile("tilerelease" ::: "memory");
}

// The rows of a register, `stride` bytes apart in memory.
template <int kRegister>
inline void load(const void* from, int64_t stride) noexcept {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kRegister) : "memory");
}
template <int kRegister>
inline void store(void* to, int64_t stride) noexcept {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kRegister) : "memory");
}
template <int kRegister>
inline void zero() noexcept {
    asm volatile("tilezero %%tmm%c0" ::"i"(kRegister));
}

// sums[row][lane] (int32) += the products of signed bytes rows[row][4 s + i] * lanes[s][lane][i] over all s and i.
template <int kSums, int kRows, int kLanes>
inline void add_byte_products() noexcept {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kRows), "i"(kLanes));
}

}  // namespace tessera::cpu::isa::amx
