#include "matmul.hpp"

#include "../layouts/layouts.hpp"
#include "../vectors.hpp"
#include "common.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/checks/matmul.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <array>

namespace tessera::x86 {

namespace {

// Of a result, that a worker's caches hold until it is read.
constexpr int64_t kCachedBytes = 2 << 20;

// ---- matmul: 0 x, 1 weight; 2 output ----

struct Matmul {
    const tsr_node* node;
    uint32_t slots;
    const PanelTable* panels;
    Weight weight;
    bool columns;  // transpose_weight: the weight's rows are summed over
    int64_t k, n, batches;

    Matmul(const tsr_node& of, const tsr_device_info* device) noexcept
        : node(&of), slots(slots_of(device)), panels(vectors_of(device).panels), weight(of, 1) {
        columns = sdk::int_attribute(of, "transpose_weight", 0) != 0;
        k = columns ? weight.n : weight.k;
        n = columns ? weight.k : weight.n;
        batches = of.inputs[0]->rank == 3 ? of.inputs[0]->dims[1] : 1;
    }

    ActivationKind kind() const noexcept { return columns ? kColumns.activations : weight.kernels->activations; }
    uint64_t scratch_bytes() const noexcept { return columns ? kColumns.scratch_bytes : weight.kernels->scratch_bytes; }
    // Heads that read one row need it prepared once.
    int64_t prepared_batches() const noexcept { return batches > 1 && node->inputs[0]->strides[1] == 0 ? 1 : batches; }
    uint64_t batch_bytes(int64_t rows) const noexcept {
        return aligned(static_cast<uint64_t>(rows) * prepared_row_bytes(kind(), k));
    }
    // Of each worker: its scratch and, where they are few, the elements of one row.
    uint64_t own_bytes() const noexcept { return k <= kOwnElements ? batch_bytes(1) : 0; }
    uint64_t worker_bytes() const noexcept { return scratch_bytes() + own_bytes(); }
    uint64_t workspace_bytes() const noexcept {
        const tsr_tensor& x = *node->inputs[0];
        return slots * worker_bytes() + static_cast<uint64_t>(prepared_batches()) * batch_bytes(x.dims[x.rank - 1]);
    }
};

const tsr_status* plan_matmul(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device,
                              tsr_kernel_plan* plan) {
    const CanonicalNode canonical(*node);
    cpu::Work work;
    cpu::check_matmul(canonical.node(), *plan, work);
    if (!plan->supported) return nullptr;
    const Matmul op(canonical.node(), device);
    const tsr_tensor& x = *node->inputs[0];
    const auto rows = static_cast<double>(x.dims[x.rank - 1]);
    const auto batches = static_cast<double>(op.batches);
    plan->layouts[1] = layouts_of(op.weight.kernels->type, !op.columns && packable(*canonical.node().inputs[1]));
    plan->workspace_bytes = op.workspace_bytes();
    const Vectors& vectors = vectors_of(device);
    Cost cost;
    cost.add(op.weight, batches, batches, batches, batches * rows,
             op.columns ? column_rates(vectors.processor) : vectors.macs(*op.weight.kernels));
    cost.write(device, 2, *plan);
    std::snprintf(plan->reason, sizeof plan->reason, "%s%s, %s, %s", op.weight.kernels->name,
                  op.columns ? " along columns" : "", op.kind().division.groups == 0 ? "f32" : "int8 activations",
                  vectors.name);
    return nullptr;
}

const tsr_status* prepare_matmul(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_device*,
                                 void** state) {
    return sdk::guarded([&] { *state = new Matmul(*node, device); });
}

void release_matmul(const tsr_kernel*, void* state) {
    delete static_cast<Matmul*>(state);
}

const tsr_status* run_matmul(const tsr_kernel*, void* state, const tsr_run* run) {
    const Matmul& op = *static_cast<Matmul*>(state);
    const tsr_node& node = *op.node;
    const tsr_tensor& x = *node.inputs[0];
    const tsr_tensor& out = *node.outputs[0];
    const tsr_range actual = sdk::actual_rows(x, *run);
    const int64_t rows = actual.end - actual.begin;
    if (rows <= 0) return nullptr;
    const Worker worker(*run, op.slots);
    const auto row_stride = [&](const tsr_tensor& t) { return t.strides[t.rank - 1]; };
    const auto batch_stride = [&](const tsr_tensor& t) { return t.rank == 3 ? t.strides[1] : 0; };
    const char* x_data = sdk::operand_data<char>(node, *run, 0) + actual.begin * row_stride(x);
    char* out_data = sdk::operand_data<char>(node, *run, 2) + actual.begin * row_stride(out);
    auto* workspace = static_cast<unsigned char*>(run->workspace);
    unsigned char* prepared = workspace + op.slots * op.worker_bytes();
    const int64_t prepared_batches = op.prepared_batches();
    const auto rows_of = [&](int64_t batch) {
        return ActivationRows{
            prepared + static_cast<uint64_t>(prepared_batches == 1 ? 0 : batch) * op.batch_bytes(rows), rows, op.k};
    };
    const auto prepare = op.columns ? kColumns.prepare : op.weight.kernels->prepare;
    const auto prepare_rows = [&](const ActivationRows& to, int64_t batch) {
        const char* from = x_data + batch * batch_stride(x);
        for (int64_t r = 0; r < rows; ++r) {
            prepare(to, r, reinterpret_cast<const float*>(from + r * row_stride(x)), 0,
                    (op.k + kPrepareStep - 1) / kPrepareStep);
        }
    };
    // One short row is prepared by each worker when it comes to the batch.
    const bool own = rows == 1 && op.own_bytes() > 0;
    if (!own) {
        const auto many = 4 * static_cast<int64_t>(worker.active());
        if (prepared_batches > 1 && rows >= many) {
            // In the order of memory, where the batches of a row lie side by side.
            const cpu::Share mine = worker.share(rows);
            for (int64_t r = mine.begin; r < mine.end; ++r) {
                const char* from = x_data + r * row_stride(x);
                for (int64_t b = 0; b < prepared_batches; ++b) {
                    prepare(rows_of(b), r, reinterpret_cast<const float*>(from + b * batch_stride(x)), 0,
                            (op.k + kPrepareStep - 1) / kPrepareStep);
                }
            }
        } else if (prepared_batches >= many) {
            const cpu::Share mine = worker.share(prepared_batches);
            for (int64_t b = mine.begin; b < mine.end; ++b) prepare_rows(rows_of(b), b);
        } else {
            for (int64_t b = 0; b < prepared_batches; ++b) {
                const char* from = x_data + b * batch_stride(x);
                worker.prepare(rows_of(b), prepare,
                               [&](int64_t r) { return reinterpret_cast<const float*>(from + r * row_stride(x)); });
            }
        }
        worker.barrier();
    }
    const bool takes_tiles = !op.columns && op.weight.kernels->takes_tiles;
    const TilesInUse tiles(*op.panels, !takes_tiles || worker.idle() ? 0 : rows);
    const int64_t items = op.columns ? (op.n + kColumnElements - 1) / kColumnElements : op.weight.groups();
    unsigned char* scratch = workspace + worker.index() * op.worker_bytes();
    const ActivationRows own_row{scratch + op.scratch_bytes(), 1, op.k};
    int64_t own_batch = -1;  // whose row it is
    const auto x_of = [&](int64_t batch) {
        if (!own) return rows_of(batch);
        const int64_t of = prepared_batches == 1 ? 0 : batch;
        if (own_batch != of) prepare_rows(own_row, of);
        own_batch = of;
        return own_row;
    };
    // Absorbed products, which every worker reads next: of one row, and of rows that fill the caches anyway, each line
    // of which would be read before it is written. Not logits, which one thread reads.
    const int64_t out_bytes = rows * op.n * op.batches * int64_t{sizeof(float)};
    const bool fills = !op.columns && out_bytes >= kCachedBytes * int64_t{worker.active()};
    const bool past = op.batches > 1 && (rows == 1 ? pays_past_caches(*run, out_bytes) : fills);
    worker.divide(items * op.batches, op.columns ? 1 : op.weight.piece(), [&](int64_t first, int64_t last) {
        for (int64_t item = first; item < last;) {
            const int64_t batch = item / items;
            const int64_t begin = item % items;
            const int64_t end = std::min(items, begin + last - item);
            char* to = out_data + batch * batch_stride(out);
            const auto store = [&](int64_t r, int64_t group, const float* lanes) {
                store_lanes(reinterpret_cast<float*>(to + r * row_stride(out)), group, op.n, lanes, past);
            };
            const WeightRows weight = op.weight.rows(node, *run, batch);
            if (op.columns) {
                kColumns.multiply(op.weight.kernels->type, weight, op.n, begin, end, x_of(batch), scratch, Sink(store));
            } else {
                op.weight.kernels->multiply(*op.panels, weight, begin, end, x_of(batch), scratch, Sink(store));
            }
            item += end - begin;
        }
    });
    if (past) end_past_caches();
    return nullptr;
}

// ---- matmul_group: 0 x, 1 .. m weights; m outputs ----

struct Group {
    const tsr_node* node;
    uint32_t slots;
    const PanelTable* panels;
    uint32_t count = 0;
    std::array<Weight, TSR_MAX_OPERANDS / 2> weights;
    // Weights that need the same preparation share the prepared rows.
    std::array<uint32_t, TSR_MAX_OPERANDS / 2> preparation{};
    uint32_t preparations = 0;
    std::array<uint32_t, TSR_MAX_OPERANDS / 2> first_with{};  // a weight of each preparation
    std::array<uint64_t, TSR_MAX_OPERANDS / 2> offset{};      // of the prepared rows
    std::array<uint64_t, TSR_MAX_OPERANDS / 2> own_offset{};  // of one row in what a worker has for itself
    uint64_t worker_bytes = 0;
    uint64_t workspace_bytes = 0;

