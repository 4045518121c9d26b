// get_rows, convert and transpose, of weights of any type.
#include "decode.hpp"

#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "../launches.hpp"

#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cpu/checks/storage.hpp>
#include <tessera/cuda/launch.hpp>

#include <cstdio>

namespace tessera::cuda_ops {
namespace {

uint32_t groups_of(int64_t elements, int64_t of) noexcept {
    return static_cast<uint32_t>((elements + of - 1) / of);
}

class GetRows {
  public:
    static constexpr const char *kName = "get_rows.cuda", *kOp = TSR_OP_GET_ROWS;
    static const cuda::Module& module(const Build& build) noexcept { return *build.decode; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_get_rows(node, plan, work);
        if (!plan.supported) return;
        plan.supported = 0;
        const tsr_tensor& table = *node.inputs[0];
        if (table.dims[0] > INT32_MAX / 2 || table.dims[1] > INT32_MAX)
            return sdk::refuse(plan, "get_rows: required a table of %lld x %lld; supported: below 2^31",
                               static_cast<long long>(table.dims[0]), static_cast<long long>(table.dims[1]));
        plan.supported = 1;
        std::snprintf(plan.reason, sizeof plan.reason, "a thread each %d elements", cuda_kernels::kGetRowsElements);
        write_estimate(work, {}, device, plan);
    }

    GetRows(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, "get_rows") {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &table = *node_.inputs[0], &ids = *node_.inputs[1];
        cuda_kernels::GetRows g{};
        g.table = operand_address(node_, launch, 0);
        g.ids = operand_address(node_, launch, 1);
        g.y = operand_address(node_, launch, 2);
        g.rows = rows_of(ids, launch);
        g.table_row = table.strides[1];
        g.id = ids.strides[0];
        g.y_row = node_.outputs[0]->strides[1];
        g.n = static_cast<int32_t>(table.dims[0]);
        g.count = static_cast<int32_t>(table.dims[1]);
        g.type = static_cast<int32_t>(table.type);
        kernel_.launch(launch.queue,
                       {groups_of(g.n, cuda_kernels::kGetRowsThreads * cuda_kernels::kGetRowsElements),
                        std::min(row_bound(ids, launch), kMaximumGrid), 1},
                       cuda_kernels::kGetRowsThreads, g);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
};

template <bool kTransposed>
class Convert {
  public:
    static constexpr const char* kName = kTransposed ? "transpose.cuda" : "convert.cuda";
    static constexpr const char* kOp = kTransposed ? TSR_OP_TRANSPOSE : TSR_OP_CONVERT;
    static const cuda::Module& module(const Build& build) noexcept { return *build.decode; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_convert(node, plan, work);
        if (!plan.supported) return;
        plan.supported = 0;
        const tsr_tensor& from = *node.inputs[0];
        constexpr int64_t kMaximum = INT32_MAX / 2;
        for (uint32_t i = 0; i < from.rank; ++i) {
            if (from.dims[i] <= kMaximum) continue;
            return sdk::refuse(plan, "%s: required a dimension of %lld; supported: up to %lld; missing: larger", kOp,
                               static_cast<long long>(from.dims[i]), static_cast<long long>(kMaximum));
        }
        if (from.range != TSR_RANGE_FIXED)
            return sdk::refuse(plan, "%s: required bounded weights; supported: fixed ones; missing: that", kOp);
        plan.supported = 1;
        std::snprintf(plan.reason, sizeof plan.reason, "a thread each %d elements", cuda_kernels::kConvertElements);
        write_estimate(work, {}, device, plan);
    }

    Convert(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, "convert") {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &from = *node_.inputs[0], &to = *node_.outputs[0];
        cuda_kernels::Convert c{};
        c.from = operand_address(node_, launch, 0);
        c.to = operand_address(node_, launch, 1);
        const auto set = [](const tsr_tensor& t, int64_t& row, int64_t& batch, int64_t& outer) {
            row = t.rank > 1 ? t.strides[1] : 0;
            batch = t.rank > 2 ? t.strides[2] : 0;
            outer = t.rank > 3 ? t.strides[3] : 0;
        };
        set(from, c.from_row, c.from_batch, c.from_outer);
        set(to, c.to_row, c.to_batch, c.to_outer);
        const auto extent = [&](uint32_t i) { return from.rank > i ? static_cast<int32_t>(from.dims[i]) : 1; };
        c.k = extent(0), c.n = extent(1), c.batch = extent(2), c.outer = extent(3);
        c.from_type = static_cast<int32_t>(from.type);
        c.type = static_cast<int32_t>(to.type);
        c.transposed = kTransposed ? 1 : 0;
        const int32_t elements = kTransposed ? c.n : c.k, rows = kTransposed ? c.k : c.n;
        const int64_t matrices = int64_t{c.batch} * c.outer;
        kernel_.launch(launch.queue,
                       {groups_of(elements, cuda_kernels::kConvertThreads * cuda_kernels::kConvertElements),
                        std::min(static_cast<uint32_t>(rows), kMaximumGrid),
                        static_cast<uint32_t>(std::min(matrices, int64_t{kMaximumGrid}))},
                       cuda_kernels::kConvertThreads, c);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
};

}  // namespace

void set_get_rows(tsr_kernel& kernel) noexcept {
    set_kernel<GetRows>(kernel);
}
void set_convert(tsr_kernel& kernel) noexcept {
    set_kernel<Convert<false>>(kernel);
}
void set_transpose(tsr_kernel& kernel) noexcept {
    set_kernel<Convert<true>>(kernel);
}

}  // namespace tessera::cuda_ops
