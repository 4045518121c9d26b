// Which kernels could compute a node, best first.
#pragma once

#include "core/graph/graph.hpp"
#include "core/plan/plan.hpp"
#include "core/registry/registry.hpp"

#include <tessera/kernel.h>

#include <vector>

namespace tessera {

struct KernelCandidate {
    const tsr_kernel* kernel = nullptr;
    tsr_kernel_plan plan{};

    // Layouts that operand `index` may have, best first; never empty ("" is the canonical one).
    std::vector<std::string> layouts(uint32_t index) const;
    bool accepts(uint32_t index, std::string_view layout) const;

    // What the node costs by the kernel's estimate. Generation runs it once a token, a prompt once a batch: both weigh
    // in, a token as much as a row of a batch.
    double seconds() const { return generation_seconds() + prompt_seconds(); }
    double generation_seconds() const;
    double prompt_seconds() const;
};

struct KernelCandidates {
    std::vector<KernelCandidate> able;  // by preference of the config, priority, cost, plugin and name
    std::vector<Rejection> unable;

    double seconds() const;  // of the best; infinite if there is none
};

NodeEstimate estimate_of(const tsr_kernel_plan& plan);

KernelCandidates find_kernels(const tsr_node& node, const tsr_device_info& device, const Registry& registry);

}  // namespace tessera
