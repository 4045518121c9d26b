// What a library of emulated kernels and the emulator exchange. Kernels do not include this file: they see
// <tessera/cuda/simt.hpp>.
//
// A library of emulated kernels exports one C function, `tessera_emulated_module`. It takes the table of the emulator's
// functions and returns the kernels of the library. The table is kept in the library, so that nothing depends on which
// libraries of the process define which symbols.
#pragma once

#include <stdint.h>

namespace simt::emulated {

inline constexpr uint32_t kVersion = 2;

// Where a thread stands. Valid and constant for as long as the thread runs.
struct Position {
    uint32_t thread[3];
    uint32_t lane, warp;
    const uint32_t* block;       // [3]
    const uint32_t* block_size;  // [3]
    const uint32_t* grid_size;   // [3]
    uint32_t arch;               // compute capability of the emulated card, 860 for 8.6
};

// A place in a kernel's source, for reports and to tell whether lanes have converged.
struct Site {
    const char* file;
    const char* operation;
    uint32_t line;
};

// Bits of an access. kUnaligned: the compiler does not rely on its alignment. kReadOnly: through a cache that does not
// see what the kernel writes.
enum Access : uint32_t { kRead = 0, kWrite = 1, kAtomic = 3, kUnaligned = 4, kReadOnly = 8 };

// Operations that all lanes of a warp execute together; the argument of each lane is the struct below.
enum class WarpOperation : uint32_t { kSync, kShuffle, kBallot, kSum, kMaximum, kLdmatrix, kMmaF16, kMmaBf16, kMmaS8 };

struct Shuffle {
    uint32_t value;   // in: own; out: that of lane `source`
    uint32_t source;  // at most 31
};
struct Ballot {
    uint32_t predicate;  // 0 or 1
    uint32_t result;
};
// Sum or maximum: each lane combines its value with that of the lane whose number differs in bit 4, then 3, 2, 1 and 0.
struct Reduction {
    float value;  // in: own; out: that of the warp
};
struct Ldmatrix {
    uint32_t* registers;  // [4]
    const void* row;      // 16 bytes, in shared memory
    bool transposed;
};
// m16n8k16 of half_t or bfloat16_t with a float accumulator, or m16n8k32 of int8 with an int32 accumulator; fragments
// as in the PTX manual, "Warp-level matrix instructions".
struct Mma {
    void* accumulator;  // [4], 32 bits each; in and out
    const uint32_t* a;  // [4]
    uint32_t b[2];
};

struct Interface {
    uint32_t version;
    // A load or store of `bytes` bytes that is about to happen. Does not return if it must not happen.
    void (*access)(const void* address, uint64_t bytes, uint32_t kind, const void* pc);
    void (*copy)(void* to, const void* from, uint64_t bytes, const void* pc);  // memmove, with its checks
    void (*fill)(void* to, int value, uint64_t bytes, const void* pc);         // memset, with its checks
    const Position* (*position)();
    // A static array: the same memory for all threads of a block that ask with the same key.
    void* (*shared)(const void* key, uint64_t bytes, uint64_t alignment);
    void* (*dynamic_shared)();
    void (*warp)(WarpOperation operation, void* arguments, const Site& site);
    void (*sync_block)(const Site& site);
    void (*named_barrier)(uint32_t id, uint32_t threads, bool waits, const Site& site);
    // 16 bytes of shared memory, of which `bytes` come from `global` and the others are set to 0.
    void (*copy_async)(void* shared, const void* global, uint32_t bytes, const Site& site);
    void (*copy_async_commit)();
    void (*copy_async_wait)(uint32_t groups);
    void (*fence)(bool device);
    // Orders as in <atomic>: 0 relaxed to 5 sequentially consistent. Called before the operation, which the caller
    // does.
    void (*atomic)(const void* address, uint64_t bytes, int order, const void* pc);
};

struct Kernel {
    const char* name;
    void (*run)(void* const* parameters);  // one pointer for each parameter
    uint32_t parameter_count;
    const uint32_t* parameter_bytes;
};

struct Module {
    uint32_t version;
    uint32_t arch;  // SIMT_ARCH that it was compiled with
    uint32_t kernel_count;
    const Kernel* kernels;
};

using ModuleFunction = const Module* (*)(const Interface*);
inline constexpr const char* kModuleFunction = "tessera_emulated_module";

}  // namespace simt::emulated
