// Bet 2: a made-up decode of DeepSeek-V2-Lite's shapes. Some 400 nodes, prepared once, are run by a persistent team of
// two threads with spin barriers, against a plain read of the bytes that they read. Then one step of 192 rows through
// the same prepared nodes.
//
//     bet_segment [steps] [GiB of weights at most]
#include <tessera/plugin.h>

#include <dlfcn.h>
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kWorkers = 2;
constexpr int kMaxRows = 192;
constexpr int kLayers = 27, kEmbd = 2048, kExperts = 64, kUsed = 6, kFf = 1408, kShared = 2816, kDense = 10944,
              kVocab = 102400;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Team {
    std::atomic<uint32_t> arrived{0};
    std::atomic<uint32_t> generation{0};
};

void barrier(void* team, uint32_t) {
    auto& t = *static_cast<Team*>(team);
    const uint32_t generation = t.generation.load(std::memory_order_acquire);
    if (t.arrived.fetch_add(1, std::memory_order_acq_rel) == kWorkers - 1) {
        t.arrived.store(0, std::memory_order_relaxed);
        t.generation.store(generation + 1, std::memory_order_release);
        return;
    }
    while (t.generation.load(std::memory_order_acquire) == generation) _mm_pause();
}

// Weights: one mapping, filled with valid blocks.
struct Pool {
    unsigned char* base;
    size_t size;
    size_t used = 0;
    explicit Pool(size_t bytes) : size(bytes) {
        base = static_cast<unsigned char*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (base == MAP_FAILED) throw std::runtime_error("cannot map the pool of weights");
        madvise(base, bytes, MADV_HUGEPAGE);
    }
    unsigned char* take(size_t bytes) {
        unsigned char* at = base + used;
        used += (bytes + 4095) / 4096 * 4096;
        if (used > size) throw std::runtime_error("the pool of weights is too small");
        return at;
    }
};

// Packed Q4_0 of a matrix [out][in]: groups of eight rows, 144 bytes for 32 elements of them.
unsigned char* quantised(Pool& pool, int64_t in, int64_t out) {
    const size_t units = static_cast<size_t>(in / 32 * (out / 8));
    unsigned char* at = pool.take(units * 144);
    static const std::vector<unsigned char> sample = [] {
        std::vector<unsigned char> bytes(144 * 7919);
        std::mt19937 random(7);
        for (auto& b : bytes) b = static_cast<unsigned char>(random());
        for (size_t u = 0; u < bytes.size(); u += 144) {
            for (int r = 0; r < 8; ++r) {
                const uint16_t d = static_cast<uint16_t>(0x1900 + random() % 512);  // about 0.0025: gain near one
                std::memcpy(&bytes[u + 2 * r], &d, 2);
            }
        }
        return bytes;
    }();
    for (size_t done = 0; done < units * 144; done += sample.size()) {
        std::memcpy(at + done, sample.data(), std::min(sample.size(), units * 144 - done));
    }
    return at;
}

struct Node {
    const tsr_kernel* kernel;
    void* state;
    std::vector<void*> data;
    // What of its weights a step of one row reads: matrices of `bytes`, from `base` on; by expert where ids are given.
    std::vector<std::pair<const unsigned char*, size_t>> weights;
    const int32_t* ids = nullptr;
    size_t expert_bytes = 0;
};

struct Segment {
    std::vector<Node> nodes;
    size_t workspace_bytes = 0;
    void* workspace = nullptr;
    std::vector<const tsr_plugin*> plugins;

