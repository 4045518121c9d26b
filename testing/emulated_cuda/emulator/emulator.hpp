// Runs kernels of emulated libraries on the CPU: the threads of a block are fibers of the calling thread, and every
// load and store is checked. What is found ends the launch with a report.
//
// Races are found by happens-before: two accesses to the same bytes by different threads, one of them a write, that no
// barrier, warp-wide operation or (between blocks) atomic with fences orders. Blocks are executed one after another, in
// a random order; a kernel in which a block waits for a later one does not end on a GPU with few processors either.
#pragma once

#include "memory.hpp"

#include <tessera/cuda/emulated_interface.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tessera::cuda::emulator {

// What the kernels of one name did. All but the first four and the last need Options::count. Of kernels run from PTX,
// requests are not counted.
struct Counters {
    uint64_t launches = 0, blocks = 0, switches = 0, matrix_products = 0;
    uint64_t accesses = 0;              // loads and stores that were checked
    uint64_t shared_requests = 0;       // loads and stores of shared memory, one for all lanes of a warp
    uint64_t shared_wavefronts = 0;     // what they take: more than requests_ideal means conflicts between banks
    uint64_t shared_ideal = 0;          // what they would take without conflicts
    uint64_t global_requests = 0;       // the same of global memory
    uint64_t global_sectors = 0;        // 32-byte sectors that they touch
    uint64_t global_sectors_ideal = 0;  // the minimum for as many bytes
    uint64_t instructions = 0;          // of PTX that warps have executed
    void add(const Counters& other) noexcept;
};

// When data of asynchronous copies arrives in shared memory.
enum class CopyArrival { kRandom, kEarly, kLate };

struct Options {
    uint64_t seed = 1;     // of the orders of blocks, warps and lanes, and of arrivals
    bool ordered = false;  // blocks, warps and lanes in the order of their numbers
    CopyArrival arrival = CopyArrival::kRandom;
    bool check_races = true;
    bool check_unwritten = true;
    bool count = false;    // conflicts and sectors; takes twice the time
    bool collect = false;  // Outcome::touched; needs check_races
    // Accesses and changes of fibers that a block may make: one that makes more waits for what does not come.
    uint64_t patience = 500'000'000;
};

// Bytes of allocations and of page-locked memory that a launch has read, or has written.
struct Touched {
    uintptr_t begin, end;
    bool written;
};

struct Launch {
    const simt::emulated::Kernel* kernel = nullptr;
    uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    uint32_t dynamic_shared = 0;                   // bytes
    uint32_t shared_limit = 48 << 10;              // bytes of static and dynamic arrays together
    uint32_t arch = 860;                           // what simt::arch() says
    void* const* parameters = nullptr;             // one pointer each
    uint64_t parameter_bytes_total = 0;            // for the memory that they lie in, from parameters[0] on; 0 if apart
    std::shared_ptr<const Ranges> memory;          // of the process
    uint64_t devices = 1;                          // bit i: card i may be reached; memory of the host always may
    uintptr_t library_begin = 0, library_end = 0;  // the kernel's own library, mapped: its constants
};

enum class Fault { kNone, kIllegalAddress, kMisaligned, kLaunchFailed, kTimeout };

struct Outcome {
    Fault fault = Fault::kNone;
    std::string report;  // kernel, block, thread, address, and what was expected
    Counters counters;
    std::vector<Touched> touched;  // what is written is not listed as read; sorted, none overlap
};

// Blocks until the launch has ended. Any thread, one launch a thread at a time.
Outcome run(const Launch& launch, const Options& options);

// Passes the emulator's functions to a library and returns its kernels; null and a reason if it is no such library, or
// of another version. `library`: a handle of dlopen.
const simt::emulated::Module* attach(void* library, std::string& reason);

}  // namespace tessera::cuda::emulator
