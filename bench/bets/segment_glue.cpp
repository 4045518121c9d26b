// Bet 2, second library: what lies between the products: norms, sums, a stand-in for attention, the router.
#include <tessera/plugin.h>

#include <cmath>
#include <cstdint>

namespace {

struct State {
    int64_t in;
    int64_t out;
};

int64_t row_count(const tsr_run* run) {
    return run->ranges[TSR_RANGE_ROWS].end;
}

// data: x [rows][in], y [rows][in]. One worker a row; with one row the others pass.
const tsr_status* run_norm(const tsr_kernel*, void* state, const tsr_run* run) {
    const State& s = *static_cast<State*>(state);
    for (int64_t r = run->worker; r < row_count(run); r += run->workers) {
        const float* x = static_cast<const float*>(run->data[0]) + r * s.in;
        float* y = static_cast<float*>(run->data[1]) + r * s.in;
        float parts[16] = {};
        for (int64_t i = 0; i < s.in; i += 16) {
            for (int j = 0; j < 16; ++j) parts[j] += x[i + j] * x[i + j];
        }
        float sum = 0;
        for (float p : parts) sum += p;
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(s.in) + 1e-6f);
        for (int64_t i = 0; i < s.in; ++i) y[i] = x[i] * scale;
    }
    return nullptr;
}

// data: a [rows][in], b [rows][in], y [rows][in]
const tsr_status* run_add(const tsr_kernel*, void* state, const tsr_run* run) {
    const State& s = *static_cast<State*>(state);
    const int64_t all = row_count(run) * s.in;
    const int64_t begin = all * run->worker / run->workers;
    const int64_t end = all * (run->worker + 1) / run->workers;
    const auto* a = static_cast<const float*>(run->data[0]);
    const auto* b = static_cast<const float*>(run->data[1]);
    auto* y = static_cast<float*>(run->data[2]);
    for (int64_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
    return nullptr;
}

// Reads `in` floats a row, writes `out` of them: stands where attention would. data: x [rows][in], y [rows][out]
const tsr_status* run_mix(const tsr_kernel*, void* state, const tsr_run* run) {
    const State& s = *static_cast<State*>(state);
    for (int64_t r = run->worker; r < row_count(run); r += run->workers) {
        const float* x = static_cast<const float*>(run->data[0]) + r * s.in;
        float* y = static_cast<float*>(run->data[1]) + r * s.out;
        for (int64_t i = 0; i < s.out; ++i) y[i] = 0.5f * x[i % s.in];
    }
    return nullptr;
}

// The router in f32: data: weight [out][in], x [rows][in], logits [rows][out]
const tsr_status* run_router(const tsr_kernel*, void* state, const tsr_run* run) {
    const State& s = *static_cast<State*>(state);
    const int64_t begin = s.out * run->worker / run->workers;
    const int64_t end = s.out * (run->worker + 1) / run->workers;
    const auto* w = static_cast<const float*>(run->data[0]);
    for (int64_t r = 0; r < row_count(run); ++r) {
        const float* x = static_cast<const float*>(run->data[1]) + r * s.in;
        float* y = static_cast<float*>(run->data[2]) + r * s.out;
        for (int64_t o = begin; o < end; ++o) {
            float parts[32] = {};
            for (int64_t i = 0; i < s.in; i += 32) {
                for (int j = 0; j < 32; ++j) parts[j] += w[o * s.in + i + j] * x[i + j];
            }
            float sum = 0;
            for (float p : parts) sum += p;
            y[o] = sum;
        }
    }
    return nullptr;
}

// data: logits [rows][in], ids [rows][out]: the `out` largest
const tsr_status* run_topk(const tsr_kernel*, void* state, const tsr_run* run) {
    const State& s = *static_cast<State*>(state);
    for (int64_t r = run->worker; r < row_count(run); r += run->workers) {
        const float* x = static_cast<const float*>(run->data[0]) + r * s.in;
        int32_t* ids = static_cast<int32_t*>(run->data[1]) + r * s.out;
        for (int64_t k = 0; k < s.out; ++k) {
            int32_t best = -1;
            for (int32_t i = 0; i < s.in; ++i) {
                bool taken = false;
                for (int64_t j = 0; j < k; ++j) taken |= ids[j] == i;
                if (!taken && (best < 0 || x[i] > x[best])) best = i;
            }
            ids[k] = best;
        }
    }
    return nullptr;
}

const tsr_status* plan(const tsr_kernel*, const tsr_node*, const tsr_device_info*, tsr_kernel_plan* plan) {
    plan->supported = 1;
    return nullptr;
}
const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info*, tsr_device*, void** state) {
    *state = new State{node->inputs[0]->dims[0], node->outputs[0]->dims[0]};
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

const tsr_kernel kNorm = make("norm", run_norm);
const tsr_kernel kAdd = make("add", run_add);
const tsr_kernel kMix = make("mix", run_mix);
const tsr_kernel kRouter = make("router", run_router);
const tsr_kernel kTopk = make("topk", run_topk);
const tsr_kernel* const kKernels[] = {&kNorm, &kAdd, &kMix, &kRouter, &kTopk};
const tsr_plugin kPlugin = [] {
    tsr_plugin p{};
    p.struct_size = sizeof(p);
    p.name = "bet_glue";
    p.kernels = kKernels;
    p.kernel_count = 5;
    return p;
}();

}  // namespace

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host*) {
    return &kPlugin;
}
