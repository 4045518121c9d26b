// The functions of a tsr_kernel from a class that describes one op:
//
//   static constexpr const char *kName, *kOp;                 as in tsr_kernel
//   static const cuda::Module& module(const Build&);          that holds its functions
//   static void plan(const tsr_node&, const tsr_device_info&, tsr_kernel_plan&);   for a card that the plugin owns; it
//       may take the module, or the build, as its third argument
//   Class(const tsr_node&, const tsr_device_info&, tsr_device&, const cuda::Module&);   prepare; or with the build
//   void enqueue(const tsr_launch&) const;
//
// All may throw sdk::Failure.
#pragma once

#include "matmul/row_places.hpp"
#include "ops.hpp"

#include <tessera/cpp/status.hpp>

namespace tessera::cuda_ops {

template <class Op>
void set_kernel(tsr_kernel& kernel) noexcept {
    kernel.name = Op::kName;
    kernel.op = Op::kOp;
    kernel.plan = [](const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                     tsr_kernel_plan* plan) -> const tsr_status* {
        return sdk::guarded([&] {
            const Build& build = build_of(self);
            const cuda::Module& module = Op::module(build);
            if (refuse_card(build, module, *device, node->op, *plan) || refuse_places(*node, *plan)) return;
            if constexpr (requires { Op::plan(*node, *device, module, *plan); }) {
                Op::plan(*node, *device, module, *plan);
            } else if constexpr (requires { Op::plan(*node, *device, build, *plan); }) {
                Op::plan(*node, *device, build, *plan);
            } else {
                Op::plan(*node, *device, *plan);
            }
        });
    };
    kernel.prepare = [](const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info, tsr_device* device,
                        void** state) -> const tsr_status* {
        return sdk::guarded([&] {
            const Build& build = build_of(self);
            if constexpr (requires { Op(*node, *info, *device, build); }) {
                *state = new Op(*node, *info, *device, build);
            } else {
                *state = new Op(*node, *info, *device, Op::module(build));
            }
        });
    };
    kernel.release = [](const tsr_kernel*, void* state) { delete static_cast<Op*>(state); };
    kernel.enqueue = [](const tsr_kernel*, void* state, const tsr_launch* launch) -> const tsr_status* {
        return sdk::guarded([&] { static_cast<const Op*>(state)->enqueue(*launch); });
    };
}

}  // namespace tessera::cuda_ops
