// The speed of ik_llama.cpp's products, for the table of bench/results/formats.md: a weight of 2048 x 2816 in each
// type that is named, as the file has it, times one row and times many. Links its library alone; to be run in turn with
// bench_matmul (TSR_BENCH), which gives Tessera the same shapes:
//
//   g++ -O2 -std=c++20 -I IK/ggml/include bench/peers/products.cpp -o products -L IK/build/ggml/src -lggml
//   export LD_LIBRARY_PATH=IK/build/ggml/src
//   ./products THREADS ROWS TYPE...        # ./products 2 256 q4_0 q4_K iq2_xs
//
// One line a type: GB/s of weights with one row, which come from a pool far above the caches; G multiply-adds a second
// with ROWS rows. Medians of seven.
#include <ggml.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int64_t kElements = 2048, kOutputs = 2816;
// Rows that are encoded, which takes some formats a second a row; a weight repeats them.
constexpr int64_t kEncoded = 64;
static_assert(kOutputs % kEncoded == 0);
constexpr size_t kPoolBytes = 384u << 20, kGraphNodes = 1024, kMostWeights = 96;
constexpr int kRounds = 7;

std::vector<float> normal(int64_t count, float deviation) {
    static std::mt19937 random(1);
    std::normal_distribution<float> distribution(0, deviation);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = distribution(random);
    return values;
}

// Median seconds of one product of `weight` and `rows` rows; `copies` of the weight are multiplied one after another.
double seconds(ggml_type type, const std::vector<char>& weight, int64_t rows, size_t copies, int threads) {
    const size_t outputs = static_cast<size_t>(rows * kOutputs) * sizeof(float);
    const ggml_init_params room{
        copies * (weight.size() + outputs) + static_cast<size_t>(rows * kElements) * 4 + (64u << 20), nullptr, false};
    ggml_context* context = ggml_init(room);
    ggml_tensor* x = ggml_new_tensor_2d(context, GGML_TYPE_F32, kElements, rows);
    const std::vector<float> values = normal(rows * kElements, 1);
    std::memcpy(x->data, values.data(), values.size() * sizeof(float));
    ggml_cgraph* graph = ggml_new_graph_custom(context, kGraphNodes, false);
    for (size_t i = 0; i < copies; ++i) {
        ggml_tensor* w = ggml_new_tensor_2d(context, type, kElements, kOutputs);
        std::memcpy(w->data, weight.data(), weight.size());
        ggml_build_forward_expand(graph, ggml_mul_mat(context, w, x));
    }
    std::vector<double> samples;
    for (int round = 0; round < kRounds; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        ggml_graph_compute_with_ctx(context, graph, threads);
        samples.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
                          static_cast<double>(copies));
    }
    ggml_free(context);
    std::ranges::nth_element(samples, samples.begin() + kRounds / 2);
    return samples[kRounds / 2];
}

void measure(ggml_type type, int64_t rows, int threads) {
    const std::vector<float> weights = normal(kElements * kEncoded, 1 / 45.0f);
    const std::vector<float> importance(kElements, 1.0f);
    const size_t encoded_bytes = ggml_row_size(type, kElements) * kEncoded;
    std::vector<char> encoded(encoded_bytes / kEncoded * kOutputs);
    ggml_quantize_chunk(type, weights.data(), encoded.data(), 0, kEncoded, kElements, importance.data(), nullptr);
    for (size_t at = encoded_bytes; at < encoded.size(); at += encoded_bytes)
        std::memcpy(&encoded[at], encoded.data(), encoded_bytes);
    const size_t pool = std::min(kPoolBytes / encoded.size(), kMostWeights);
    const double one = seconds(type, encoded, 1, pool, threads), many = seconds(type, encoded, rows, 3, threads);
    std::printf("%-12s %6.1f %6.1f\n", ggml_type_name(type), static_cast<double>(encoded.size()) / one / 1e9,
                static_cast<double>(kElements * kOutputs * rows) / many / 1e9);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    const int threads = argc > 3 ? std::atoi(argv[1]) : 0, rows = argc > 3 ? std::atoi(argv[2]) : 0;
    if (threads < 1 || rows < 1) {
        std::fprintf(stderr, "usage: products THREADS ROWS TYPE...\n");
        return 2;
    }
    for (int i = 3; i < argc; ++i) {
        int type = 0;
        while (type < GGML_TYPE_COUNT && (!ggml_type_name(static_cast<ggml_type>(type)) ||
                                          std::strcmp(ggml_type_name(static_cast<ggml_type>(type)), argv[i]) != 0))
            ++type;
        if (type == GGML_TYPE_COUNT) {
            std::fprintf(stderr, "%s: the library has no type of that name\n", argv[i]);
            return 1;
        }
        measure(static_cast<ggml_type>(type), rows, threads);
    }
}
