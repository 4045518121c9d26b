// A warp while it is executed: which of its lanes are where.
//
// Lanes have program counters of their own; those at the same instruction execute it together, the ones with the least
// counter first. The ISA leaves the order of diverged lanes open from compute capability 7.0 on; on earlier ones lanes
// go on together behind the branch where their ways meet. Compilers lay code out so that ways meet at an instruction
// behind both of them: lanes that are behind wait there for nobody and are caught up with, so that they meet as early
// as they can. An instruction of several lanes (shfl.sync and so on) waits for those that it names, which must come to
// the same instruction, as cards before 7.0 need it.
#pragma once

#include "program.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::cuda::ptx {

class Executor;

struct Group {
    uint32_t pc, lanes;
    bool waits;  // for lanes that its instruction names
};

enum class State : uint8_t { kReady, kAtBarrier, kEnded };

struct PendingCopy {
    uint64_t to, from;  // addresses in shared and in global memory
    uint32_t group;     // of the lane
    uint16_t lane;
    uint8_t bytes, size;  // read, and written in all
};

struct Warp {
    // The values of 32 lanes, or the bits of a predicate.
    template <class T>
    T* at(Place place) const noexcept {
        return reinterpret_cast<T*>(bases[place >> 31] + (place & ~kConstant));
    }
    uint32_t& bits(Place place) const noexcept { return *at<uint32_t>(place); }

    std::array<uint8_t*, 2> bases{};  // registers, constants
    Executor* executor = nullptr;
    uint32_t number = 0;
    uint32_t pc = 0;      // of the active lanes
    uint32_t limit = 0;   // where others may join them; 0: to be asked at once
    uint32_t active = 0;  // lanes that execute
    uint32_t population = 0, alive = 0;
    State state = State::kReady;
    bool yields = false;  // others are to go on first
    std::vector<Group> others;

    // ---- at a barrier ----
    uint32_t barrier = 0;
    const Instruction* at_barrier = nullptr;
    uint32_t barrier_lanes = 0;

    // ---- asynchronous copies ----
    std::vector<PendingCopy> copies;
    std::array<uint32_t, kLanes> committed{};  // groups, by lane
};

// Takes the lanes out of those that execute; they go on at `pc`.
void part(Warp& warp, uint32_t lanes, uint32_t pc, bool waits);
// Lanes that are behind go on. False if none are left, or those that are wait in vain: then `stuck` says where.
bool regroup(Warp& warp, uint32_t end, std::vector<Group>& stuck);
// Whether all of `members` execute the instruction; else those that do wait at it. Faults if that cannot come about.
bool gathered(Warp& warp, const Instruction& instruction, uint32_t lanes, uint32_t members);
// The same for instructions whose members are in a register, the same in all lanes.
bool gathered_by_mask(Warp& warp, const Instruction& instruction, uint32_t lanes, Place mask, uint32_t& members);
// For instructions that all lanes of a warp execute (.aligned); `whole`: of a warp of 32.
bool all_gathered(Warp& warp, const Instruction& instruction, uint32_t lanes, bool whole);

}  // namespace tessera::cuda::ptx
