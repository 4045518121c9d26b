// add, mul, silu_mul, glu, add_id, scale, scale_by_position, sigmoid_mul and hadamard.
#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "../launches.hpp"
#include "rowwise.hpp"

#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cpu/hadamard.hpp>
#include <tessera/cuda/launch.hpp>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>

namespace tessera::cuda_ops {
namespace {

using cuda_kernels::kRowElements;

// Refuses in `plan` a node whose counts kernels do not take; returns whether it did.
bool refuse_counts(const tsr_node& node, tsr_kernel_plan& plan) noexcept {
    const tsr_tensor& a = *node.inputs[0];
    if (a.rank == 1 && a.range != TSR_RANGE_FIXED) {
        sdk::refuse(plan, "%s: required a bounded row length; supported: bounded rows; missing: that", node.op);
        return true;
    }
    if (a.dims[0] > std::numeric_limits<int32_t>::max() / 2 || inner_rows(a) > int64_t{kMaximumGrid}) {
        sdk::refuse(plan, "%s: required %lld elements, %lld inner rows; supported: fewer than 2^30, %u", node.op,
                    static_cast<long long>(a.dims[0]), static_cast<long long>(inner_rows(a)), kMaximumGrid);
        return true;
    }
    return false;
}

template <void (*kCheck)(const tsr_node&, tsr_kernel_plan&, cpu::Work&) noexcept>
class Pointwise {
  public:
    static const cuda::Module& module(const Build& build) noexcept { return *build.rowwise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        kCheck(node, plan, work);
        if (!plan.supported) return;
        if (refuse_counts(node, plan)) return;
        std::snprintf(plan.reason, sizeof plan.reason, "a thread an element");
        write_estimate(work, {}, device, plan);
    }

    Pointwise(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, node.op) {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor& a = *node_.inputs[0];
        const cuda_kernels::Pointwise p = pairs(launch);
        const auto blocks = static_cast<uint32_t>((p.n + kRowElements - 1) / kRowElements);
        const cuda::Grid grid{blocks, std::min(bound_of_rank(a, launch), kMaximumGrid),
                              static_cast<uint32_t>(inner_rows(a))};
        if (std::string_view(node_.op) == TSR_OP_GLU) {
            const cpu::Glu of(node_);
            kernel_.launch(launch.queue, grid, cuda_kernels::kRowThreads,
                           cuda_kernels::Glu{p, static_cast<int32_t>(of.activation), of.limit, of.alpha, 0});
        } else {
            kernel_.launch(launch.queue, grid, cuda_kernels::kRowThreads, p);
        }
    }

  private:
    cuda_kernels::Pointwise pairs(const tsr_launch& launch) const noexcept {
        const tsr_tensor &a = *node_.inputs[0], &b = *node_.inputs[1];
        cuda_kernels::Pointwise p{};
        p.a = operand_address(node_, launch, 0);
        p.b = operand_address(node_, launch, 1);
        p.y = operand_address(node_, launch, 2);
        p.rows = rows_of_rank(a, launch);
        set_strides(a, p.a_strides);
        // A second operand of rank 1 beside a first of another rank is one row for all.
        if (b.rank == a.rank) set_strides(b, p.b_strides);
        set_strides(*node_.outputs[0], p.y_strides);
        set_inner(a, p.inner);
        p.n = static_cast<int32_t>(a.dims[0]);
        return p;
    }

    const tsr_node& node_;
    cuda::Kernel kernel_;
};

struct Add : Pointwise<cpu::check_add> {
    using Pointwise::Pointwise;
    static constexpr const char *kName = "add.cuda", *kOp = TSR_OP_ADD;
};
struct Mul : Pointwise<cpu::check_mul> {
    using Pointwise::Pointwise;
    static constexpr const char *kName = "mul.cuda", *kOp = TSR_OP_MUL;
};
struct SiluMul : Pointwise<cpu::check_silu_mul> {
    using Pointwise::Pointwise;
    static constexpr const char *kName = "silu_mul.cuda", *kOp = TSR_OP_SILU_MUL;
};

struct Glu : Pointwise<cpu::check_glu_op> {
    using Pointwise::Pointwise;
    static constexpr const char *kName = "glu.cuda", *kOp = TSR_OP_GLU;
};

// x [n, H, R], of whose rows the gate [H, R] has a number each.
class SigmoidMul {
  public:
    static constexpr const char *kName = "sigmoid_mul.cuda", *kOp = TSR_OP_SIGMOID_MUL;
    static const cuda::Module& module(const Build& build) noexcept { return *build.rowwise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_sigmoid_mul(node, plan, work);
        if (!plan.supported || refuse_counts(node, plan)) return;
        std::snprintf(plan.reason, sizeof plan.reason, "a thread an element");
        write_estimate(work, {}, device, plan);
    }

