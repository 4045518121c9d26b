// matmul_id: 0 x, 1 weight, 2 ids; 3 output. Rows grouped by expert.
#include "../layouts/layouts.hpp"
#include "../matmul/common.hpp"
#include "../vectors.hpp"
#include "grouping.hpp"
#include "moe.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/checks/matmul.hpp>
#include <tessera/ops.h>

#include <algorithm>

namespace tessera::x86 {

namespace {

struct MatmulId {
    const tsr_node* node;
    uint32_t slots;
    const PanelTable* panels;
    Weight weight;
    int64_t experts, used;
    bool row_a_slot;  // x has a row for each slot
    uint64_t row_bytes, group_bytes, x_offset, workspace_bytes;

    MatmulId(const tsr_node& of, const tsr_device_info* device) noexcept
        : node(&of), slots(slots_of(device)), panels(vectors_of(device).panels), weight(of, 1) {
        experts = of.inputs[1]->dims[2];
        used = of.inputs[2]->dims[0];
        row_a_slot = of.inputs[0]->rank == 3;
        const int64_t places = used * of.inputs[2]->dims[1];
        row_bytes = prepared_row_bytes(weight.kernels->activations, weight.k);
        group_bytes = aligned(grouping_bytes(experts, places));
        x_offset = slots * (weight.kernels->scratch_bytes + group_bytes);
        workspace_bytes = x_offset + aligned(static_cast<uint64_t>(places) * row_bytes);
    }
};

const tsr_status* plan_id(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device,
                          tsr_kernel_plan* plan) {
    const CanonicalNode canonical(*node);
    cpu::Work work;
    cpu::check_matmul_id(canonical.node(), *plan, work);
    if (!plan->supported) return nullptr;
    const MatmulId op(canonical.node(), device);
    plan->layouts[1] = layouts_of(op.weight.kernels->type, packable(*canonical.node().inputs[1]));
    plan->workspace_bytes = op.workspace_bytes;
    const auto experts = static_cast<double>(op.experts), used = static_cast<double>(op.used);
    const double places = used * static_cast<double>(node->inputs[2]->dims[1]);
    Cost cost;
    cost.add(op.weight, std::min(used, experts), used, std::min(experts, places), places,
             vectors_of(device).macs(*op.weight.kernels));
    cost.one.bytes *= kShortRuns;
    cost.write(device, 2, *plan);
    std::snprintf(plan->reason, sizeof plan->reason, "%s, rows grouped by expert, %s", op.weight.kernels->name,
                  vectors_of(device).name);
    return nullptr;
}

const tsr_status* prepare_id(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_device*,
                             void** state) {
    return sdk::guarded([&] { *state = new MatmulId(*node, device); });
}

void release_id(const tsr_kernel*, void* state) {
    delete static_cast<MatmulId*>(state);
}

void run_grouped(const MatmulId& op, const tsr_run& run, tsr_range range, const Worker& worker) {
    const tsr_node& node = *op.node;
    const tsr_tensor &x = *node.inputs[0], &out = *node.outputs[0];
    auto* workspace = static_cast<unsigned char*>(run.workspace);
    const WeightKernels& kernels = *op.weight.kernels;
    const Ids ids(node, run, 2, range);
    const Grouping grouping(workspace + op.slots * kernels.scratch_bytes + worker.index() * op.group_bytes, ids,
                            op.experts);
    const char* x_data = sdk::operand_data<char>(node, run, 0);
    char* out_data = sdk::operand_data<char>(node, run, 3);
    const auto x_row = [&](int64_t place) {
        const int64_t r = range.begin + place / op.used;
        const char* at =
            op.row_a_slot ? x_data + r * x.strides[2] + place % op.used * x.strides[1] : x_data + r * x.strides[1];
        return reinterpret_cast<const float*>(at);
    };
    const auto out_row = [&](int64_t place) {
        const int64_t r = range.begin + place / op.used;
        return reinterpret_cast<float*>(out_data + r * out.strides[2] + place % op.used * out.strides[1]);
    };
    const auto rows_of = [&](int64_t e) {
        const auto first = static_cast<uint64_t>(grouping.first[e]);
        return ActivationRows{workspace + op.x_offset + first * op.row_bytes, grouping.count(e), op.weight.k};
    };
    prepare_grouped(worker, grouping, op.experts, op.weight, rows_of, x_row);
    worker.barrier();
    const TilesInUse tiles(*op.panels, range.end - range.begin);
    const cpu::Share zeros = worker.share(op.weight.groups());
    const int64_t from = zeros.begin * kLanes, to = std::min(zeros.end * kLanes, op.weight.n);
    for (int64_t place = 0; place < (range.end - range.begin) * op.used; ++place) {
        if (ids.at(place / op.used, place % op.used) < 0) std::fill(out_row(place) + from, out_row(place) + to, 0.0f);
    }
    divide_experts(worker, grouping, op.experts, op.weight.groups(), op.weight.piece(),
                   [&](int64_t e, int64_t begin, int64_t end) {
                       const auto store = [&](int64_t r, int64_t group, const float* lanes) {
                           store_lanes(out_row(grouping.place[grouping.first[e] + r]), group, op.weight.n, lanes);
                       };
                       kernels.multiply(*op.panels, op.weight.rows(node, run, e), begin, end, rows_of(e),
                                        workspace + worker.index() * kernels.scratch_bytes, Sink(store));
                   });
}

const tsr_status* run_id(const tsr_kernel*, void* state, const tsr_run* run) {
    const MatmulId& op = *static_cast<MatmulId*>(state);
    const tsr_range range = sdk::actual_rows(*op.node->inputs[0], *run);
    if (range.end <= range.begin) return nullptr;
    if (!check_ids(*op.node, *run, 2, range, op.experts)) {
        return sdk::guarded([&] { refuse_ids(*op.node, op.experts); });
    }
    const Worker worker(*run, op.slots);
    if (worker.idle()) {
        worker.barrier();
        return nullptr;
    }
    return sdk::guarded([&] { run_grouped(op, *run, range, worker); });
}

constexpr tsr_kernel kMatmulId = cpu_kernel(TSR_OP_MATMUL_ID, plan_id, prepare_id, release_id, run_id);
constexpr const tsr_kernel* kKernels[] = {&kMatmulId};

}  // namespace

std::span<const tsr_kernel* const> matmul_id_kernels() noexcept {
    return kKernels;
}

}  // namespace tessera::x86
