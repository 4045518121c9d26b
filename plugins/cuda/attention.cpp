// flash_attention and tiled_attention in f32, plain and prefix form. It keeps a running softmax, so it is of either
// kind; heads of 576/512 are claimed for tiled_attention alone: flash_attention of that size is for tensor cores.
#include "estimate.hpp"
#include "kernel_of.hpp"
#include "pages.hpp"

#include <tessera/cpu/checks/attention.hpp>
#include <tessera/cuda/launch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

namespace tessera::cuda_ops {
namespace {

using cpu::AttentionForm;
using cpu::AttentionShape;
using cuda_kernels::kAttentionHeads;

constexpr int64_t kSharedLimit = 48 << 10;  // of a block on every card
constexpr uint32_t kMaximumSplits = 32;
constexpr uint32_t kBlocksOfProcessor = 2;

int64_t head_tiles(const AttentionShape& shape) noexcept {
    const int64_t group = shape.heads / shape.kv_heads;
    return shape.kv_heads * ((group + kAttentionHeads - 1) / kAttentionHeads);
}

// Blocks that fill the card; fewer where the limit on scratch memory asks for it. Splits of fewer rows than fill it
// need partial sums for twice as many blocks at most.
uint64_t bytes_of_blocks(const AttentionShape& shape, uint64_t blocks) noexcept {
    return 2 * blocks * kAttentionHeads * static_cast<uint64_t>(shape.dv + 2) * sizeof(float);
}
uint32_t wanted_blocks(const tsr_node& node, const tsr_device_info& device) noexcept {
    const AttentionShape shape(node);
    const uint64_t processors = device.processors > 0 ? device.processors : 30;
    uint64_t blocks = kBlocksOfProcessor * processors;
    if (const uint64_t cap = cpu::scratch_cap(node))
        blocks = std::min(blocks, cap / std::max<uint64_t>(bytes_of_blocks(shape, 1), 1));
    return static_cast<uint32_t>(std::min<uint64_t>(blocks, 4096));
}

uint32_t splits_of(uint32_t blocks, const AttentionShape& shape, uint32_t rows) noexcept {
    const uint64_t each = static_cast<uint64_t>(head_tiles(shape)) * std::max(rows, 1u);
    return static_cast<uint32_t>(std::clamp<uint64_t>((blocks + each - 1) / each, 1, kMaximumSplits));
}

void estimate(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) noexcept {
    const AttentionShape shape(node);
    const tsr_tensor &q = *node.inputs[cpu::kQ], &k = *node.inputs[cpu::kK];
    const auto bytes_of_token = [](const tsr_tensor& cache) {
        return cpu::tensor_bytes(cache) / static_cast<double>(cache.dims[2]) / TSR_PAGE_TOKENS;
    };
    const double rows = cpu::row_count(q);
    const double full = static_cast<double>(std::max<int64_t>(
        1, sdk::int_attribute(node, "max_tokens", node.inputs[cpu::kPageTable]->dims[0] * TSR_PAGE_TOKENS)));
    const double macs = static_cast<double>(shape.heads) * static_cast<double>(shape.dk + shape.dv);
    // Each tile of heads reads its rows of the cache for itself; all but the first find them in the second cache.
    const double token =
        bytes_of_token(k) + (sdk::has_input(node, cpu::kV) ? bytes_of_token(*node.inputs[cpu::kV]) : 0);
    const double ends = 2 * cpu::tensor_bytes(q) / rows;
    cpu::Work work;
    work.macs_one_row = macs;
    work.macs_all_rows = macs * rows * (rows + 1) / 2;
    work.macs_one_row_full = macs * full;
    work.macs_all_rows_full = macs * rows * full;
    work.bytes_one_row = token + ends;
    work.bytes_all_rows = token * rows + ends * rows;
    work.bytes_one_row_full = token * full + ends;
    work.bytes_all_rows_full = token * full + ends * rows;
    Cost cost;
    cost.launches = 2;
    cost.macs_a_clock = 24;  // both operands come from shared memory
    write_estimate(work, cost, device, plan);
}

class Attention {
  public:
    static const cuda::Module& module(const Build& build) noexcept { return *build.attention; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Check check(node, plan);
        if (!cpu::check_attention(check, node)) return;
        const AttentionShape shape(node);
        const auto dk = static_cast<long long>(shape.dk), dv = static_cast<long long>(shape.dv);
        if (shape.form == AttentionForm::kProjected)
            return sdk::refuse(plan, "%s: required projected keys; supported: cached ones; missing: projection",
                               node.op);
        const bool is_flash = std::string_view(node.op) == TSR_OP_FLASH_ATTENTION;
        if (is_flash && shape.form == AttentionForm::kPrefix) {
            return sdk::refuse(plan,
                               "%s: required heads of %lld/%lld over one latent row; supported: 192/128 128/128 64/64 "
                               "and others with keys and values of their own; missing: that form",
                               node.op, dk, dv);
        }
        // A head's keys begin at a whole piece of 32 elements.
        const bool whole = shape.kv_heads == 1 || (shape.dk % 32 == 0 && shape.dv % 32 == 0);
        if (!whole || shape.dv > cuda_kernels::kMaximumValues || shape.dk > 4096 ||
            cuda_kernels::attention_shared_bytes(static_cast<int>(shape.dk), static_cast<int>(shape.dv)) >
                kSharedLimit) {
            return sdk::refuse(plan,
                               "%s: required heads of %lld/%lld; supported: up to 576/512, multiples of 32 where there "
                               "are several; missing: that size",
                               node.op, dk, dv);
        }
        if (!pages_fit(*node.inputs[cpu::kPageTable], *node.inputs[cpu::kK]) || shape.heads > INT32_MAX / 4096)
            return sdk::refuse(plan, "%s: required more than 2^31 tokens; supported: fewer; missing: that", node.op);
        plan.workspace_bytes = workspace(shape, wanted_blocks(node, device));
        plan.supported = 1;
        std::snprintf(plan.reason, sizeof plan.reason, "sums in f32, %d heads a block", kAttentionHeads);
        estimate(node, device, plan);
    }