    SigmoidMul(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, "sigmoid_mul") {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &x = *node_.inputs[0], &gate = *node_.inputs[1];
        cuda_kernels::Pointwise p{};
        p.a = operand_address(node_, launch, 0);
        p.b = operand_address(node_, launch, 1);
        p.y = operand_address(node_, launch, 2);
        p.rows = rows_of(x, launch);
        set_strides(x, p.a_strides);
        p.b_strides[0] = gate.strides[0], p.b_strides[2] = gate.strides[1];
        set_strides(*node_.outputs[0], p.y_strides);
        p.n = static_cast<int32_t>(x.dims[0]);
        const auto blocks = static_cast<uint32_t>((p.n + kRowElements - 1) / kRowElements);
        kernel_.launch(launch.queue,
                       {blocks, std::min(row_bound(x, launch), kMaximumGrid), static_cast<uint32_t>(x.dims[1])},
                       cuda_kernels::kRowThreads, p);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
};

class AddId {
  public:
    static constexpr const char *kName = "add_id.cuda", *kOp = TSR_OP_ADD_ID;
    static const cuda::Module& module(const Build& build) noexcept { return *build.rowwise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_add_id(node, plan, work);
        if (!plan.supported || refuse_counts(node, plan)) return;
        if (node.inputs[1]->dims[1] > std::numeric_limits<int32_t>::max()) {
            return sdk::refuse(plan, "add_id: required %lld experts; supported: fewer than 2^31",
                               static_cast<long long>(node.inputs[1]->dims[1]));
        }
        std::snprintf(plan.reason, sizeof plan.reason, "a thread an element");
        write_estimate(work, {}, device, plan);
    }

    AddId(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, "add_id") {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &x = *node_.inputs[0], &bias = *node_.inputs[1], &ids = *node_.inputs[2],
                         &y = *node_.outputs[0];
        cuda_kernels::AddId p{};
        p.x = operand_address(node_, launch, 0);
        p.bias = operand_address(node_, launch, 1);
        p.ids = operand_address(node_, launch, 2);
        p.y = operand_address(node_, launch, 3);
        p.rows = rows_of(x, launch);
        p.x_slot = x.strides[1], p.x_row = x.strides[2];
        p.y_slot = y.strides[1], p.y_row = y.strides[2];
        p.ids_slot = ids.strides[0], p.ids_row = ids.strides[1];
        p.bias_row = bias.strides[1];
        p.n = static_cast<int32_t>(x.dims[0]);
        p.slots = static_cast<int32_t>(x.dims[1]);
        p.experts = static_cast<int32_t>(bias.dims[1]);
        const auto blocks = static_cast<uint32_t>((p.n + kRowElements - 1) / kRowElements);
        kernel_.launch(launch.queue,
                       {blocks, std::min(row_bound(x, launch), kMaximumGrid), static_cast<uint32_t>(p.slots)},
                       cuda_kernels::kRowThreads, p);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
};

// Both have the same kernel on the card.
template <bool kByPosition>
class Scaling {
  public:
    static constexpr const char *kName = kByPosition ? "scale_by_position.cuda" : "scale.cuda",
                                *kOp = kByPosition ? TSR_OP_SCALE_BY_POSITION : TSR_OP_SCALE;
    static const cuda::Module& module(const Build& build) noexcept { return *build.rowwise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        (kByPosition ? cpu::check_scale_by_position : cpu::check_scale)(node, plan, work);
        if (!plan.supported || refuse_counts(node, plan)) return;
        std::snprintf(plan.reason, sizeof plan.reason, "a thread an element");
        write_estimate(work, {}, device, plan);
    }