    Group(const tsr_node& of, const tsr_device_info* device) noexcept
        : node(&of), slots(slots_of(device)), panels(vectors_of(device).panels), count(of.input_count - 1) {
        for (uint32_t i = 0; i < count; ++i) {
            weights[i] = Weight(of, 1 + i);
            worker_bytes = std::max(worker_bytes, weights[i].kernels->scratch_bytes);
            uint32_t p = 0;
            while (p < preparations && weights[first_with[p]].kernels->activations != weights[i].kernels->activations) {
                ++p;
            }
            if (p == preparations) first_with[preparations++] = i;
            preparation[i] = p;
        }
        for (uint32_t p = 0; own() && p < preparations; ++p) {
            own_offset[p] = worker_bytes;
            worker_bytes += aligned(row_bytes(p));
        }
        workspace_bytes = slots * worker_bytes;
        const auto rows = static_cast<uint64_t>(of.inputs[0]->dims[1]);
        for (uint32_t p = 0; p < preparations; ++p) {
            offset[p] = workspace_bytes;
            workspace_bytes += aligned(rows * row_bytes(p));
        }
    }

    // Whether workers prepare one row for themselves.
    bool own() const noexcept { return node->inputs[0]->dims[0] <= kOwnElements; }

  private:
    uint64_t row_bytes(uint32_t p) const noexcept {
        const Weight& weight = weights[first_with[p]];
        return prepared_row_bytes(weight.kernels->activations, weight.k);
    }
};

const tsr_status* plan_group(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device,
                             tsr_kernel_plan* plan) {
    const CanonicalNode canonical(*node);
    cpu::Check check(canonical.node(), *plan);
    if (!check.operands()) return nullptr;
    const Group op(canonical.node(), device);
    Cost cost;
    const auto rows = static_cast<double>(node->inputs[0]->dims[1]);
    for (uint32_t i = 0; i < op.count; ++i) {
        plan->layouts[1 + i] = layouts_of(op.weights[i].kernels->type, packable(*canonical.node().inputs[1 + i]));
        cost.add(op.weights[i], 1, 1, 1, rows, vectors_of(device).macs(*op.weights[i].kernels));
    }
    plan->supported = 1;
    plan->workspace_bytes = op.workspace_bytes;
    cost.write(device, 2, *plan);
    std::snprintf(plan->reason, sizeof plan->reason, "%u weights, rows prepared in %u format%s, %s", op.count,
                  op.preparations, op.preparations == 1 ? "" : "s", vectors_of(device).name);
    return nullptr;
}

const tsr_status* prepare_group(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_device*,
                                void** state) {
    return sdk::guarded([&] { *state = new Group(*node, device); });
}

void release_group(const tsr_kernel*, void* state) {
    delete static_cast<Group*>(state);
}

const tsr_status* run_group(const tsr_kernel*, void* state, const tsr_run* run) {
    const Group& op = *static_cast<Group*>(state);
    const tsr_node& node = *op.node;
    const tsr_tensor& x = *node.inputs[0];
    const tsr_range actual = sdk::actual_rows(x, *run);
    const int64_t rows = actual.end - actual.begin;
    if (rows <= 0) return nullptr;
    const Worker worker(*run, op.slots);
    const char* x_data = sdk::operand_data<char>(node, *run, 0) + actual.begin * x.strides[1];
    auto* workspace = static_cast<unsigned char*>(run->workspace);
    unsigned char* const scratch = workspace + (worker.idle() ? 0 : worker.index()) * op.worker_bytes;
    const bool own = rows == 1 && op.own();
    const auto rows_of = [&](uint32_t p) {
        return ActivationRows{own ? scratch + op.own_offset[p] : workspace + op.offset[p], rows, x.dims[0]};
    };
    for (uint32_t p = 0; p < op.preparations; ++p) {
        const Weight& weight = op.weights[op.first_with[p]];
        const auto row_at = [&](int64_t r) { return reinterpret_cast<const float*>(x_data + r * x.strides[1]); };
        if (!own)
            worker.prepare(rows_of(p), weight.kernels->prepare, row_at);
        else if (!worker.idle())
            weight.kernels->prepare(rows_of(p), 0, row_at(0), 0, weight.steps());
    }
    if (!own) worker.barrier();
    const auto* const end_of_weights = op.weights.data() + op.count;
    const bool takes_tiles = std::any_of(op.weights.data(), end_of_weights,
                                         [](const Weight& weight) { return weight.kernels->takes_tiles; });
    const TilesInUse tiles(*op.panels, !takes_tiles || worker.idle() ? 0 : rows);
    int64_t items = 0;
    for (uint32_t i = 0; i < op.count; ++i) items += op.weights[i].groups();
    worker.divide(items, op.weights[0].piece(), [&](int64_t first_item, int64_t last_item) {
        int64_t first = 0;
        for (uint32_t i = 0; i < op.count; first += op.weights[i].groups(), ++i) {
            const Weight& weight = op.weights[i];
            const int64_t begin = std::max<int64_t>(first_item - first, 0);
            const int64_t end = std::min(last_item - first, weight.groups());
            if (begin >= end) continue;
            const tsr_tensor& out = *node.outputs[i];
            char* to = sdk::operand_data<char>(node, *run, node.input_count + i) + actual.begin * out.strides[1];
            const auto store = [&](int64_t r, int64_t group, const float* lanes) {
                store_lanes(reinterpret_cast<float*>(to + r * out.strides[1]), group, weight.n, lanes);
            };
            weight.kernels->multiply(*op.panels, weight.rows(node, *run), begin, end, rows_of(op.preparation[i]),
                                     scratch, Sink(store));
        }
    });
    return nullptr;
}

constexpr tsr_kernel kMatmul = cpu_kernel(TSR_OP_MATMUL, plan_matmul, prepare_matmul, release_matmul, run_matmul);
constexpr tsr_kernel kGroup = cpu_kernel(TSR_OP_MATMUL_GROUP, plan_group, prepare_group, release_group, run_group);
constexpr const tsr_kernel* kKernels[] = {&kMatmul, &kGroup};

}  // namespace

std::span<const tsr_kernel* const> matmul_kernels() noexcept {
    return kKernels;
}

}  // namespace tessera::x86
