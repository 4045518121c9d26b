// flash_attention and tiled_attention; of the plain and the prefix variant: by tiles of rows where the plugin has a
// kernel for the heads' size, on tensor cores or in f32, else row by row in f32. All keep a running softmax, so each
// serves either op; but heads that share a latent row of 576/512 are flash attention on tensor cores alone.
#include "../estimate.hpp"
#include "../formats/block_formats.hpp"
#include "../kernel_of.hpp"
#include "attention_arguments.hpp"
#include "attention_projected.hpp"
#include "flash.hpp"
#include "flash_tiles.hpp"
#include "splits.hpp"

#include <tessera/cuda/launch.hpp>

#include <cstdio>
#include <optional>
#include <string>

namespace tessera::cuda_ops {
namespace {

using cpu::AttentionShape;
using cpu::AttentionVariant;
using cuda_kernels::kAttentionHeads;

constexpr int64_t kSharedLimit = 48 << 10;  // of a block on every card, for the kernel of one row
constexpr int64_t kBlocksOfProcessor = 2;   // of that kernel

bool is_flash(const tsr_node& node) noexcept {
    return std::string_view(node.op) == TSR_OP_FLASH_ATTENTION;
}

tsr_type value_type(const tsr_node& node) noexcept {
    return node.inputs[sdk::has_input(node, cpu::kV) ? cpu::kV : cpu::kK]->type;
}

FlashKernels chosen_kernels(const tsr_node& node, const Build& build, const tsr_device_info& device) noexcept {
    const tsr_tensor& k = *node.inputs[cpu::kK];
    const auto aligned = [](const tsr_tensor& cache) {
        return multiple(static_cast<uint64_t>(cache.strides[1] | cache.strides[2]) | cache.offset, 16);
    };
    const bool direct =
        value_type(node) == k.type && aligned(k) && (!sdk::has_input(node, cpu::kV) || aligned(*node.inputs[cpu::kV]));
    const FlashKernels kernels =
        flash_kernels(AttentionShape(node), flash_suffix(build, k.type, value_type(node), direct), build, device);
    const auto cached = [&](uint32_t index) {
        if (!sdk::has_input(node, index)) return true;
        const tsr_tensor& t = *node.inputs[index];
        const bool floats = t.type == TSR_TYPE_F32 || t.type == TSR_TYPE_F16 || t.type == TSR_TYPE_BF16;
        return !floats || rows_aligned(t);
    };
    const bool fits = ends_aligned(node) && cached(cpu::kK) && cached(cpu::kV);
    return kernels.tensor_cores || fits ? kernels : FlashKernels{};
}

// Launches of up to this many rows use the kernel for few rows: rows of generation are of sequences of their own.
int64_t rows_of_small(const tsr_node& node, const FlashKernels& kernels) noexcept {
    if (!kernels.large.name) return INT32_MAX;
    if (group_of(AttentionShape(node)) > 32) return 0;
    return node.inputs[cpu::kQ]->range == TSR_RANGE_GENERATION_ROWS ? INT32_MAX : Splits::kFewRows;
}

int64_t tiles_of(const AttentionShape& shape, int64_t rows_of_tile) noexcept {
    return shape.kv_heads * ((group_of(shape) + rows_of_tile - 1) / rows_of_tile);
}

// The most tokens that a row's spans have.
int64_t most_seen(const tsr_node& node, int64_t tokens) noexcept {
    const int64_t window = AttentionShape(node).window;
    return window == 0 ? tokens : std::min(tokens, window + cuda_kernels::kPageTokens);
}

Splits splits_of(const tsr_node& node, const tsr_device_info& device, const FlashKernels& kernels) noexcept {
    const AttentionShape shape(node);
    const FlashKernel& few = rows_of_small(node, kernels) > 0 ? kernels.small : kernels.large;
    const int64_t processors = device.processors > 0 ? device.processors : 30;
    return {tiles_of(shape, few.name ? few.rows : kAttentionHeads),
            processors * (few.name ? few.blocks : kBlocksOfProcessor),
            most_seen(node, sdk::int_attribute(node, "max_tokens", INT32_MAX)),
            shape.rows,
            static_cast<uint64_t>(shape.heads * (shape.dv + 2)) * sizeof(float),
            cpu::scratch_cap(node)};
}

void estimate(const tsr_node& node, const tsr_device_info& device, const FlashKernels& kernels,
              tsr_kernel_plan& plan) noexcept {
    const AttentionShape shape(node);
    const tsr_tensor &q = *node.inputs[cpu::kQ], &k = *node.inputs[cpu::kK];
    const auto bytes_of_token = [](const tsr_tensor& cache) {
        return cpu::tensor_bytes(cache) / static_cast<double>(cache.dims[2]) / TSR_PAGE_TOKENS;
    };
    const double rows = cpu::row_count(q);
    const int64_t most = std::max<int64_t>(
        1, sdk::int_attribute(node, "max_tokens", node.inputs[cpu::kPageTable]->dims[0] * TSR_PAGE_TOKENS));
    const double full = static_cast<double>(most_seen(node, most));
    const double macs = static_cast<double>(shape.heads) * static_cast<double>(shape.dk + shape.dv);
    // Each tile of heads reads its rows of the cache for itself; all but the first find them in the second cache.
    const double token =
        bytes_of_token(k) + (sdk::has_input(node, cpu::kV) ? bytes_of_token(*node.inputs[cpu::kV]) : 0);
    const double ends = 2 * cpu::tensor_bytes(q) / rows;
    cpu::Work work;
    work.macs_one_row = macs;
    work.macs_all_rows = macs * rows * std::min(full, (rows + 1) / 2);
    work.macs_one_row_full = macs * full;
    work.macs_all_rows_full = macs * rows * full;
    work.bytes_one_row = token + ends;
    work.bytes_all_rows = token * rows + ends * rows;
    work.bytes_one_row_full = token * full + ends;
    work.bytes_all_rows_full = token * full + ends * rows;
    Cost cost;
    cost.launches = 2;
    set_attention_rates(device, kernels, shape.dk > 256, cost);
    const Splits splits = splits_of(node, device, kernels);
    const auto partial = [&](double of_rows) {
        const auto spans = static_cast<double>(splits.of(static_cast<int64_t>(of_rows)));
        return spans > 1 ? of_rows * spans * static_cast<double>(shape.heads * (shape.dv + 2)) * sizeof(float) : 0;
    };
    cost.partial_bytes_one_row_full = partial(1);
    cost.partial_bytes_all_rows_full = partial(rows);
    write_estimate(work, cost, device, plan);
}

class CachedAttention {
  public:
    static void plan(const tsr_node& node, const tsr_device_info& device, const Build& build, tsr_kernel_plan& plan) {
        const AttentionShape shape(node);
        const FlashKernels kernels = chosen_kernels(node, build, device);
        if (!kernels.tensor_cores && refuse_in_f32(node, build, plan)) return;
        plan.workspace_bytes = splits_of(node, device, kernels).workspace_bytes();
        plan.supported = 1;
        if (kernels.tensor_cores) {
            const bool decoded = std::string_view(kernels.suffix) == kFlashDecoded;
            std::snprintf(plan.reason, sizeof plan.reason,
                          "tensor cores, cache %s, tiles of %d and %d rows by %d and %d tokens, sums in f32",
                          decoded ? "decoded to f16" : kernels.suffix + 1, kernels.small.rows, kernels.large.rows,
                          kernels.small.tokens, kernels.large.tokens);
        } else if (kernels.small.name) {
            std::snprintf(plan.reason, sizeof plan.reason, "in f32, tiles of %d and %d rows by %d tokens",
                          kernels.small.rows, kernels.large.rows, kernels.large.tokens);
        } else if (kernels.large.name) {
            std::snprintf(plan.reason, sizeof plan.reason,
                          "in f32, tiles of %d rows by %d tokens; few rows by up to %d heads a block",
                          kernels.large.rows, kernels.large.tokens, kAttentionHeads);
        } else {
            std::snprintf(plan.reason, sizeof plan.reason, "in f32, up to %d heads of one row a block",
                          kAttentionHeads);
        }
        estimate(node, device, kernels, plan);
    }