    void load(const char* path) {
        void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) throw std::runtime_error(dlerror());
        auto query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY));
        plugins.push_back(query(nullptr));
    }
    Node& add(const std::string& op, std::vector<int64_t> first_dims, int64_t out, std::vector<void*> data) {
        for (const tsr_plugin* plugin : plugins) {
            for (uint32_t i = 0; i < plugin->kernel_count; ++i) {
                const tsr_kernel* kernel = plugin->kernels[i];
                if (op != kernel->op) continue;
                tsr_tensor in{}, result{};
                in.rank = static_cast<uint32_t>(first_dims.size());
                for (size_t d = 0; d < first_dims.size(); ++d) in.dims[d] = first_dims[d];
                result.rank = 2;
                result.dims[0] = out;
                result.dims[1] = kMaxRows;
                const tsr_tensor* inputs[] = {&in};
                const tsr_tensor* outputs[] = {&result};
                tsr_node node{};
                node.op = kernel->op;
                node.inputs = inputs;
                node.input_count = 1;
                node.outputs = outputs;
                node.output_count = 1;
                tsr_kernel_plan plan{};
                kernel->plan(kernel, &node, nullptr, &plan);
                workspace_bytes = std::max<size_t>(workspace_bytes, plan.workspace_bytes);
                Node n{kernel, nullptr, std::move(data), {}, nullptr, 0};
                kernel->prepare(kernel, &node, nullptr, &n.state);
                nodes.push_back(std::move(n));
                return nodes.back();
            }
        }
        throw std::runtime_error("no kernel for " + op);
    }
    void run(const tsr_range* ranges, uint32_t worker, Team& team) const {
        tsr_run r{};
        r.struct_size = sizeof(r);
        r.ranges = ranges;
        r.workspace = workspace;
        r.worker = worker;
        r.workers = kWorkers;
        r.team = &team;
        r.barrier = barrier;
        for (const Node& node : nodes) {
            r.data = node.data.data();
            node.kernel->run(node.kernel, node.state, &r);
            barrier(&team, worker);
        }
    }
};

uint64_t read_plainly(const unsigned char* p, size_t bytes) {
    __m256i sums[8] = {};
    size_t i = 0;
    for (; i + 256 <= bytes; i += 256) {
        for (int l = 0; l < 4; ++l) _mm_prefetch(reinterpret_cast<const char*>(p + i + 2048 + 64 * l), _MM_HINT_T0);
        for (int l = 0; l < 8; ++l) {
            sums[l] = _mm256_add_epi64(sums[l], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + i + 32 * l)));
        }
    }
    for (int l = 1; l < 8; ++l) sums[0] = _mm256_add_epi64(sums[0], sums[l]);
    return static_cast<uint64_t>(_mm256_extract_epi64(sums[0], 0));
}

double median(std::vector<double> v) {
    std::ranges::sort(v);
    return v[v.size() / 2];
}

