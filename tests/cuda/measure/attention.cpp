#include "topics.hpp"

#include <cmath>

namespace tessera::test {
namespace {

struct Shape {
    const char* what;
    int64_t dk, dv, heads;
    int64_t kv_heads;  // 0: one latent row a token, whose first dv elements are the value
    int64_t latent;    // > 0: projected; keys and values are made of these elements of a cached row
};
constexpr int64_t kMiddle = 16384;
constexpr Shape kLatent16 = {"576/512, 16 heads", 576, 512, 16, 0, 0};
constexpr Shape kLatent128 = {"576/512, 128 heads", 576, 512, 128, 0, 0};
constexpr Shape kExpanded16 = {"192/128, 16 heads of their own", 192, 128, 16, 16, 0};
constexpr Shape kGrouped128 = {"128/128, 32 heads over 8", 128, 128, 32, 8, 0};
constexpr Shape kGrouped64 = {"64/64, 32 heads over 8", 64, 64, 32, 8, 0};
constexpr Shape kProjected16 = {"192/128 from 512, 16 heads", 192, 128, 16, 0, 512};

// `rows` new tokens after `depth` cached ones of one sequence.
void attention(Bench& bench, const Shape& shape, const Format& cache, int64_t rows, int64_t depth) {
    const int64_t tokens = depth + rows, pages = (tokens + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS;
    const bool plain = shape.kv_heads > 0;
    const int64_t kv_heads = plain ? shape.kv_heads : 1;
    const int64_t rope = shape.latent ? 64 : 0;
    const int64_t key_row = shape.latent ? shape.latent + rope : kv_heads * shape.dk;
    std::vector<int32_t> positions, table;
    for (int64_t r = 0; r < rows; ++r) positions.push_back(static_cast<int32_t>(depth + r));
    for (int64_t p = 0; p < pages; ++p) table.push_back(static_cast<int32_t>(p));

    double macs = 0;
    for (const int32_t position : positions)
        macs += static_cast<double>(shape.heads * (shape.dk + shape.dv)) * (position + 1.0);
    int64_t token_bytes = row_bytes_of(cache.type, key_row);
    if (plain) token_bytes += row_bytes_of(cache.type, kv_heads * shape.dv);

    std::string refusal;
    // The two ops mean the same; kernels claim one or the other.
    for (const char* op : {TSR_OP_FLASH_ATTENTION, TSR_OP_TILED_ATTENTION}) {
        Described node(op);
        node.activation({shape.dk, shape.heads, rows});
        node.cache(cache.type, {key_row, TSR_PAGE_TOKENS, pages});
        if (plain)
            node.cache(cache.type, {kv_heads * shape.dv, TSR_PAGE_TOKENS, pages});
        else
            node.absent();
        node.integers({rows}, positions);
        node.integers({rows}, std::vector<int32_t>(static_cast<size_t>(rows), 0));
        node.integers({pages, 1}, table, TSR_RANGE_FIXED);
        if (shape.latent) {
            node.weight(TSR_TYPE_Q8_0, {shape.latent, shape.dk - rope, shape.heads});
            node.weight(TSR_TYPE_Q8_0, {shape.latent, shape.dv, shape.heads});
        } else {
            node.absent();
            node.absent();
        }
        node.output({shape.dv, shape.heads, rows});
        node.attribute("scale", 1 / std::sqrt(static_cast<double>(shape.dk)));
        node.attribute("kv_heads", kv_heads);
        node.attribute("head_dim_v", shape.dv);
        node.attribute("scratch_bytes", int64_t{512} << 20);
        node.attribute("max_tokens", tokens);
        const bool last = std::string_view(op) == TSR_OP_TILED_ATTENTION;
        if (!last && !bench.claims(node, refusal)) continue;

        Bench::Row row{"attention", shape.what, cache.name, rows};
        row.what += ", " + std::to_string(depth) + " cached" + (last ? ", tiled" : "");
        row.bytes = static_cast<double>(token_bytes * tokens) +
                    4.0 * static_cast<double>(rows * shape.heads * (shape.dk + shape.dv));
        row.operations = 2 * macs;
        row.unit = rows == 1 && shape.heads <= 32 ? "read" : bench.scale().tensor_cores ? "f16" : "f32";
        bench.report(row, node, tokens, depth > 0 ? Depth::kFull : Depth::kEmpty);
        return;
    }
}

}  // namespace

void measure_attention(Bench& bench) {
    constexpr Format kF16 = {TSR_TYPE_F16, "f16"}, kQ8_0 = {TSR_TYPE_Q8_0, "q8_0"};
    if (bench.scale().small) {
        Shape few = kLatent16;
        few.what = "576/512, 4 heads";
        few.heads = 4;
        attention(bench, few, kF16, 1, 130);
        attention(bench, few, kF16, 5, 20);
        Shape grouped = kGrouped64;
        grouped.what = "64/64, 4 heads over 2";
        grouped.heads = 4;
        grouped.kv_heads = 2;
        attention(bench, grouped, kF16, 1, 70);
        Shape projected = kProjected16;
        projected.what = "192/128 from 512, 2 heads";
        projected.heads = 2;
        attention(bench, projected, kF16, 3, 0);
        return;
    }
    constexpr int64_t kShort = 4096, kLong = 61440, kPrompt = 512;
    for (const Shape& shape : {kLatent16, kLatent128}) {
        for (const int64_t depth : {kShort, kLong}) attention(bench, shape, kF16, 1, depth - 1);
        attention(bench, shape, kQ8_0, 1, kLong - 1);
    }
    for (const Shape& shape : {kExpanded16, kGrouped128, kGrouped64}) {
        for (const int64_t depth : {kShort, kMiddle}) attention(bench, shape, kF16, 1, depth - 1);
    }
    for (const Shape& shape : {kLatent16, kLatent128, kExpanded16, kGrouped128, kGrouped64, kProjected16}) {
        for (const int64_t depth : {int64_t{0}, kMiddle}) attention(bench, shape, kF16, kPrompt, depth);
    }
}

}  // namespace tessera::test