    CachedAttention(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build)
        : node_(node),
          shape_(node),
          kernels_(chosen_kernels(node, build, info)),
          splits_(splits_of(node, info, kernels_)),
          info_(info),
          combine_(device, *build.attention, "combine") {
        const auto make = [&](std::optional<cuda::Kernel>& made, const FlashKernel& kernel) {
            made.emplace(device, *kernel.module, (std::string(kernel.name) + kernels_.suffix).c_str(),
                         kernel.shared_bytes);
        };
        const int64_t few = rows_of_small(node, kernels_);
        if (kernels_.small.name) {
            if (few > 0) make(small_, kernels_.small);
        } else if (few > 0) {
            attention_.emplace(device, *build.attention, "attention");
        }
        if (few < shape_.rows) make(large_, kernels_.large);
    }

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor& q = *node_.inputs[cpu::kQ];
        cuda_kernels::Attention p = attention_arguments(node_, shape_, launch);
        const uint32_t rows = row_bound(q, launch);
        const uint32_t grid_rows = std::min(rows, kMaximumGrid);
        const int64_t splits = splits_.of(rows);
        p.splits = static_cast<int32_t>(splits);
        // No more spans than the tokens of this step can have; which they are does not depend on it.
        const auto grid_splits = static_cast<uint32_t>(std::min(splits, spans_at_most(launch.token_bound, splits)));
        const auto dv = static_cast<int>(shape_.dv), dk = static_cast<int>(shape_.dk);
        const bool few = rows <= rows_of_small(node_, kernels_);
        if (few && !kernels_.small.name) {
            attention_->launch(launch.queue,
                               {static_cast<uint32_t>(tiles_of(shape_, kAttentionHeads)), grid_rows, grid_splits},
                               cuda_kernels::kAttentionThreads, p,
                               static_cast<uint32_t>(cuda_kernels::attention_shared_bytes(dk, dv)));
        } else {
            const FlashKernel& kernel = few ? kernels_.small : kernels_.large;
            if (kernels_.tensor_cores) p.sink_exponent = cuda_kernels::kFlashWeightExponent;
            const auto tiles = static_cast<uint32_t>((int64_t{rows} * p.group + kernel.rows - 1) / kernel.rows);
            (few ? small_ : large_)
                ->launch(launch.queue, {tiles, static_cast<uint32_t>(shape_.kv_heads), grid_splits},
                         static_cast<uint32_t>(kernel.threads), p, kernel.shared_bytes);
        }
        if (grid_splits > 1)
            combine_.launch(launch.queue,
                            {static_cast<uint32_t>(p.heads), grid_rows,
                             combine_parts(shape_.heads * grid_rows, shape_.dv, info_.processors)},
                            cuda_kernels::kAttentionThreads, p);
    }

