#include "topics.hpp"

#include <algorithm>
#include <array>

namespace tessera::test {
namespace {

std::string dimensions(int64_t k, int64_t n) {
    return std::to_string(k) + " to " + std::to_string(n);
}

// What the product is bounded by, at many rows: by the plugin's instructions for int8 or f16.
const char* unit_of(const Bench& bench, const Format& format) {
    const bool tensor_cores = bench.scale().tensor_cores;
    if (format.type == TSR_TYPE_F16 || format.type == TSR_TYPE_BF16) return tensor_cores ? "f16" : "f32";
    return tensor_cores ? "s8" : bench.info().compute_capability >= 610 ? "dp4a" : "f32";
}

void product(Bench& bench, const Format& format, int64_t k, int64_t n, int64_t rows) {
    constexpr int64_t kFew = 8;
    const bool few = rows <= kFew;
    Described node(TSR_OP_MATMUL);
    node.activation({k, rows});
    node.weight(format.type, {k, n});
    node.output({n, rows});
    Bench::Row row{"product", dimensions(k, n), format.name, rows};
    row.bytes = static_cast<double>(row_bytes_of(format.type, k) * n + 4 * (k + n) * rows);
    row.operations = 2.0 * static_cast<double>(k) * static_cast<double>(n) * static_cast<double>(rows);
    row.unit = few ? "read" : unit_of(bench, format);
    bench.report(row, node, 1, Depth::kEmpty);
}

}  // namespace

const std::vector<Format>& common_formats() {
    static const std::vector<Format> kFormats = {
        {TSR_TYPE_Q4_0, "q4_0"},       {TSR_TYPE_Q8_0, "q8_0"},     {TSR_TYPE_Q4_K, "q4_K"},
        {TSR_TYPE_Q6_K, "q6_K"},       {TSR_TYPE_IQ4_XS, "iq4_xs"}, {TSR_TYPE_F16, "f16"},
        {TSR_TYPE_BF16, "bf16"},       {TSR_TYPE_Q5_K, "q5_K"},     {TSR_TYPE_IQ4_NL, "iq4_nl"},
        {TSR_TYPE_Q2_K, "q2_K"},       {TSR_TYPE_Q3_K, "q3_K"},     {TSR_TYPE_IQ2_XXS, "iq2_xxs"},
        {TSR_TYPE_IQ3_XXS, "iq3_xxs"}, {TSR_TYPE_IQ1_S, "iq1_s"},   {TSR_TYPE_MXFP4, "mxfp4"}};
    return kFormats;
}

void measure_products(Bench& bench) {
    const bool small = bench.scale().small;
    const int64_t k = small ? 256 : 2048;
    for (const Format& format : common_formats()) {
        // Few rows: as many outputs as make the weight four times the second-level cache.
        const int64_t n = small ? 32 : bench.scale().matrix_bytes / row_bytes_of(format.type, k) / 64 * 64;
        for (const int64_t rows : small ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{1, 4, 8})
            product(bench, format, k, n, rows);
        const int64_t wide = small ? 256 : 7168;
        for (const int64_t rows : small ? std::vector<int64_t>{17} : std::vector<int64_t>{16, 32, 64, 128, 512})
            product(bench, format, wide, small ? 32 : 4096, rows);
    }
    if (small) return;
    // Row lengths of the models: experts' down, hidden sizes.
    for (const Format& format : {Format{TSR_TYPE_Q8_0, "q8_0"}, Format{TSR_TYPE_Q4_0, "q4_0"}}) {
        for (const int64_t length : {1408, 7168})
            product(bench, format, length, bench.scale().matrix_bytes / row_bytes_of(format.type, length) / 64 * 64, 1);
    }
}

void measure_rows(Bench& bench) {
    const int64_t n = bench.scale().small ? 256 : 7168;
    for (const int64_t rows : bench.scale().small ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{1, 4096}) {
        Described norm(TSR_OP_RMS_NORM);
        norm.activation({n, rows});
        norm.weight(TSR_TYPE_F32, {n});
        norm.output({n, rows});
        norm.attribute("epsilon", 1e-6);
        Bench::Row row{"rows", "rms_norm of " + std::to_string(n), "f32", rows};
        row.bytes = static_cast<double>(8 * n * rows);
        row.unit = "read";
        bench.report(row, norm, 1, Depth::kEmpty);

        Described sum(TSR_OP_ADD);
        sum.activation({n, rows});
        sum.activation({n, rows});
        sum.output({n, rows});
        row.what = "add of " + std::to_string(n);
        row.bytes = static_cast<double>(12 * n * rows);
        bench.report(row, sum, 1, Depth::kEmpty);
    }
}

}  // namespace tessera::test
