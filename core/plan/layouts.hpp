// Chooses the kernel of each node and the layout of each weight and cache together: a storage has one layout that all
// its consumers on a device can read, unless that would make one of them slow.
#pragma once

#include "core/plan/kernels.hpp"
#include "core/plan/lower.hpp"

#include <deque>
#include <string>
#include <vector>

namespace tessera {

struct ChosenNode {
    KernelCandidate candidate;
    std::vector<std::string> layouts;   // of each operand
    std::vector<std::string> why_copy;  // of each operand: why the storage has a layout of its own for this node
    std::vector<Rejection> rejected;
};

// One for each node of the lowered graph. Without `pack`, weights stay as their source has them where every reader can
// read that. Throws Error(TSR_UNSUPPORTED) naming storage and kernels if no layout serves a cache, or if no kernel of a
// node takes an operand as it can be kept.
std::deque<ChosenNode> choose_kernels(const LoweredGraph& lowered, const Registry& registry,
                                      std::span<const tsr_device_info* const> devices, bool pack);

}  // namespace tessera
