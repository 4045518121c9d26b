// A kernel as it is executed: instructions whose operands are places of a warp's register file.
#pragma once

#include "types.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::cuda::ptx {

struct Warp;
struct Instruction;

inline constexpr uint32_t kLanes = 32, kAllLanes = ~0u;

// Executes an instruction for the lanes whose bits are set.
using Run = void (*)(Warp& warp, const Instruction& instruction, uint32_t lanes);

// `whole` is called when all 32 lanes execute the instruction, `some` otherwise.
struct Handler {
    Run whole = nullptr, some = nullptr;
};

// Bytes from the beginning of the register file to the values of 32 lanes, or to the bits of a predicate; with
// kConstant, from the beginning of the program's constants. While a kernel is translated: a number of a register, or of
// a constant.
using Place = uint32_t;
inline constexpr Place kConstant = 1u << 31, kNowhere = ~0u;

struct alignas(64) Instruction {
    static constexpr uint32_t kPlaces = 6;

    Run whole = nullptr, some = nullptr;
    std::array<Place, kPlaces> places{};  // what it writes first, then what it reads
    uint64_t immediate = 0;
    Place guard = kNowhere;  // executed by lanes in which this predicate is true, or, if negated, false
    uint32_t line = 0;
    uint8_t writes = 0, reads = 0;  // how many of `places`, or of the list
    bool negated = false, has_list = false;
    uint32_t more = 0;  // first of its places in Program::lists; else what the handler makes of it
};
static_assert(sizeof(Instruction) == 64);

enum class Special : uint8_t {
    kThreadX,
    kThreadY,
    kThreadZ,
    kThreadsX,
    kThreadsY,
    kThreadsZ,
    kBlockX,
    kBlockY,
    kBlockZ,
    kBlocksX,
    kBlocksY,
    kBlocksZ,
    kLane,
    kWarp,
    kWarps,
    kMaskEqual,
    kMaskBelow,
    kMaskUpTo,
    kMaskAbove,
    kMaskFrom,
    kDynamicShared,
};

struct SpecialRegister {
    Special which;
    Place place;
};

// An array in shared memory, or a parameter.
struct Extent {
    std::string name;
    uint64_t offset = 0, bytes = 0;
};

// Variables of a module: global and constant memory. Sorted by address.
struct DataRange {
    uintptr_t begin = 0;
    uint64_t bytes = 0;
    std::string name;
    bool constant = false;
};

struct alignas(64) Line {
    uint8_t bytes[64];
};

// Addresses of shared memory: static arrays, with gaps between them, and behind them what the launch gives.
inline constexpr uint64_t kDynamicShared = 256 << 10, kSharedBytes = 512 << 10;

struct Program {
    std::string name;
    std::vector<Instruction> code;  // the last one ends the thread
    std::vector<Place> lists;       // places of instructions with more than kPlaces
    std::vector<Line> constants;
    uint32_t register_bytes = 0;  // of a warp's register file
    std::vector<SpecialRegister> specials;
    std::vector<Extent> shared;  // static arrays
    bool has_fence = false, has_device_fence = false;
    uint64_t local_bytes = 0;  // a lane
    std::vector<Extent> parameters;
    uint64_t parameter_bytes = 0;
    const std::vector<DataRange>* data = nullptr;  // of its module, which lives longer
};

}  // namespace tessera::cuda::ptx