  private:
    // What kernels in f32 do not do.
    static bool refuse_in_f32(const tsr_node& node, const Build& build, tsr_kernel_plan& plan) {
        const AttentionShape shape(node);
        const auto dk = static_cast<long long>(shape.dk), dv = static_cast<long long>(shape.dv);
        if (is_flash(node) && shape.variant == AttentionVariant::kPrefix && shape.dv > 256) {
            sdk::refuse(plan,
                        "%s: required heads of %lld/%lld over one latent row; supported: %s; missing: %s; use "
                        "tiled_attention",
                        node.op, dk, dv, build.flash_mla ? "576/512" : "192/128 128/128 64/64, not 576/512",
                        build.flash_mla ? "that size" : "tensor cores with asynchronous copies, from 8.0 on");
            return true;
        }
        // A head's keys begin with a block.
        const auto blocks = [](tsr_type type) { return cuda_kernels::block_elements(type); };
        const bool whole = shape.kv_heads == 1 || (shape.dk % blocks(node.inputs[cpu::kK]->type) == 0 &&
                                                   shape.dv % blocks(value_type(node)) == 0);
        if (whole && shape.dv <= cuda_kernels::kMaximumValues && shape.dk <= 4096 &&
            cuda_kernels::attention_shared_bytes(static_cast<int>(shape.dk), static_cast<int>(shape.dv)) <=
                kSharedLimit)
            return false;
        sdk::refuse(
            plan,
            "%s: required heads of %lld/%lld; supported: up to 576/512, where there are several of whole blocks of "
            "the cache; missing: that size",
            node.op, dk, dv);
        return true;
    }