    Attention(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const cuda::Module& module)
        : node_(node),
          shape_(node),
          blocks_(wanted_blocks(node, info)),
          attention_(device, module, "attention"),
          combine_(device, module, "combine") {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &q = *node_.inputs[cpu::kQ], &k = *node_.inputs[cpu::kK], &y = *node_.outputs[0];
        cuda_kernels::Attention p{};
        p.q = operand_address(node_, launch, cpu::kQ);
        p.k = operand_address(node_, launch, cpu::kK);
        p.k_token = k.strides[1];
        p.k_page = k.strides[2];
        p.k_type = static_cast<int32_t>(k.type);
        if (sdk::has_input(node_, cpu::kV)) {
            const tsr_tensor& v = *node_.inputs[cpu::kV];
            p.v = operand_address(node_, launch, cpu::kV);
            p.v_token = v.strides[1];
            p.v_page = v.strides[2];
            p.v_type = static_cast<int32_t>(v.type);
        }
        p.positions = operand_address(node_, launch, cpu::kPositions);
        p.sequences = operand_address(node_, launch, cpu::kSequences);
        p.pages = pages_of(node_, launch, cpu::kPageTable, k);
        p.y = operand_address(node_, launch, node_.input_count);
        p.partial = launch.workspace;
        p.rows = rows_of(q, launch);
        p.q_head = q.strides[1];
        p.q_row = q.strides[2];
        p.y_head = y.strides[1];
        p.y_row = y.strides[2];
        p.position = node_.inputs[cpu::kPositions]->strides[0];
        p.sequence = node_.inputs[cpu::kSequences]->strides[0];
        p.heads = static_cast<int32_t>(shape_.heads);
        p.group = static_cast<int32_t>(shape_.heads / shape_.kv_heads);
        p.dk = static_cast<int32_t>(shape_.dk);
        p.dv = static_cast<int32_t>(shape_.dv);
        p.scale_log2 = static_cast<float>(shape_.scale * std::numbers::log2e);
        const uint32_t rows = row_bound(q, launch);
        p.splits = static_cast<int32_t>(workspace(shape_, blocks_) ? splits_of(blocks_, shape_, rows) : 1);
        const uint32_t grid_rows = std::min(rows, kMaximumGrid);
        attention_.launch(launch.queue,
                          {static_cast<uint32_t>(head_tiles(shape_)), grid_rows, static_cast<uint32_t>(p.splits)},
                          cuda_kernels::kAttentionThreads, p,
                          static_cast<uint32_t>(cuda_kernels::attention_shared_bytes(p.dk, p.dv)));
        if (p.splits > 1)
            combine_.launch(launch.queue, {static_cast<uint32_t>(p.heads), grid_rows, 1},
                            cuda_kernels::kAttentionThreads, p);
    }

  private:
    // For partial sums; 0 if the heads alone fill the card, or if the limit on scratch memory leaves no room.
    static uint64_t workspace(const AttentionShape& shape, uint32_t blocks) noexcept {
        return splits_of(blocks, shape, 1) > 1 ? bytes_of_blocks(shape, blocks) : 0;
    }

    const tsr_node& node_;
    AttentionShape shape_;
    uint32_t blocks_;
    cuda::Kernel attention_, combine_;
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
