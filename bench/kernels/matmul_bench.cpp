// Speed of the AVX2 products for each weight format: one row (bytes of weights a second), and a batch of rows
// (multiply-adds a second), with a team of spinning threads as the runtime has it.
//
//     bench_matmul [threads] [rows] [format]
#include "plugins/cpu_avx2/layouts/layouts.hpp"
#include "plugins/cpu_avx2/matmul/matmul.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/formats/formats.hpp>
#include <tessera/ops.h>

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Threads that spin from job to job.
class Team {
  public:
    explicit Team(uint32_t workers) : workers_(workers) {
        for (uint32_t w = 1; w < workers; ++w) {
            threads_.emplace_back([this, w] {
                for (;;) {
                    barrier(w);
                    if (!job_) return;
                    job_(w);
                    barrier(w);
                }
            });
        }
    }
    ~Team() {
        job_ = nullptr;
        barrier(0);
        for (auto& t : threads_) t.join();
    }
    void run(std::function<void(uint32_t)> job) {
        job_ = std::move(job);
        barrier(0);
        job_(0);
        barrier(0);
    }
    void barrier(uint32_t) {
        const uint32_t generation = generation_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) == workers_ - 1) {
            arrived_.store(0, std::memory_order_relaxed);
            generation_.store(generation + 1, std::memory_order_release);
            return;
        }
        while (generation_.load(std::memory_order_acquire) == generation) _mm_pause();
    }
    uint32_t workers() const { return workers_; }

  private:
    uint32_t workers_;
    std::atomic<uint32_t> arrived_{0}, generation_{0};
    std::function<void(uint32_t)> job_;
    std::vector<std::thread> threads_;
};

tsr_tensor tensor(tsr_type type, int64_t k, int64_t n, uint32_t role, int32_t range) {
    tsr_tensor t{};
    t.struct_size = sizeof t;
    t.type = type;
    t.role = role;
    t.rank = 2;
    t.dims[0] = k, t.dims[1] = n, t.dims[2] = t.dims[3] = 1;
    const tessera::cpu::FormatSize size = tessera::cpu::format_size(type);
    t.strides[0] = size.bytes;
    t.strides[1] = k / size.elements * size.bytes;
    t.strides[2] = t.strides[3] = t.strides[1] * n;
    t.range = range;
    return t;
}

double median(std::vector<double> v) {
    std::ranges::sort(v);
    return v[v.size() / 2];
}

// Median seconds of a matmul of `rows` rows, over weights that follow each other in `pool`.
double seconds(Team& team, const tsr_layout& layout, int64_t k, int64_t n, int64_t rows, unsigned char* pool,
               size_t matrices, bool packed, int rounds) {
    tsr_tensor x = tensor(TSR_TYPE_F32, k, rows, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    tsr_tensor w = tensor(layout.type, k, n, TSR_ROLE_WEIGHT, TSR_RANGE_FIXED);
    tsr_tensor y = tensor(TSR_TYPE_F32, n, rows, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    if (packed) w.layout = layout.name;
    const tsr_tensor* inputs[] = {&x, &w};
    const tsr_tensor* outputs[] = {&y};
    tsr_node node{};
    node.struct_size = sizeof node;
    node.op = TSR_OP_MATMUL;
    node.inputs = inputs, node.input_count = 2;
    node.outputs = outputs, node.output_count = 1;
    tsr_device_info device{};
    device.struct_size = sizeof device;
    device.threads = team.workers();
    const tsr_kernel& kernel = *tessera::cpu_avx2::matmul_kernels()[0];
    tsr_kernel_plan plan{};
    plan.struct_size = sizeof plan;
    tessera::sdk::check(kernel.plan(&kernel, &node, &device, &plan));
    if (!plan.supported) throw std::runtime_error(plan.reason);
    void* state = nullptr;
    tessera::sdk::check(kernel.prepare(&kernel, &node, &device, &state));
    std::vector<float> xs(static_cast<size_t>(k * rows)), ys(static_cast<size_t>(n * rows));
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& v : xs) v = normal(random);
    auto* workspace = static_cast<unsigned char*>(std::aligned_alloc(64, (plan.workspace_bytes + 63) / 64 * 64));
    tsr_range ranges[TSR_RANGE_COUNT] = {};
    ranges[TSR_RANGE_ROWS] = {0, static_cast<int32_t>(rows)};
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
        const double start = now();
        for (size_t m = 0; m < matrices; ++m) {
            void* data[] = {xs.data(), pool + m * static_cast<size_t>(w.strides[2]), ys.data()};
            team.run([&](uint32_t worker) {
                tsr_run run{};
                run.struct_size = sizeof run;
                run.data = data;
                run.ranges = ranges;
                run.workspace = workspace;
                run.worker = worker;
                run.workers = team.workers();
                run.team = &team;
                run.barrier = [](void* t, uint32_t index) { static_cast<Team*>(t)->barrier(index); };
                kernel.run(&kernel, state, &run);
            });
        }
        times.push_back((now() - start) / static_cast<double>(matrices));
    }
    std::free(workspace);
    kernel.release(&kernel, state);
    return median(times);
}

}  // namespace

int main(int argc, char** argv) {
    const auto threads = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 2);
    const int64_t rows = argc > 2 ? std::atoi(argv[2]) : 256;
    constexpr int64_t kK = 2048, kN = 2816;
    constexpr size_t kPool = size_t{384} << 20;  // far above the last-level cache
    Team team(threads);
    auto* pool =
        static_cast<unsigned char*>(mmap(nullptr, kPool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(pool, kPool, MADV_HUGEPAGE);
    std::printf(
        "%u threads, %lld x %lld; one row: GB/s of weights (packed, canonical); %lld rows: GMAC/s (packed, "
        "canonical)\n",
        threads, static_cast<long long>(kK), static_cast<long long>(kN), static_cast<long long>(rows));
    for (const tsr_layout* layout : tessera::cpu_avx2::weight_layouts()) {
        if (argc > 3 && std::string(layout->name).find(argv[3]) != 0) continue;
        const size_t bytes = tessera::cpu::format_bytes(layout->type, kK * kN);
        const size_t matrices = std::min<size_t>(kPool / bytes, 96);
        // Small scales, so that nothing is infinite: what the codes are does not matter for speed.
        std::memset(pool, 0x21, matrices * bytes);
        double gb[2], gmac[2];
        for (const bool packed : {true, false}) {
            gb[!packed] = static_cast<double>(bytes) /
                          seconds(team, *layout, kK, kN, 1, pool, matrices, packed, packed ? 7 : 2) / 1e9;
            gmac[!packed] = static_cast<double>(kK * kN * rows) /
                            seconds(team, *layout, kK, kN, rows, pool, 3, packed, packed ? 5 : 2) / 1e9;
        }
        std::printf("%-10s %6.1f %6.1f   %6.1f %6.1f\n", layout->name, gb[0], gb[1], gmac[0], gmac[1]);
        std::fflush(stdout);
    }
    munmap(pool, kPool);
}
