// Attention kernels by shape: G operations a second of one worker's processor time (which other load disturbs least),
// or of several workers' wall time. Counted are two operations for every product of a score, a weighted value or an
// expansion that a causal mask leaves.
//   bench_attention [workers [part of a name]]
// One token is attended as between the layers of a model: what a run reads and works in has left the caches before it.
#include "tests/x86/attention_nodes.hpp"

#include <tessera/ops.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tessera;

enum class Variant { kPlain, kPrefix, kProjected };

struct Shape {
    const char* name;
    Variant variant;
    tsr_type type;
    int heads, kv_heads, dk, dv, latent;
    tsr_type weights;
    int position, rows;
};

constexpr int kUnprojected = 64;           // of a projected key
constexpr size_t kOthersBytes = 64 << 20;  // what a worker reads between two runs

constexpr Shape kShapes[] = {
    {"generation, 16 heads of 576/512, f16, 8192", Variant::kPrefix, TSR_TYPE_F16, 16, 1, 576, 512, 0, 0, 8191, 1},
    {"generation, 16 heads of 576/512, q8_0, 8192", Variant::kPrefix, TSR_TYPE_Q8_0, 16, 1, 576, 512, 0, 0, 8191, 1},
    {"generation, 16 heads of 576/512, f16, 4096", Variant::kPrefix, TSR_TYPE_F16, 16, 1, 576, 512, 0, 0, 4095, 1},
    {"generation, 16 heads of 576/512, q8_0, 4096", Variant::kPrefix, TSR_TYPE_Q8_0, 16, 1, 576, 512, 0, 0, 4095, 1},
    {"generation, 16 heads of 576/512, bf16, 4096", Variant::kPrefix, TSR_TYPE_BF16, 16, 1, 576, 512, 0, 0, 4095, 1},
    {"generation, 16 heads of 576/512, f32, 4096", Variant::kPrefix, TSR_TYPE_F32, 16, 1, 576, 512, 0, 0, 4095, 1},
    {"generation, 16 heads of 576/512, q8_0, 300", Variant::kPrefix, TSR_TYPE_Q8_0, 16, 1, 576, 512, 0, 0, 299, 1},
    {"generation, 128 heads of 576/512, f16, 4096", Variant::kPrefix, TSR_TYPE_F16, 128, 1, 576, 512, 0, 0, 4095, 1},
    {"prompt of 128, 16 heads of 576/512, f16", Variant::kPrefix, TSR_TYPE_F16, 16, 1, 576, 512, 0, 0, 0, 128},
    {"prompt of 512, projected by q4_0, f16", Variant::kProjected, TSR_TYPE_F16, 16, 1, 192, 128, 512, TSR_TYPE_Q4_0, 0,
     512},
    {"prompt of 512 at 4096, projected by q4_0, f16", Variant::kProjected, TSR_TYPE_F16, 16, 1, 192, 128, 512,
     TSR_TYPE_Q4_0, 4096, 512},
    {"prompt of 512 at 4096, projected by q4_0, q8_0", Variant::kProjected, TSR_TYPE_Q8_0, 16, 1, 192, 128, 512,
     TSR_TYPE_Q4_0, 4096, 512},
    {"prompt of 512 at 2048, 16 heads of 192/128, f16", Variant::kPlain, TSR_TYPE_F16, 16, 16, 192, 128, 0, 0, 2048,
     512},
    {"generation, 16 heads of 192/128, f16, 4096", Variant::kPlain, TSR_TYPE_F16, 16, 16, 192, 128, 0, 0, 4095, 1},
    {"generation, 32 heads over 8 of 128, f16, 4096", Variant::kPlain, TSR_TYPE_F16, 32, 8, 128, 128, 0, 0, 4095, 1},
    {"generation, 32 heads over 4 of 128, f16, 4096", Variant::kPlain, TSR_TYPE_F16, 32, 4, 128, 128, 0, 0, 4095, 1},
    {"generation, 32 heads over 8 of 128, q8_0, 4096", Variant::kPlain, TSR_TYPE_Q8_0, 32, 8, 128, 128, 0, 0, 4095, 1},
    {"generation, 96 heads over 8 of 128, f16, 4096", Variant::kPlain, TSR_TYPE_F16, 96, 8, 128, 128, 0, 0, 4095, 1},
    {"generation, 96 heads over 8 of 128, q8_0, 4096", Variant::kPlain, TSR_TYPE_Q8_0, 96, 8, 128, 128, 0, 0, 4095, 1},
    {"generation, 64 heads over 8 of 64, f16, 4096", Variant::kPlain, TSR_TYPE_F16, 64, 8, 64, 64, 0, 0, 4095, 1},
    {"generation, 64 heads over 8 of 64, f16, 127", Variant::kPlain, TSR_TYPE_F16, 64, 8, 64, 64, 0, 0, 127, 1},
    {"prompt of 512 at 2048, 32 heads over 8, f16", Variant::kPlain, TSR_TYPE_F16, 32, 8, 128, 128, 0, 0, 2048, 512},
};

double processor_seconds() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double wall_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void fill_rows(tests::Operand& operand, int64_t rows) {
    std::mt19937 random(1);
    std::vector<float> row(static_cast<size_t>(operand.tensor.dims[0]));
    for (int64_t i = 0; i < rows; ++i) {
        if (i < 64) tests::fill_normal(row.data(), row.size(), random);
        cpu::encode_row(operand.tensor.type, row.data(), row.size(), operand.data() + i * operand.tensor.strides[1]);
    }
}

