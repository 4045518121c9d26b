#include "attention_projected.hpp"

#include "../estimate.hpp"
#include "attention_arguments.hpp"
#include "splits.hpp"

#include <cstdio>
#include <string>

namespace tessera::cuda_ops {
namespace {

using cpu::AttentionShape;
using cuda_kernels::kPageTokens;

// A window holds the prompts of a step of many sequences at once: 16 of 512 tokens.
constexpr int64_t kWindowTokens = 8192;
constexpr uint64_t kWindowBytes = 96 << 20;
constexpr int64_t kSharedLimit = 48 << 10;  // of the kernel in f32

uint64_t aligned(int64_t bytes) noexcept {
    return static_cast<uint64_t>((bytes + 255) / 256 * 256);
}

int64_t outputs_of(const AttentionShape& shape) noexcept {
    return shape.heads * (shape.dk - shape.unprojected + shape.dv);
}

// Entries of the page table.
int64_t pages_of_all(const tsr_node& node) noexcept {
    const tsr_tensor& table = *node.inputs[cpu::kPageTable];
    return table.dims[0] > INT64_MAX / std::max<int64_t>(table.dims[1], 1) ? INT64_MAX : table.dims[0] * table.dims[1];
}

// The kernels of the heads as they are attended.
FlashKernels kernels_of(const tsr_node& node, const Build& build, const tsr_device_info& device) noexcept {
    AttentionShape shape(node);
    shape.variant = cpu::AttentionVariant::kPlain;
    const FlashKernels kernels = flash_kernels(shape, flash_suffix_of_written(build), build, device);
    return kernels.tensor_cores || ends_aligned(node) ? kernels : FlashKernels{};
}

void estimate(const tsr_node& node, const tsr_device_info& device, const ProjectedSizes& sizes,
              const FlashKernels& kernels, tsr_kernel_plan& plan) noexcept {
    const AttentionShape shape(node);
    const tsr_tensor &q = *node.inputs[cpu::kQ], &k = *node.inputs[cpu::kK];
    const double rows = cpu::row_count(q);
    const double full = static_cast<double>(std::max<int64_t>(
        1, sdk::int_attribute(node, "max_tokens", node.inputs[cpu::kPageTable]->dims[0] * TSR_PAGE_TOKENS)));
    const double token = cpu::tensor_bytes(k) / static_cast<double>(k.dims[2]) / TSR_PAGE_TOKENS;
    const double attended = static_cast<double>(shape.heads * (shape.dk + shape.dv));
    const double projected = static_cast<double>(outputs_of(shape) * shape.latent);
    // A window's keys and values are written, and read by each tile of rows, of which the second cache serves most.
    const double window = 2 * attended * (kernels.tensor_cores ? 2 : 4);
    const double weights = cpu::tensor_bytes(*node.inputs[cpu::kWk]) + cpu::tensor_bytes(*node.inputs[cpu::kWv]) +
                           2 * static_cast<double>(sizes.weights_bytes);
    const double ends = 2 * cpu::tensor_bytes(q) / rows;
    cpu::Work work;
    work.macs_one_row = attended + projected;
    work.macs_all_rows = attended * rows * (rows + 1) / 2 + projected * rows;
    work.macs_one_row_full = (attended + projected) * full;
    work.macs_all_rows_full = (attended * rows + projected) * full;
    work.bytes_one_row = weights + token + window + ends;
    work.bytes_all_rows = weights + (token + window + ends) * rows;
    work.bytes_one_row_full = weights + (token + window) * full + ends;
    work.bytes_all_rows_full = weights + (token + window) * full + ends * rows;
    Cost cost;
    cost.launches = 4;
    set_attention_rates(device, kernels, shape.dk > 256, cost);
    write_estimate(work, cost, device, plan);
}

}  // namespace

ProjectedSizes projected_sizes(const tsr_node& node, bool half) noexcept {
    const AttentionShape shape(node);
    const int64_t element = half ? 2 : 4;
    ProjectedSizes sizes;
    sizes.weights_bytes = aligned(outputs_of(shape) * shape.latent * element);
    sizes.running_bytes = aligned(shape.rows * shape.heads * 8);
    const tsr_tensor& table = *node.inputs[cpu::kPageTable];
    sizes.ends_bytes = aligned(table.dims[1] * 4);
    sizes.starts_bytes = aligned((table.dims[1] + 1) * 4);
    const int64_t key = shape.heads * shape.dk * element, value = shape.heads * shape.dv * element;
    const uint64_t others = sizes.bytes();
    const auto page = static_cast<uint64_t>(kPageTokens * (key + value));
    sizes.minimum_bytes = others + page + 512;
    const uint64_t cap = cpu::scratch_cap(node);
    if (cap > 0 && cap < sizes.minimum_bytes) return sizes;
    // Of all sequences: pages that they share are projected for each.
    const int64_t longest = std::max<int64_t>(1, sdk::int_attribute(node, "max_tokens", kWindowTokens));
    const int64_t most = longest > kWindowTokens / table.dims[1] ? kWindowTokens : longest * table.dims[1];
    int64_t pages = (most + kPageTokens - 1) / kPageTokens;
    pages = std::min<int64_t>(pages, static_cast<int64_t>(std::max<uint64_t>(1, kWindowBytes / page)));
    if (cap > 0) pages = std::min<int64_t>(pages, static_cast<int64_t>((cap - others - 512) / page));
    sizes.tokens = pages * kPageTokens;
    sizes.keys_bytes = aligned(sizes.tokens * key);
    sizes.values_bytes = aligned(sizes.tokens * value);
    return sizes;
}

void ProjectedAttention::plan(const tsr_node& node, const tsr_device_info& device, const Build& build,
                              tsr_kernel_plan& plan) {
    const AttentionShape shape(node);
    const auto dk = static_cast<long long>(shape.dk), dv = static_cast<long long>(shape.dv);
    const FlashKernels kernels = kernels_of(node, build, device);
    const bool half = kernels.tensor_cores;
    const bool sizes_fit = shape.latent % 32 == 0 && shape.latent <= cuda_kernels::kMaximumLatent && shape.latent > 0 &&
                           shape.heads <= kMaximumGrid && outputs_of(shape) <= INT32_MAX / 8192 &&
                           pages_of_all(node) <= INT32_MAX / kPageTokens;
    const bool heads_fit = half || ((shape.heads == 1 || (shape.dk % 32 == 0 && shape.dv % 32 == 0)) &&
                                    shape.dv <= cuda_kernels::kMaximumValues && shape.dk <= 4096 &&
                                    cuda_kernels::attention_shared_bytes(static_cast<int>(shape.dk),
                                                                         static_cast<int>(shape.dv)) <= kSharedLimit);
    if (!sizes_fit || !heads_fit) {
        return sdk::refuse(plan,
                           "%s: required heads of %lld/%lld projected from rows of %lld; supported: up to 576/512 in "
                           "multiples of 32, rows of up to %d in multiples of 32; missing: that size",
                           node.op, dk, dv, static_cast<long long>(shape.latent), cuda_kernels::kMaximumLatent);
    }
    const ProjectedSizes sizes = projected_sizes(node, half);
    plan.minimum_scratch_bytes = sizes.minimum_bytes;
    if (sizes.tokens == 0) {
        return sdk::refuse(plan,
                           "%s: required at most %llu bytes of scratch memory; supported: %llu or more; missing: %llu "
                           "bytes",
                           node.op, static_cast<unsigned long long>(cpu::scratch_cap(node)),
                           static_cast<unsigned long long>(sizes.minimum_bytes),
                           static_cast<unsigned long long>(sizes.minimum_bytes - cpu::scratch_cap(node)));
    }
    plan.supported = 1;
    plan.workspace_bytes = sizes.bytes();
    std::snprintf(plan.reason, sizeof plan.reason,
                  "%s, keys and values projected from latent rows, %lld tokens at once",
                  half ? "tensor cores, f16" : "f32", static_cast<long long>(sizes.tokens));
    estimate(node, device, sizes, kernels, plan);
}

ProjectedAttention::ProjectedAttention(const tsr_node& node, const tsr_device_info& info, tsr_device& device,
                                       const Build& build)
    : node_(node),
      shape_(node),
      kernels_(kernels_of(node, build, info)),
      sizes_(projected_sizes(node, kernels_.tensor_cores)),
      weights_(device, *build.project, "projection_weights"),
      ends_(device, *build.project, "sequence_ends"),
      project_(device, kernels_.tensor_cores ? *build.project_f16 : *build.project,
               kernels_.tensor_cores ? "project_f16" : "project_f32") {
    const auto make = [&](std::optional<cuda::Kernel>& made, const FlashKernel& kernel) {
        made.emplace(device, *kernel.module, (std::string(kernel.name) + kernels_.suffix).c_str(), kernel.shared_bytes);
    };
    if (kernels_.small.name) {
        make(small_, kernels_.small);
    } else {
        attention_.emplace(device, *build.attention, "attention");
    }
    if (kernels_.large.name) make(large_, kernels_.large);
}

void ProjectedAttention::enqueue(const tsr_launch& launch) const {
    const tsr_tensor &q = *node_.inputs[cpu::kQ], &k = *node_.inputs[cpu::kK], &table = *node_.inputs[cpu::kPageTable];
    const tsr_tensor &wk = *node_.inputs[cpu::kWk], &wv = *node_.inputs[cpu::kWv];
    const bool half = kernels_.tensor_cores;
    const uint32_t rows = row_bound(q, launch);
    if (rows == 0) return;
    auto* workspace = static_cast<char*>(launch.workspace);
    const auto take = [&](uint64_t bytes) {
        char* at = workspace;
        workspace += bytes;
        return at;
    };
    char* const weights = take(sizes_.weights_bytes);
    char* const running = take(sizes_.running_bytes);
    auto* const ends = reinterpret_cast<int32_t*>(take(sizes_.ends_bytes));
    auto* const starts = reinterpret_cast<int32_t*>(take(sizes_.starts_bytes));
    char* const keys = take(sizes_.keys_bytes);
    char* const values = take(sizes_.values_bytes);

    cuda_kernels::Attention a = attention_arguments(node_, shape_, launch);
    cuda_kernels::ProjectionWeights w{};
    w.wk = operand_address(node_, launch, cpu::kWk);
    w.wv = operand_address(node_, launch, cpu::kWv);
    w.to = weights;
    w.wk_row = wk.strides[1];
    w.wk_head = wk.strides[2];
    w.wv_row = wv.strides[1];
    w.wv_head = wv.strides[2];
    w.wk_type = static_cast<int32_t>(wk.type);
    w.wv_type = static_cast<int32_t>(wv.type);
    w.nk = static_cast<int32_t>(shape_.dk - shape_.unprojected);
    w.nv = static_cast<int32_t>(shape_.dv);
    w.latent = static_cast<int32_t>(shape_.latent);
    w.hadamard = shape_.hadamard ? 1 : 0;
    w.half = half ? 1 : 0;
    const auto heads = static_cast<uint32_t>(shape_.heads);
    weights_.launch(launch.queue, {static_cast<uint32_t>(w.nk + w.nv), heads, 1}, cuda_kernels::kWeightThreads, w);

    cuda_kernels::SequenceEnds e{};
    e.positions = a.positions;
    e.sequences = a.sequences;
    e.y = a.y;
    e.ends = ends;
    e.starts = starts;
    e.rows = a.rows;
    e.position = a.position;
    e.sequence = a.sequence;
    e.y_head = a.y_head;
    e.y_row = a.y_row;
    e.count = static_cast<int32_t>(table.dims[1]);
    e.table = static_cast<int32_t>(table.dims[0]);
    e.heads = a.heads;
    e.dv = a.dv;
    ends_.launch(launch.queue, {1, 1, 1}, cuda_kernels::kSequenceThreads, e);

    cuda_kernels::Projection p{};
    p.cache = a.k;
    p.weights = weights;
    p.k = keys;
    p.v = values;
    p.ends = ends;
    p.starts = starts;
    p.pages = a.pages;
    p.token = a.k_token;
    p.page = a.k_page;
    p.type = a.k_type;
    p.heads = a.heads;
    p.latent = w.latent;
    p.unprojected = static_cast<int32_t>(shape_.unprojected);
    p.nk = w.nk;
    p.nv = w.nv;
    p.aligned = rows_aligned(k);

    const int64_t element = half ? 2 : 4;
    a.k = keys;
    a.v = values;
    a.k_token = shape_.heads * shape_.dk * element;
    a.v_token = shape_.heads * shape_.dv * element;
    a.k_page = a.k_token * kPageTokens;
    a.v_page = a.v_token * kPageTokens;
    a.k_type = a.v_type = half ? TSR_TYPE_F16 : TSR_TYPE_F32;
    a.group = 1;
    a.running = running;
    a.page_starts = starts;

    const int64_t window = sizes_.tokens / kPageTokens;
    const int64_t pages = std::min(page_bound(q, launch, table.dims[1]), pages_of_all(node_));
    const int64_t outputs = half ? cuda_kernels::kProjectedOutputs : cuda_kernels::kProjectedOutputsF32;
    const uint32_t tiles =
        static_cast<uint32_t>((outputs_of(shape_) + outputs - 1) / outputs) + (shape_.unprojected > 0 ? heads : 0);
    const bool few = !kernels_.large.name || rows <= Splits::kFewRows;
    for (int64_t first = 0; first < pages; first += window) {
        p.window_page = a.window_page = static_cast<int32_t>(first);
        a.window_pages = static_cast<int32_t>(std::min(window, pages - first));
        project_.launch(launch.queue, {tiles, static_cast<uint32_t>(a.window_pages), 1},
                        half ? cuda_kernels::kProjectionThreads : cuda_kernels::kProjectionThreadsF32, p);
        if (few && attention_) {
            attention_->launch(launch.queue, {heads, std::min(rows, kMaximumGrid), 1}, cuda_kernels::kAttentionThreads,
                               a, static_cast<uint32_t>(cuda_kernels::attention_shared_bytes(a.dk, a.dv)));
            continue;
        }
        const FlashKernel& kernel = few ? kernels_.small : kernels_.large;
        const auto row_tiles = (rows + static_cast<uint32_t>(kernel.rows) - 1) / static_cast<uint32_t>(kernel.rows);
        (few ? small_ : large_)
            ->launch(launch.queue, {row_tiles, heads, 1}, static_cast<uint32_t>(kernel.threads), a,
                     kernel.shared_bytes);
    }
}

}  // namespace tessera::cuda_ops