    Scaling(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, "scale_by_position") {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor& x = *node_.inputs[0];
        cuda_kernels::ScaleByPosition p{};
        p.x = operand_address(node_, launch, 0);
        p.y = operand_address(node_, launch, kByPosition ? 2 : 1);
        p.rows = rows_of(x, launch);
        set_strides(x, p.x_strides);
        set_strides(*node_.outputs[0], p.y_strides);
        set_inner(x, p.inner);
        if constexpr (kByPosition) {
            p.positions = operand_address(node_, launch, 1);
            p.position = node_.inputs[1]->strides[0];
            p.length = sdk::int_attribute(node_, "length", 1);
            p.offset = sdk::int_attribute(node_, "offset", 0);
        }
        p.scale = sdk::float_attribute(node_, kByPosition ? "scale" : "factor", 0);
        p.n = static_cast<int32_t>(x.dims[0]);
        const auto blocks = static_cast<uint32_t>((p.n + kRowElements - 1) / kRowElements);
        kernel_.launch(launch.queue,
                       {blocks, std::min(row_bound(x, launch), kMaximumGrid), static_cast<uint32_t>(inner_rows(x))},
                       cuda_kernels::kRowThreads, p);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
};

class HadamardRows {
  public:
    static constexpr const char *kName = "hadamard.cuda", *kOp = TSR_OP_HADAMARD;
    static const cuda::Module& module(const Build& build) noexcept { return *build.rowwise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_hadamard(node, plan, work);
        if (!plan.supported || refuse_counts(node, plan)) return;
        const int64_t block = cpu::hadamard_block(node.inputs[0]->dims[0]);
        if (block > cuda_kernels::kHadamardElements) {
            return sdk::refuse(plan, "hadamard: required a matrix of %lld; supported: up to %d, in shared memory",
                               static_cast<long long>(block), cuda_kernels::kHadamardElements);
        }
        std::snprintf(plan.reason, sizeof plan.reason, "in shared memory, matrices of %lld",
                      static_cast<long long>(block));
        write_estimate(work, {}, device, plan);
    }

    HadamardRows(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, "hadamard") {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &x = *node_.inputs[0], &y = *node_.outputs[0];
        cuda_kernels::Hadamard h{};
        h.x = operand_address(node_, launch, 0);
        h.y = operand_address(node_, launch, 1);
        h.rows = rows_of_rank(x, launch);
        set_strides(x, h.x_strides);
        set_strides(y, h.y_strides);
        set_inner(x, h.inner);
        h.n = static_cast<int32_t>(x.dims[0]);
        h.block = static_cast<int32_t>(cpu::hadamard_block(h.n));
        h.part = std::max(h.block, kRowElements / h.block * h.block);
        h.scale = 1.f / std::sqrt(static_cast<float>(h.block));
        kernel_.launch(launch.queue,
                       {static_cast<uint32_t>((h.n + h.part - 1) / h.part),
                        std::min(bound_of_rank(x, launch), kMaximumGrid), static_cast<uint32_t>(inner_rows(x))},
                       cuda_kernels::kRowThreads, h);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
};

}  // namespace

void set_hadamard(tsr_kernel& kernel) noexcept {
    set_kernel<HadamardRows>(kernel);
}
void set_scale(tsr_kernel& kernel) noexcept {
    set_kernel<Scaling<false>>(kernel);
}
void set_scale_by_position(tsr_kernel& kernel) noexcept {
    set_kernel<Scaling<true>>(kernel);
}
void set_sigmoid_mul(tsr_kernel& kernel) noexcept {
    set_kernel<SigmoidMul>(kernel);
}
void set_add(tsr_kernel& kernel) noexcept {
    set_kernel<Add>(kernel);
}
void set_mul(tsr_kernel& kernel) noexcept {
    set_kernel<Mul>(kernel);
}
void set_silu_mul(tsr_kernel& kernel) noexcept {
    set_kernel<SiluMul>(kernel);
}
void set_glu(tsr_kernel& kernel) noexcept {
    set_kernel<Glu>(kernel);
}
void set_add_id(tsr_kernel& kernel) noexcept {
    set_kernel<AddId>(kernel);
}

}  // namespace tessera::cuda_ops