double operations(const Shape& s) {
    double pairs = 0;
    for (int r = 0; r < s.rows; ++r) pairs += s.position + r + 1;
    double count = 2 * pairs * s.heads * (s.dk + s.dv);
    if (s.variant == Variant::kProjected) {
        count += 2.0 * (s.position + s.rows) * s.heads * s.latent * (s.dk - kUnprojected + s.dv);
    }
    return count;
}

// In pages of the canonical layout, or of the kernel's own if it has one.
void measure(const Shape& s, uint32_t workers, bool own_layout) {
    tests::NodeCase node(TSR_OP_FLASH_ATTENTION);
    const int pages = (s.position + s.rows + 63) / 64;
    const int64_t elements = s.variant == Variant::kProjected ? s.latent + kUnprojected : s.kv_heads * s.dk;
    fill_rows(node.add(true, TSR_TYPE_F32, {s.dk, s.heads, s.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS),
              s.heads * s.rows);
    fill_rows(node.add(true, s.type, {elements, 64, pages}, TSR_ROLE_CACHE), 64 * pages);
    if (s.variant == Variant::kPlain)
        fill_rows(node.add(true, s.type, {s.kv_heads * s.dv, 64, pages}, TSR_ROLE_CACHE), 64 * pages);
    else
        node.add_absent();
    auto& positions = node.add(true, TSR_TYPE_I32, {s.rows}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
    auto& sequences = node.add(true, TSR_TYPE_I32, {s.rows}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
    auto& table = node.add(true, TSR_TYPE_I32, {pages, 1}, TSR_ROLE_INPUT);
    for (int r = 0; r < s.rows; ++r) {
        positions.integers()[r] = s.position + r;
        sequences.integers()[r] = 0;
    }
    for (int p = 0; p < pages; ++p) table.integers()[p] = p;
    if (s.variant == Variant::kProjected) {
        const int projected = s.dk - kUnprojected;
        fill_rows(node.add(true, s.weights, {s.latent, projected, s.heads}, TSR_ROLE_WEIGHT), projected * s.heads);
        fill_rows(node.add(true, s.weights, {s.latent, s.dv, s.heads}, TSR_ROLE_WEIGHT), s.dv * s.heads);
    }
    node.add(false, TSR_TYPE_F32, {s.dv, s.heads, s.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    node.attribute("scale", 0.1);
    node.attribute("kv_heads", int64_t{s.kv_heads});

    const tsr_kernel& kernel = tests::kernel_of(TSR_OP_FLASH_ATTENTION);
    const tsr_device_info device = tests::device_of(workers);
    tsr_kernel_plan plan{};
    plan.struct_size = sizeof plan;
    sdk::check(kernel.plan(&kernel, &node.node(), &device, &plan));
    if (!plan.supported) {
        std::printf("%s: %s\n", s.name, plan.reason);
        return;
    }
    if (own_layout && !tests::pack_cache(node.input(1), plan.layouts[1])) return;
    void* state = nullptr;
    sdk::check(kernel.prepare(&kernel, &node.node(), &device, nullptr, &state));

    const tsr_range ranges[TSR_RANGE_COUNT] = {{0, s.rows}, {0, 0}, {0, 0}, {0, 0}};
    const double work = operations(s);
    const bool cold = s.rows == 1;
    const std::vector<char> others(cold ? kOthersBytes : 0, 1);
    const int repeats = cold ? 1 : std::max(1, static_cast<int>(0.004 * 150e9 / work));
    std::vector<double> seconds;
    node.run(workers, plan.workspace_bytes, ranges, [&](const tsr_run& run) {
        // All workers go through the same number of rounds.
        const int rounds = std::clamp(static_cast<int>(1.5 * 100e9 / (work * repeats)), 3, 100);
        for (int round = 0; round < rounds; ++round) {
            int64_t sum = 0;
            for (size_t i = 0; i < others.size(); i += 64) sum += others[i];
            if (sum < 0) std::abort();  // the reads are needed
            run.barrier(run.team, run.worker);
            const double start = workers == 1 ? processor_seconds() : wall_seconds();
            for (int i = 0; i < repeats; ++i) {
                sdk::check(kernel.run(&kernel, state, &run));
                if (workers > 1) run.barrier(run.team, run.worker);
            }
            const double end = workers == 1 ? processor_seconds() : wall_seconds();
            if (run.worker == 0) seconds.push_back((end - start) / repeats);
        }
    });
    kernel.release(&kernel, state);
    // A worker that was not running when a round began makes that round too short for another: no minimum.
    std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
    const double median = seconds[seconds.size() / 2];
    std::printf("%-50s %9.3f ms %7.1f G/s %6.1f MiB of workspace\n",
                (std::string(s.name) + (own_layout ? ", own layout" : "")).c_str(), median * 1e3, work / median / 1e9,
                static_cast<double>(plan.workspace_bytes) / 1048576);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    const int workers = argc > 1 ? std::clamp(std::atoi(argv[1]), 1, 64) : 1;
    for (const Shape& s : kShapes) {
        if (argc > 2 && std::string_view(s.name).find(argv[2]) == std::string_view::npos) continue;
        for (const bool own_layout : {false, true}) measure(s, static_cast<uint32_t>(workers), own_layout);
    }
}
