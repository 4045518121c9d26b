// The projected variant of attention: keys and values of a window of pages are computed into workspace, and rows attend
// to them, window after window, with a maximum and a sum that run on. Windows go over the pages of all sequences of the
// step one after the other, so that launches follow what the step has.
#pragma once

#include "flash.hpp"
#include "project.hpp"

#include <tessera/cpu/checks/attention.hpp>
#include <tessera/cuda/launch.hpp>

#include <optional>

namespace tessera::cuda_ops {

// How a node's workspace is divided.
struct ProjectedSizes {
    int64_t tokens = 0;  // of a window; 0: scratch_bytes leaves no room for one
    uint64_t weights_bytes = 0, running_bytes = 0, ends_bytes = 0, starts_bytes = 0, keys_bytes = 0, values_bytes = 0;
    uint64_t minimum_bytes = 0;  // with the smallest window

    uint64_t bytes() const noexcept {
        return weights_bytes + running_bytes + ends_bytes + starts_bytes + keys_bytes + values_bytes;
    }
};
// half: keys and values are f16, else f32.
ProjectedSizes projected_sizes(const tsr_node& node, bool half) noexcept;

class ProjectedAttention {
  public:
    // The node has passed check_attention.
    static void plan(const tsr_node& node, const tsr_device_info& device, const Build& build, tsr_kernel_plan& plan);

    ProjectedAttention(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build);
    void enqueue(const tsr_launch& launch) const;

  private:
    const tsr_node& node_;
    cpu::AttentionShape shape_;
    FlashKernels kernels_;
    ProjectedSizes sizes_;
    cuda::Kernel weights_, ends_, project_;
    std::optional<cuda::Kernel> attention_, small_, large_;
};

}  // namespace tessera::cuda_ops