    static int64_t spans_at_most(int64_t token_bound, int64_t splits) noexcept {
        if (token_bound <= 0) return splits;
        return (token_bound + cuda_kernels::kPageTokens - 1) / cuda_kernels::kPageTokens;
    }

    const tsr_node& node_;
    AttentionShape shape_;
    FlashKernels kernels_;
    Splits splits_;
    const tsr_device_info& info_;
    cuda::Kernel combine_;
    std::optional<cuda::Kernel> attention_, small_, large_;
};

class Attention {
  public:
    static const cuda::Module& module(const Build& build) noexcept { return *build.attention; }

    static void plan(const tsr_node& node, const tsr_device_info& device, const Build& build, tsr_kernel_plan& plan) {
        cpu::Check check(node, plan);
        if (!cpu::check_attention(check, node)) return;
        const AttentionShape shape(node);
        if (!pages_fit(*node.inputs[cpu::kPageTable], *node.inputs[cpu::kK]) || shape.heads > INT32_MAX / 4096 ||
            shape.rows > INT32_MAX / shape.heads)
            return sdk::refuse(plan, "%s: required more than 2^31 tokens; supported: fewer; missing: that", node.op);
        if (shape.variant == AttentionVariant::kProjected && (shape.window > 0 || sdk::has_input(node, cpu::kSinks)))
            return sdk::refuse(plan, "%s: required a window or sinks over keys that are projected; supported: neither",
                               node.op);
        if (shape.variant == AttentionVariant::kProjected) {
            ProjectedAttention::plan(node, device, build, plan);
        } else {
            CachedAttention::plan(node, device, build, plan);
        }
    }

    Attention(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build) {
        if (AttentionShape(node).variant == AttentionVariant::kProjected) {
            projected_.emplace(node, info, device, build);
        } else {
            cached_.emplace(node, info, device, build);
        }
    }
    void enqueue(const tsr_launch& launch) const {
        if (projected_) {
            projected_->enqueue(launch);
        } else {
            cached_->enqueue(launch);
        }
    }

  private:
    std::optional<CachedAttention> cached_;
    std::optional<ProjectedAttention> projected_;
};

struct FlashAttention : Attention {
    using Attention::Attention;
    static constexpr const char *kName = "flash_attention.cuda", *kOp = TSR_OP_FLASH_ATTENTION;
};
struct TiledAttention : Attention {
    using Attention::Attention;
    static constexpr const char *kName = "tiled_attention.cuda", *kOp = TSR_OP_TILED_ATTENTION;
};

}  // namespace

void set_flash_attention(tsr_kernel& kernel) noexcept {
    set_kernel<FlashAttention>(kernel);
}
void set_tiled_attention(tsr_kernel& kernel) noexcept {
    set_kernel<TiledAttention>(kernel);
}

}  // namespace tessera::cuda_ops
