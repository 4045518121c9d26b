#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "pages.hpp"

#include <tessera/cpu/checks/storage.hpp>
#include <tessera/cuda/launch.hpp>

#include <cstdio>

namespace tessera::cuda_ops {
namespace {

// Rows of types that have a scale for all of a row; their sums are exact for so many elements.
constexpr bool encodes_rows(tsr_type type) noexcept {
    return formats::can_encode_rows(type) && !formats::can_encode(type);
}
constexpr int64_t kMaximumOfRow = 1 << 17;

constexpr bool is_float(tsr_type type) noexcept {
    return type == TSR_TYPE_F32 || type == TSR_TYPE_F16 || type == TSR_TYPE_BF16;
}

// The kernel that writes rows of a type.
constexpr const char* kernel_of(tsr_type type) noexcept {
    return encodes_rows(type) ? "cache_write_rows" : is_float(type) ? "cache_write_floats" : "cache_write";
}

// Kernels know the types that Check::cache lets through.
constexpr bool is_cached_type(tsr_type type) {
#define TSR_IS(id) || type == TSR_TYPE_##id
    return false TESSERA_CACHED_TYPES(TSR_IS);
#undef TSR_IS
}
#define TSR_AGREES(id, number, name, ...)                                                                        \
    static_assert(is_cached_type(TSR_TYPE_##id) == formats::can_encode_rows(TSR_TYPE_##id), "a cache of " name); \
    static_assert(encodes_rows(TSR_TYPE_##id) == (TSR_TYPE_##id == TSR_TYPE_Q8_KV),                              \
                  "a kernel that writes rows of " name);
TSR_TYPES(TSR_AGREES)
#undef TSR_AGREES

class CacheWrite {
  public:
    static constexpr const char *kName = "cache_write.cuda", *kOp = TSR_OP_CACHE_WRITE;
    static const cuda::Module& module(const Build& build) noexcept { return *build.cache_write; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_cache_write(node, plan, work);
        if (!plan.supported) return;
        if (!pages_fit(*node.inputs[3], *node.outputs[0]) || node.inputs[0]->dims[0] > INT32_MAX / 2)
            return sdk::refuse(plan, "cache_write: required more than 2^31 tokens; supported: fewer; missing: that");
        if (encodes_rows(node.outputs[0]->type) && node.inputs[0]->dims[0] > kMaximumOfRow)
            return sdk::refuse(plan,
                               "cache_write: required rows of %lld elements; supported: at most %lld in %s; missing: "
                               "longer ones",
                               static_cast<long long>(node.inputs[0]->dims[0]), static_cast<long long>(kMaximumOfRow),
                               cpu::format_name(node.outputs[0]->type));
        std::snprintf(plan.reason, sizeof plan.reason,
                      encodes_rows(node.outputs[0]->type) ? "a warp each row"
                      : is_float(node.outputs[0]->type)   ? "a thread each %d elements"
                                                          : "a thread each %d elements of a block",
                      is_float(node.outputs[0]->type) ? cuda_kernels::kFloatsOfThread : 32);
        write_estimate(work, {}, device, plan);
    }

    CacheWrite(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, kernel_of(node.outputs[0]->type)) {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &x = *node_.inputs[0], &cache = *node_.outputs[0];
        cuda_kernels::CacheWrite p{};
        p.x = operand_address(node_, launch, 0);
        p.positions = operand_address(node_, launch, 1);
        p.sequences = operand_address(node_, launch, 2);
        p.cache = operand_address(node_, launch, 4);
        p.pages = pages_of(node_, launch, 3, cache);
        p.rows = rows_of(x, launch);
        p.x_row = x.strides[1];
        p.position = node_.inputs[1]->strides[0];
        p.sequence = node_.inputs[2]->strides[0];
        p.token = cache.strides[1];
        p.page = cache.strides[2];
        p.n = static_cast<int32_t>(x.dims[0]);
        p.type = static_cast<int32_t>(cache.type);
        const uint32_t rows = row_bound(x, launch);
        if (encodes_rows(cache.type)) {
            constexpr uint32_t kWarps = cuda_kernels::kCacheWriteThreads / 32;
            const uint32_t blocks = std::min((rows + kWarps - 1) / kWarps, kMaximumGrid);
            return kernel_.launch(launch.queue, {blocks, 1, 1}, cuda_kernels::kCacheWriteThreads, p);
        }
        const int elements =
            cuda_kernels::kCacheWriteThreads * (is_float(cache.type) ? cuda_kernels::kFloatsOfThread : 32);
        kernel_.launch(launch.queue,
                       {static_cast<uint32_t>((p.n + elements - 1) / elements), std::min(rows, kMaximumGrid), 1},
                       cuda_kernels::kCacheWriteThreads, p);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
};

}  // namespace

void set_cache_write(tsr_kernel& kernel) noexcept {
    set_kernel<CacheWrite>(kernel);
}

}  // namespace tessera::cuda_ops
