#include "cache_write.hpp"

#include "../estimate.hpp"
#include "../kernel.hpp"
#include "../layouts/byte_pages.hpp"
#include "../layouts/int16_pages.hpp"
#include "../matmul/common.hpp"
#include "../rates.hpp"
#include "attention.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/checks/storage.hpp>
#include <tessera/ops.h>

namespace tessera::x86 {

namespace {

const tsr_status* plan(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_kernel_plan* plan) {
    cpu::Work work;
    const CanonicalNode canonical(*node);
    cpu::check_cache_write(canonical.node(), *plan, work);
    if (!plan->supported) return nullptr;
    std::snprintf(plan->reason, sizeof plan->reason, "rows to %s", cpu::format_name(node->outputs[0]->type));
    const Amount one{work.bytes_one_row, work.bytes_one_row / kCacheWriteBytes};
    const Amount all{work.bytes_all_rows, work.bytes_all_rows / kCacheWriteBytes};
    const tsr_tensor& pages = *node->outputs[0];
    if (takes_int16_pages(pages.type, pages.dims[0])) {
        plan->layouts[node->input_count] = int16_layout_names(pages.type, attention_lanes(device));
    } else if (attends_in_bytes(device) && takes_byte_pages(pages.type, pages.dims[0])) {
        plan->layouts[node->input_count] = byte_layout_names();
    }
    Estimate(device).write(*plan, 1, one, all, one, all);
    return nullptr;
}

const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info*, tsr_device*, void** state) {
    return sdk::guarded([&] {
        const tsr_tensor& cache = *node->outputs[0];
        *state = new CacheWrite{node, int16_pages_of(cache), byte_pages_of(cache)};
    });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<CacheWrite*>(state);
}

const tsr_status* run(const tsr_kernel*, void* state, const tsr_run* run) {
    return sdk::guarded([&] { run_cache_write(*static_cast<const CacheWrite*>(state), *run); });
}

}  // namespace

constinit const tsr_kernel kCacheWrite = cpu_kernel(TSR_OP_CACHE_WRITE, plan, prepare, release, run);

}  // namespace tessera::x86
