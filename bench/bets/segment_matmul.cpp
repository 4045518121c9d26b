// Bet 2, first library: the products. Q4_0 weights packed in groups of eight rows, reached through the project's kernel
// table. Operands: weights first, then activations; every row count comes from tsr_run at run time.
#include <tessera/cpu/isa/avx2.hpp>
#include <tessera/cpu/matmul/packed.hpp>
#include <tessera/cpu/matmul/rows.hpp>
#include <tessera/plugin.h>

#include <cmath>
#include <cstring>

namespace {

using namespace tessera::cpu;
using Isa = isa::Avx2;
using Format = WeightQ4_0<Isa>;
using Scratch = RowsScratch<Isa, Format>;
constexpr ActivationKind kKind{1, 8};
constexpr int kExperts = 64;
constexpr int kUsed = 6;

struct State {
    int64_t in;
    int64_t out;
    int64_t max_rows;
};

size_t align64(size_t n) {
    return (n + 63) / 64 * 64;
}

// Workspace: one scratch a worker (two at most here), then quantised rows.
Scratch* scratch_of(const tsr_run* run) {
    return static_cast<Scratch*>(run->workspace) + run->worker;
}
unsigned char* rows_of(const tsr_run* run) {
    return static_cast<unsigned char*>(run->workspace) + 2 * sizeof(Scratch);
}

int64_t row_count(const tsr_run* run) {
    return run->ranges[TSR_RANGE_ROWS].end;
}

WeightRows weight_rows(const void* data, const State& s) {
    return {static_cast<const unsigned char*>(data), s.in / 32 * static_cast<int64_t>(sizeof(BlockQ4_0)), s.out, true};
}

// Quantises all rows, split over the workers by rows, or by blocks where rows are few.
template <class RowAt>
void quantize_all(const tsr_run* run, const ActivationRows& to, RowAt&& row_at) {
    const int64_t blocks = to.elements / 32;
    if (to.rows >= 4 * run->workers) {
        const Share mine = share(to.rows, run->worker, run->workers);
        for (int64_t r = mine.begin; r < mine.end; ++r)
            quantize_into<Isa, 1>(to, r, row_at(r), kKind.centre, 0, blocks);
    } else {
        const Share mine = share(blocks, run->worker, run->workers);
        for (int64_t r = 0; r < to.rows; ++r)
            quantize_into<Isa, 1>(to, r, row_at(r) + 32 * mine.begin, kKind.centre, mine.begin, mine.end);
    }
}

// data: weight, x [rows][in], y [rows][out]
const tsr_status* run_matmul(const tsr_kernel*, void* state, const tsr_run* run) {
    const State& s = *static_cast<State*>(state);
    const auto* x = static_cast<const float*>(run->data[1]);
    auto* y = static_cast<float*>(run->data[2]);
    const ActivationRows rows{rows_of(run), row_count(run), s.in};
    quantize_all(run, rows, [&](int64_t r) { return x + r * s.in; });
    run->barrier(run->team, run->worker);
    const Share mine = share(s.out / 8, run->worker, run->workers);
    multiply_rows<Isa, Format>(
        weight_rows(run->data[0], s), mine.begin, mine.end, rows, scratch_of(run),
        [&](int64_t r, int64_t g, const float* v) { std::memcpy(y + r * s.out + g * 8, v, 32); });
    return nullptr;
}

// Experts of a batch grouped by weight: places [first[e], first[e + 1]) belong to expert e.
struct Grouping {
    int32_t first[kExperts + 1];
};
Grouping group(const int32_t* ids, int64_t count, int32_t* places) {
    Grouping g{};
    for (int64_t i = 0; i < count; ++i) ++g.first[ids[i] + 1];
    for (int e = 0; e < kExperts; ++e) g.first[e + 1] += g.first[e];
    int32_t at[kExperts];
    std::memcpy(at, g.first, sizeof(at));
    for (int64_t i = 0; i < count; ++i) places[at[ids[i]]++] = static_cast<int32_t>(i);
    return g;
}

float silu(float x) {
    return x / (1.0f + std::exp(-x));
}

// data: gate weights, up weights, x [rows][in], ids [rows][kUsed] (ids[0] < 0: one dense matrix), h [rows * kUsed][out]
const tsr_status* run_gate_up(const tsr_kernel*, void* state, const tsr_run* run) {
    const State& s = *static_cast<State*>(state);
    const auto* gate = static_cast<const Format::Unit*>(run->data[0]);
    const auto* up = static_cast<const Format::Unit*>(run->data[1]);
    const auto* x = static_cast<const float*>(run->data[2]);
    const auto* ids = static_cast<const int32_t*>(run->data[3]);
    auto* h = static_cast<float*>(run->data[4]);
    const bool dense = ids[0] < 0;
    const int64_t used = dense ? 1 : kUsed;
    const int64_t places = row_count(run) * used;
    // The grouping is small: every worker makes its own and none waits.
    static thread_local int32_t order[512 * kUsed];
    Grouping g{};
    if (dense) {
        for (int32_t i = 0; i < places; ++i) order[i] = i;
        g.first[1] = static_cast<int32_t>(places);
    } else {
        g = group(ids, places, order);
    }
    const int experts = dense ? 1 : kExperts;
    const size_t row_bytes = activation_row_bytes(kKind, s.in);
    for (int e = 0; e < experts; ++e) {
        const ActivationRows rows{rows_of(run) + g.first[e] * row_bytes, g.first[e + 1] - g.first[e], s.in};
        if (rows.rows) quantize_all(run, rows, [&](int64_t r) { return x + order[g.first[e] + r] / used * s.in; });
    }
    run->barrier(run->team, run->worker);
    const int64_t groups = s.out / 8;
    const int64_t weight_units = groups * (s.in / 32);
    const Share mine = share(groups, run->worker, run->workers);
    for (int e = 0; e < experts; ++e) {
        const ActivationRows rows{rows_of(run) + g.first[e] * row_bytes, g.first[e + 1] - g.first[e], s.in};
        if (!rows.rows) continue;
        const int32_t* place = order + g.first[e];
        // A few groups of the gate, then the same of up: the results are still near when they meet.
        for (int64_t at = mine.begin; at < mine.end; at += 2 * kPanelGroups) {
            const int64_t end = std::min(at + 2 * kPanelGroups, mine.end);
            multiply_rows<Isa, Format>(
                weight_rows(gate + e * weight_units, s), at, end, rows, scratch_of(run),
                [&](int64_t r, int64_t i, const float* v) { std::memcpy(h + place[r] * s.out + i * 8, v, 32); });
            multiply_rows<Isa, Format>(weight_rows(up + e * weight_units, s), at, end, rows, scratch_of(run),
                                       [&](int64_t r, int64_t i, const float* v) {
                                           float* to = h + place[r] * s.out + i * 8;
                                           for (int l = 0; l < 8; ++l) to[l] = silu(to[l]) * v[l];
                                       });
        }
    }
    return nullptr;
}

// data: down weights, h [rows * kUsed][in], ids, y [rows][out]
const tsr_status* run_down(const tsr_kernel*, void* state, const tsr_run* run) {
    const State& s = *static_cast<State*>(state);
    const auto* down = static_cast<const Format::Unit*>(run->data[0]);
    const auto* h = static_cast<const float*>(run->data[1]);
    const auto* ids = static_cast<const int32_t*>(run->data[2]);
    auto* y = static_cast<float*>(run->data[3]);
    const int64_t places = row_count(run) * kUsed;
    static thread_local int32_t order[512 * kUsed];
    const Grouping g = group(ids, places, order);
    const size_t row_bytes = activation_row_bytes(kKind, s.in);
    for (int e = 0; e < kExperts; ++e) {
        const ActivationRows rows{rows_of(run) + g.first[e] * row_bytes, g.first[e + 1] - g.first[e], s.in};
        if (rows.rows) quantize_all(run, rows, [&](int64_t r) { return h + order[g.first[e] + r] * s.in; });
    }
    run->barrier(run->team, run->worker);
    const int64_t groups = s.out / 8;
    const Share mine = share(groups, run->worker, run->workers);
    for (int64_t r = 0; r < row_count(run); ++r) {
        std::memset(y + r * s.out + mine.begin * 8, 0, static_cast<size_t>(mine.end - mine.begin) * 32);
    }
    for (int e = 0; e < kExperts; ++e) {
        const ActivationRows rows{rows_of(run) + g.first[e] * row_bytes, g.first[e + 1] - g.first[e], s.in};
        if (!rows.rows) continue;
        multiply_rows<Isa, Format>(
            weight_rows(down + e * groups * (s.in / 32), s), mine.begin, mine.end, rows, scratch_of(run),
            [&](int64_t r, int64_t i, const float* v) {
                float* to = y + order[g.first[e] + r] / kUsed * s.out + i * 8;
                // Said with the policy's words: left to the compiler, one kernel's copy of this
                // was fused and the other's was not, and rows differed in their last bit.
                Isa::store_floats(to, Isa::fma(Isa::load_floats(v), Isa::splat(1.0f / kUsed), Isa::load_floats(to)));
            });
    }
    return nullptr;
}

const tsr_status* plan(const tsr_kernel*, const tsr_node* node, const tsr_device_info*, tsr_kernel_plan* plan) {
    const tsr_tensor& weight = *node->inputs[0];
    const int64_t rows = node->outputs[0]->dims[1] * (weight.rank == 3 ? kUsed : 1);
    plan->supported = 1;
    plan->workspace_bytes = 2 * sizeof(Scratch) + align64(rows * activation_row_bytes(kKind, weight.dims[0]));
    return nullptr;
}
const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info*, tsr_device*, void** state) {
    const tsr_tensor& weight = *node->inputs[0];
    *state = new State{weight.dims[0], weight.dims[1], node->outputs[0]->dims[1]};
    return nullptr;
}
void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

constexpr tsr_kernel make(const char* name, decltype(tsr_kernel::run) run) {
    tsr_kernel k{};
    k.struct_size = sizeof(k);
    k.name = name;
    k.op = name;
    k.device_kind = "cpu";
    k.plan = plan;
    k.prepare = prepare;
    k.release = release;
    k.run = run;
    return k;
}

const tsr_kernel kMatmul = make("matmul", run_matmul);
const tsr_kernel kGateUp = make("gate_up", run_gate_up);
const tsr_kernel kDown = make("down", run_down);
const tsr_kernel* const kKernels[] = {&kMatmul, &kGateUp, &kDown};
const tsr_plugin kPlugin = [] {
    tsr_plugin p{};
    p.struct_size = sizeof(p);
    p.name = "bet_matmul";
    p.kernels = kKernels;
    p.kernel_count = 3;
    return p;
}();

}  // namespace

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host*) {
    return &kPlugin;
}
