// Speed of a plugin's products for each weight format: one row (bytes of weights a second, from a pool of so many MiB),
// and a batch of rows (multiply-adds a second; up to 32 rows from that pool too), with a team of spinning threads as
// the runtime has it.
//
//     bench_matmul [threads] [rows] [format] [MiB]
#include "core/run/pieces.hpp"
#include "tests/random_rows.hpp"
#include "tests/x86/plugin_under_test.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/formats.hpp>
#include <tessera/ops.h>

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
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
    uint32_t piece(uint32_t worker, uint32_t count) {
        return pieces_.take(generation_.load(std::memory_order_relaxed), worker, workers_, count);
    }
    uint32_t workers() const { return workers_; }

  private:
    uint32_t workers_;
    tessera::Pieces pieces_{workers_};
    std::atomic<uint32_t> arrived_{0}, generation_{1};
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
    t.strides[1] = k / size.elements * size.bytes + size.prefix;
    t.strides[2] = t.strides[3] = t.strides[1] * n;
    t.range = range;
    return t;
}

double median(std::vector<double> v) {
    std::ranges::sort(v);
    return v[v.size() / 2];
}

struct Result {
    double seconds;           // median, of one matmul
    std::vector<float> x, y;  // of the last one
};

// A matmul of `rows` rows, over weights that follow each other in `pool`.
Result run_matmuls(Team& team, const tsr_layout& layout, int64_t k, int64_t n, int64_t rows, unsigned char* pool,
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
    const tsr_device_info device = tessera::tests::device_of(team.workers());
    const tsr_kernel& kernel = tessera::tests::kernel_of(TSR_OP_MATMUL);
    tsr_kernel_plan plan{};
    plan.struct_size = sizeof plan;
    tessera::sdk::check(kernel.plan(&kernel, &node, &device, &plan));
    if (!plan.supported) throw std::runtime_error(plan.reason);
    void* state = nullptr;
    tessera::sdk::check(kernel.prepare(&kernel, &node, &device, nullptr, &state));
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
                run.piece = [](void* t, uint32_t index, uint32_t count) {
                    return static_cast<Team*>(t)->piece(index, count);
                };
                kernel.run(&kernel, state, &run);
            });
        }
        times.push_back((now() - start) / static_cast<double>(matrices));
    }
    std::free(workspace);
    kernel.release(&kernel, state);
    return {median(times), std::move(xs), std::move(ys)};
}

// Relative L2 distance of one row's products to sums in double over the exact weights.
double error_of(tsr_type type, const std::vector<unsigned char>& weight, int64_t k, const Result& one) {
    const size_t row_bytes = tessera::cpu::format_bytes(type, static_cast<size_t>(k));
    std::vector<float> row(static_cast<size_t>(k));
    double difference = 0, norm = 0;
    for (size_t n = 0; n < one.y.size(); ++n) {
        tessera::cpu::decode_row(type, weight.data() + n * row_bytes, row.size(), row.data());
        double sum = 0;
        for (size_t i = 0; i < row.size(); ++i) sum += static_cast<double>(row[i]) * one.x[i];
        difference += (one.y[n] - sum) * (one.y[n] - sum);
        norm += sum * sum;
    }
    return std::sqrt(difference / norm);
}

}  // namespace

int main(int argc, char** argv) {
    const auto threads = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 2);
    const int64_t rows = argc > 2 ? std::atoi(argv[2]) : 256;
    constexpr int64_t kK = 2048, kN = 2816;
    // By default far above the last-level cache.
    const size_t pool_bytes = size_t{argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 384} << 20;
    Team team(threads);
    auto* pool = static_cast<unsigned char*>(
        mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(pool, pool_bytes, MADV_HUGEPAGE);
    std::printf(
        "%u threads, %lld x %lld; one row: GB/s of weights (packed, canonical); %lld rows: GMAC/s (packed, "
        "canonical); error: relative L2 of one row to f64\n",
        threads, static_cast<long long>(kK), static_cast<long long>(kN), static_cast<long long>(rows));
    for (const tsr_layout* layout : tessera::tests::layouts_of_plugin()) {
        if (layout->group_rows == TSR_PAGE_TOKENS) continue;  // of cache pages
        if (argc > 3 && std::string(layout->name).find(argv[3]) != 0) continue;
        const size_t bytes = tessera::cpu::format_bytes(layout->type, kK, kN);
        const size_t matrices = std::min<size_t>(pool_bytes / bytes, 96);
        if (matrices == 0) continue;
        // Random bits: codebooks are looked up all over.
        std::mt19937 random(7);
        std::vector<unsigned char> canonical(bytes);
        tessera::tests::fill_rows(layout->type, canonical.data(), kK, kN, 1 / std::sqrt(float{kK}), random);
        double gb[2], gmac[2], error = 0;
        for (const bool packed : {true, false}) {
            if (packed)
                layout->pack(layout, kK, kN / layout->group_rows, canonical.data(), pool);
            else
                std::memcpy(pool, canonical.data(), bytes);
            for (size_t m = 1; m < matrices; ++m) std::memcpy(pool + m * bytes, pool, bytes);
            const Result one = run_matmuls(team, *layout, kK, kN, 1, pool, matrices, packed, packed ? 7 : 2);
            const size_t used = rows > 32 ? std::min<size_t>(matrices, 3) : matrices;
            const Result many = run_matmuls(team, *layout, kK, kN, rows, pool, used, packed, packed ? 5 : 2);
            gb[!packed] = static_cast<double>(bytes) / one.seconds / 1e9;
            gmac[!packed] = static_cast<double>(kK * kN * rows) / many.seconds / 1e9;
            error = error_of(layout->type, canonical, kK, one);
        }
        std::printf("%-12s %6.1f %6.1f   %6.1f %6.1f   %.1e\n", layout->name, gb[0], gb[1], gmac[0], gmac[1], error);
        std::fflush(stdout);
    }
    munmap(pool, pool_bytes);
}
