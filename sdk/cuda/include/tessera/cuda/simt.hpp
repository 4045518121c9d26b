// What a GPU kernel is written against: one source, two meanings. For a GPU (NVRTC) these names are instructions; in
// the emulator (TSR_CUDA_EMULATED, a C++ compiler for the host) they are calls that run and check the kernel on the
// CPU. docs/cuda-kernels.md tells how to write, build, emulate and check one.
//
// Given by the build: SIMT_MODULE, the module's name as an identifier; SIMT_ARCH, 100 * major + 10 * minor of the
// virtual architecture that is compiled for: 600, 610 or 800.
//
// Both branches offer, all but the macros in namespace simt:
//
//   SIMT_DEVICE                   before a function that kernels call
//   SIMT_KERNEL(threads, blocks)  before a kernel's name: at most `threads` a block, registers for `blocks` a
//                                 multiprocessor. Arguments are trivially copyable; nothing is returned.
//   SIMT_SHARED(T, name, count)   an array in shared memory, of fixed size
//   SIMT_DYNAMIC_SHARED(name)     unsigned char*: the shared memory that the launch gives, aligned to 128 bytes
//   SIMT_UNROLL                   before a loop of a constant number of steps
//   SIMT_KEEP_LOOP                before a loop that compilers shall not unroll, for what it holds is large
//
//   Index {x, y, z}: thread_index() block_index() block_size() grid_size();  lane() in the warp, warp() in the block
//   half_t, bfloat16_t            to_float (exact), from_float<T> (to nearest even)
//   pack<T>(float, float)         two of them in a uint32_t, the first in the low half; unpack_low, unpack_high<T>
//   fma_halves(a, b, c)           a b + c of both f16 of such words, rounded once
//   sync_block() sync_warp(mask) named_barrier_sync(id, threads) named_barrier_arrive(id, threads)
//   fence_block() fence_device()
//   shuffle(v, lane) shuffle_xor(v, mask) shuffle_down(v, delta) by all lanes of a warp; T: int, unsigned, float
//   reduce_sum(v) reduce_maximum(v)   of the floats of all lanes, the same in every lane: by shuffle_xor 16, 8, 4, 2, 1
//   vote_any(p) vote_all(p) vote_ballot(p)   by all lanes of a warp
//   dp4a(a, b, c)                 c + the dot product of four int8; SIMT_ARCH >= 610
//   ldmatrix_x4, ldmatrix_x4_transposed(r, shared)   four 8x8 matrices of 16-bit elements; SIMT_ARCH >= 800
//   mma_f16, mma_bf16 (c, a, b)   m16n8k16, sums in f32; SIMT_ARCH >= 800, as the next ones
//   mma_f16_k8, mma_bf16_k8 (c, a, b)  the same of m16n8k8
//   mma_s8 (c, a, b)              m16n8k32, sums in int32
//   mma_s8_to (d, a, b, c)        the same, d = a b + c; mma_s8_k16_to  of m16n8k16
//   copy_async16(shared, global, bytes)   16 bytes, of which all but the first `bytes` (0 to 16) are zeros;
//   copy_async_commit() copy_async_wait<N>()   until at most N committed groups are under way; SIMT_ARCH >= 800
//   atomic_add(T*, T) for int, unsigned, float; atomic_max(T*, T) for int, unsigned; atomic_cas(unsigned*, compare, v)
//   load_global<T>(p)             through the read-only cache: nobody writes p while the kernel runs; it is aligned
//                                 to sizeof(T): 1, 2, 4, 8 or 16 bytes
//   store_global(p, v)            one access of sizeof(T) bytes
//   UInt2, UInt4, Float2, Float4  vectors of 8 and 16 bytes, aligned to that
//   exp2f expf rsqrtf sqrtf rcp fmaf fminf fmaxf fabsf roundf   accurate to a few units in the last place
//   convert_to_int(v)             to nearest even
//   byte_permute(a, b, selector)  each of the low four nibbles of the selector picks one of the eight bytes of a and b;
//   if
//                                 its highest bit is set, eight times that byte's sign bit
//   multiply_high(a, b)           the upper 32 bits of the product of two uint32_t
//   minimum(a, b) maximum(a, b) bits_as<To>(from)
#pragma once

#ifdef TSR_CUDA_EMULATED
#include <tessera/cuda/simt_emulated.hpp>
#else
#include <tessera/cuda/simt_device.hpp>
#endif
