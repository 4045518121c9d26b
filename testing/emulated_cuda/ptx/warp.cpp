#include "executor.hpp"

#include <algorithm>
#include <bit>

namespace tessera::cuda::ptx {

void part(Warp& warp, uint32_t lanes, uint32_t pc, bool waits) {
    warp.others.push_back({pc, lanes, waits});
    warp.active &= ~lanes;
    warp.limit = 0;
}

bool regroup(Warp& warp, uint32_t end, std::vector<Group>& stuck) {
    std::vector<Group>& others = warp.others;
    if (warp.active) others.push_back({warp.pc, warp.active, false});
    warp.active = 0;
    const Group* next = nullptr;
    for (const Group& group : others) {
        if (!group.waits && (!next || group.pc < next->pc)) next = &group;
    }
    if (!next) {
        stuck = others;
        return false;
    }
    warp.pc = next->pc;
    warp.limit = end;
    size_t kept = 0;
    for (const Group& group : others) {
        if (group.pc == warp.pc) {
            warp.active |= group.lanes;
            continue;
        }
        if (group.pc > warp.pc) warp.limit = std::min(warp.limit, group.pc);
        others[kept++] = group;
    }
    others.resize(kept);
    return true;
}

bool gathered(Warp& warp, const Instruction&, uint32_t lanes, uint32_t members) {
    members &= warp.population;
    if ((members & ~warp.alive) != 0)
        throw Trap{Fault::kLaunchFailed,
                   "lane " + std::to_string(std::countr_zero(members & ~warp.alive)) +
                       ", which the instruction is to be executed by, has ended before",
                   static_cast<uint32_t>(std::countr_zero(lanes))};
    if ((lanes & members) == members) return true;
    part(warp, lanes, warp.pc - 1, true);
    return false;
}

bool gathered_by_mask(Warp& warp, const Instruction& instruction, uint32_t lanes, Place mask, uint32_t& members) {
    const uint32_t* const masks = warp.at<uint32_t>(mask);
    members = masks[std::countr_zero(lanes)];
    for (uint32_t l = 0; l < kLanes; ++l) {
        if (!(lanes >> l & 1)) continue;
        if (masks[l] != members)
            throw Trap{Fault::kLaunchFailed,
                       "lanes that execute the instruction together differ in their masks of members", l};
        if (!(members >> l & 1)) throw Trap{Fault::kLaunchFailed, "the lane is not in its own mask of members", l};
    }
    return gathered(warp, instruction, lanes, members);
}

bool all_gathered(Warp& warp, const Instruction& instruction, uint32_t lanes, bool whole) {
    if (whole && warp.population != kAllLanes)
        throw Trap{
            Fault::kLaunchFailed,
            "the instruction needs a warp of 32 lanes; this one has " + std::to_string(std::popcount(warp.population)),
            static_cast<uint32_t>(std::countr_zero(lanes))};
    return gathered(warp, instruction, lanes, kAllLanes);
}

}  // namespace tessera::cuda::ptx
