#include "topics.hpp"

#include <algorithm>

namespace tessera::test {
namespace {

// Experts of one layer, as in DeepSeek-V2-Lite.
struct Layer {
    int64_t embedding = 2048, hidden = 1408, experts = 64, used = 6;
};

// Each row's experts differ, and all experts have equally many rows where there are enough of them.
std::vector<int32_t> ids_of(const Layer& layer, int64_t rows) {
    std::vector<int32_t> ids;
    for (int64_t at = 0; at < rows * layer.used; ++at) ids.push_back(static_cast<int32_t>(at % layer.experts));
    return ids;
}

// Experts that some row uses.
double touched(const Layer& layer, int64_t rows) {
    return static_cast<double>(std::min(layer.experts, rows * layer.used));
}

Bench::Row row_of(const Bench& bench, const char* what, const Format& format, const Layer& layer, int64_t rows,
                  double matrices) {
    const uint32_t capability = bench.info().compute_capability;
    Bench::Row row{"experts", what, format.name, rows};
    row.what += rows == 1 ? "" : ", " + std::to_string(rows * layer.used / layer.experts) + " rows an expert";
    row.bytes = matrices * touched(layer, rows) *
                static_cast<double>(row_bytes_of(format.type, layer.embedding) * layer.hidden);
    row.operations = matrices * 2 * static_cast<double>(rows * layer.used) * static_cast<double>(layer.embedding) *
                     static_cast<double>(layer.hidden);
    row.unit = rows == 1 ? "read" : bench.scale().tensor_cores ? "s8" : capability >= 610 ? "dp4a" : "f32";
    return row;
}

void by_ids(Bench& bench, const Format& format, const Layer& layer, int64_t rows) {
    Described node(TSR_OP_MATMUL_ID);
    node.activation({layer.embedding, rows});
    node.weight(format.type, {layer.embedding, layer.hidden, layer.experts});
    node.integers({layer.used, rows}, ids_of(layer, rows));
    node.output({layer.hidden, layer.used, rows});
    bench.report(row_of(bench, "matmul_id", format, layer, rows, 1), node, 1, Depth::kEmpty);
}

void whole(Bench& bench, const Format& format, const Layer& layer, int64_t rows) {
    Described node(TSR_OP_MOE_FFN);
    node.activation({layer.embedding, rows});
    node.integers({layer.used, rows}, ids_of(layer, rows));
    node.activation({layer.used, rows});
    node.weight(format.type, {layer.embedding, layer.hidden, layer.experts});
    node.weight(format.type, {layer.embedding, layer.hidden, layer.experts});
    node.weight(format.type, {layer.hidden, layer.embedding, layer.experts});
    node.output({layer.embedding, rows});
    bench.report(row_of(bench, "moe_ffn", format, layer, rows, 3), node, 1, Depth::kEmpty);
}

}  // namespace

void measure_experts(Bench& bench) {
    const bool small = bench.scale().small;
    constexpr int64_t kRowsOfExpert = 128;
    Layer layer;
    if (small) layer = {256, 256, 4, 2};
    const int64_t many = small ? 9 : (kRowsOfExpert * layer.experts + layer.used - 1) / layer.used;
    for (const Format& format : {Format{TSR_TYPE_Q4_0, "q4_0"}, Format{TSR_TYPE_Q8_0, "q8_0"},
                                 Format{TSR_TYPE_Q4_K, "q4_K"}, Format{TSR_TYPE_Q6_K, "q6_K"}}) {
        Layer used = layer;
        if (format.type == TSR_TYPE_Q4_K || format.type == TSR_TYPE_Q6_K)
            used.hidden = used.hidden / 256 * 256 + 256 * (used.hidden % 256 != 0);
        for (const int64_t rows : {int64_t{1}, many}) {
            by_ids(bench, format, used, rows);
            whole(bench, format, used, rows);
        }
        if (small) break;
    }
}

}  // namespace tessera::test