int run(int steps, double gib) {
    Segment segment;
    segment.load("./libbet_matmul.so");
    segment.load("./libbet_glue.so");
    Pool pool(static_cast<size_t>(gib * (1ull << 30)));
    std::vector<std::unique_ptr<float[]>> buffers;
    auto floats = [&](size_t n) {
        buffers.push_back(std::make_unique<float[]>(n));
        return buffers.back().get();
    };
    float* hidden = floats(kMaxRows * kEmbd);
    float* normed = floats(kMaxRows * kEmbd);
    float* q = floats(kMaxRows * 3072);
    float* kv = floats(kMaxRows * 576);
    float* kv_in = floats(kMaxRows * 512);
    float* kv_b = floats(kMaxRows * 4096);
    float* attended = floats(kMaxRows * kEmbd);
    float* projected = floats(kMaxRows * kEmbd);
    float* logits = floats(kMaxRows * kExperts);
    float* h = floats(static_cast<size_t>(kMaxRows) * std::max(kUsed * kFf, kDense));
    float* routed = floats(kMaxRows * kEmbd);
    float* shared = floats(kMaxRows * kEmbd);
    float* out = floats(static_cast<size_t>(kMaxRows) * kVocab);
    auto* ids = reinterpret_cast<int32_t*>(floats(kMaxRows * kUsed));
    auto* dense_ids = reinterpret_cast<int32_t*>(floats(1));
    dense_ids[0] = -1;
    std::mt19937 random(3);
    std::normal_distribution<float> normal;

    auto matmul = [&](int64_t in, int64_t rows, float* x, float* y) {
        unsigned char* w = quantised(pool, in, rows);
        segment.add("matmul", {in, rows}, rows, {w, x, y}).weights = {{w, in * rows / 32 * 18}};
    };
    const double fill = now();
    for (int layer = 0; layer < kLayers; ++layer) {
        segment.add("norm", {kEmbd}, kEmbd, {hidden, normed});
        matmul(kEmbd, 3072, normed, q);
        matmul(kEmbd, 576, normed, kv);
        segment.add("mix", {576}, 512, {kv, kv_in});
        matmul(512, 4096, kv_in, kv_b);
        segment.add("mix", {3072}, kEmbd, {q, attended});
        matmul(kEmbd, kEmbd, attended, projected);
        segment.add("add", {kEmbd}, kEmbd, {hidden, projected, hidden});
        segment.add("norm", {kEmbd}, kEmbd, {hidden, normed});
        auto dense_ffn = [&](int64_t ff, float* y) {
            unsigned char* gate = quantised(pool, kEmbd, ff);
            unsigned char* up = quantised(pool, kEmbd, ff);
            segment.add("gate_up", {kEmbd, ff}, kEmbd, {gate, up, normed, dense_ids, h}).weights = {
                {gate, kEmbd * ff / 32 * 18}, {up, kEmbd * ff / 32 * 18}};
            matmul(ff, kEmbd, h, y);
        };
        if (layer == 0) {
            dense_ffn(kDense, routed);
            segment.add("add", {kEmbd}, kEmbd, {hidden, routed, hidden});
            continue;
        }
        auto* router = reinterpret_cast<float*>(pool.take(kEmbd * kExperts * 4));
        for (int i = 0; i < kEmbd * kExperts; ++i) router[i] = normal(random);
        Node& node = segment.add("router", {kEmbd}, kExperts, {router, normed, logits});
        node.weights = {{reinterpret_cast<unsigned char*>(router), kEmbd * kExperts * 4}};
        segment.add("topk", {kExperts}, kUsed, {logits, ids});
        const size_t expert = static_cast<size_t>(kEmbd) * kFf / 32 * 18;
        unsigned char* gate = quantised(pool, kEmbd, kFf * kExperts);
        unsigned char* up = quantised(pool, kEmbd, kFf * kExperts);
        unsigned char* down = quantised(pool, kFf, kEmbd * kExperts);
        Node& gate_up = segment.add("gate_up", {kEmbd, kFf, kExperts}, kEmbd, {gate, up, normed, ids, h});
        gate_up.weights = {{gate, expert}, {up, expert}};
        gate_up.ids = ids;
        Node& down_node = segment.add("down", {kFf, kEmbd, kExperts}, kEmbd, {down, h, ids, routed});
        down_node.weights = {{down, expert}};
        down_node.ids = ids;
        dense_ffn(kShared, shared);
        segment.add("add", {kEmbd}, kEmbd, {hidden, routed, hidden});
        segment.add("add", {kEmbd}, kEmbd, {hidden, shared, hidden});
    }
    segment.add("norm", {kEmbd}, kEmbd, {hidden, normed});
    matmul(kEmbd, kVocab, normed, out);
    segment.workspace = std::aligned_alloc(64, (segment.workspace_bytes + 63) / 64 * 64);
    std::memset(segment.workspace, 0, segment.workspace_bytes);
    std::printf("%zu nodes, %.2f GiB of weights filled in %.1f s, workspace %.1f MiB\n", segment.nodes.size(),
                static_cast<double>(pool.used) / (1 << 30), now() - fill,
                static_cast<double>(segment.workspace_bytes) / (1 << 20));

    // What a plain read reads: the matrices of a step, with other experts of the same number.
    std::vector<std::pair<const unsigned char*, size_t>> pieces;
    Team team;
    tsr_range ranges[TSR_RANGE_COUNT] = {};
    enum Command { kStep, kRead, kStop };
    std::atomic<int> command{kStep};
    uint64_t sink[kWorkers * 16] = {};
    auto work = [&](uint32_t worker, int what) {
        if (what == kStep) segment.run(ranges, worker, team);
        if (what == kRead) {
            uint64_t sum = 0;
            for (const auto& [base, bytes] : pieces) {
                const size_t half = bytes / 2 / 64 * 64;
                sum += worker == 0 ? read_plainly(base, half) : read_plainly(base + half, bytes - half);
            }
            sink[worker * 16] += sum;
        }
        barrier(&team, worker);
    };
    std::thread second([&] {
        for (;;) {
            barrier(&team, 1);
            const int what = command.load();
            if (what == kStop) return;
            work(1, what);
        }
    });
    auto together = [&](int what) {
        command.store(what);
        barrier(&team, 0);
        if (what != kStop) work(0, what);
    };
    auto new_row = [&](float* row) {
        for (int i = 0; i < kEmbd; ++i) row[i] = normal(random);
    };

    // One row: a step, then a plain read of as many bytes, in turn.
    ranges[TSR_RANGE_ROWS] = {0, 1};
    std::vector<double> step_seconds, read_seconds;
    size_t bytes_a_step = 0;
    for (int i = 0; i < steps + 2; ++i) {
        new_row(hidden);
        double t = now();
        together(kStep);
        if (i >= 2) step_seconds.push_back(now() - t);
        pieces.clear();
        bytes_a_step = 0;
        for (const Node& node : segment.nodes) {
            int32_t any[kUsed];
            for (int32_t& e : any) e = static_cast<int32_t>(random() % kExperts);
            for (const auto& [base, bytes] : node.weights) {
                if (!node.ids)
                    pieces.emplace_back(base, bytes);
                else
                    for (int32_t e : any) pieces.emplace_back(base + e * bytes, bytes);
            }
        }
        for (const auto& piece : pieces) bytes_a_step += piece.second;
        t = now();
        together(kRead);
        if (i >= 2) read_seconds.push_back(now() - t);
    }
    const double gb = static_cast<double>(bytes_a_step) / 1e9;
    const double step = median(step_seconds), read = median(read_seconds);
    std::printf(
        "one row: %.3f GB a step; step %.1f ms (%.1f GB/s), plain read %.1f ms (%.1f GB/s), ratio of medians %.3f\n",
        gb, step * 1e3, gb / step, read * 1e3, gb / read, read / step);
    std::printf("         best step %.1f ms, best read %.1f ms\n", std::ranges::min(step_seconds) * 1e3,
                std::ranges::min(read_seconds) * 1e3);

    // 192 rows through the same nodes; then the first and the last of them alone. The same bits are expected.
    std::vector<float> rows(static_cast<size_t>(kMaxRows) * kEmbd);
    for (int r = 0; r < kMaxRows; ++r) new_row(rows.data() + r * kEmbd);
    std::memcpy(hidden, rows.data(), rows.size() * 4);
    ranges[TSR_RANGE_ROWS] = {0, kMaxRows};
    double t = now();
    together(kStep);
    const double prompt = now() - t;
    std::vector<float> first(out, out + kVocab),
        last(out + static_cast<size_t>(kMaxRows - 1) * kVocab, out + static_cast<size_t>(kMaxRows) * kVocab);
    ranges[TSR_RANGE_ROWS] = {0, 1};
    std::memcpy(hidden, rows.data(), kEmbd * 4);
    together(kStep);
    const bool same_first = std::memcmp(first.data(), out, kVocab * 4) == 0;
    std::memcpy(hidden, rows.data() + (kMaxRows - 1) * kEmbd, kEmbd * 4);
    together(kStep);
    const bool same_last = std::memcmp(last.data(), out, kVocab * 4) == 0;
    const double macs = 2.45e9 * kMaxRows;
    std::printf(
        "%d rows: %.2f s, %.1f rows/s, %.0f GMAC/s; the same bits as alone: first row %s, last row %s; finite: %s\n",
        kMaxRows, prompt, kMaxRows / prompt, macs / prompt / 1e9, same_first ? "yes" : "NO", same_last ? "yes" : "NO",
        std::isfinite(first[0]) ? "yes" : "NO");
    together(kStop);
    second.join();
    return same_first && same_last ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc > 1 ? std::atoi(argv[1]) : 30, argc > 2 ? std::atof(argv[2]) : 8.6);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "bet_segment: %s\n", e.what());
        return 1;
    }
}
