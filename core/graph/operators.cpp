// The table of the core's ops (ops.h) with their shape inference.
#include "core/graph/builtin_lowerings.hpp"
#include "core/graph/op_set.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/cpp/status.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <array>

namespace tessera {
namespace {

using sdk::Failure;

template <typename... Args>
void require(bool holds, const char* what) {
    if (!holds) throw Failure(TSR_INVALID_ARGUMENT, what);
}

const tsr_tensor& input(const tsr_node& node, uint32_t index) {
    if (!sdk::has_input(node, index)) {
        throw Failure(TSR_INVALID_ARGUMENT, "input " + std::to_string(index) + " is missing");
    }
    return *node.inputs[index];
}

const tsr_tensor& floats(const tsr_node& node, uint32_t index) {
    const tsr_tensor& t = input(node, index);
    require(t.type == TSR_TYPE_F32, "expected f32 activations");
    return t;
}

const tsr_tensor& indices(const tsr_node& node, uint32_t index) {
    const tsr_tensor& t = input(node, index);
    require(t.type == TSR_TYPE_I32, "expected i32 indices");
    return t;
}

// Dense f32 (or `type`) result.
void dense(tsr_tensor& out, std::initializer_list<int64_t> dims, int32_t range, tsr_type type = TSR_TYPE_F32) {
    out = {};
    out.struct_size = sizeof out;
    out.type = type;
    out.range = range;
    std::ranges::fill(out.dims, 1);
    for (const int64_t extent : dims) out.dims[out.rank++] = extent;
}

void like(tsr_tensor& out, const tsr_tensor& t) {
    dense(out, {}, t.range);
    out.rank = t.rank;
    std::ranges::copy(t.dims, out.dims);
}

bool same_dims(const tsr_tensor& a, const tsr_tensor& b) {
    return std::ranges::equal(a.dims, b.dims);
}

int64_t rows(const tsr_tensor& t) {
    return t.dims[t.rank - 1];
}

void infer_get_rows(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& table = input(node, 0);
    const tsr_tensor& ids = indices(node, 1);
    require(table.rank == 2 && ids.rank == 1, "expected a table [n, T] and ids [R]");
    dense(*out[0], {table.dims[0], ids.dims[0]}, ids.range);
}

void infer_rms_norm(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& x = floats(node, 0);
    const tsr_tensor& weight = floats(node, 1);
    require(weight.rank == 1 && weight.dims[0] == x.dims[0], "the weight's length differs from the row's");
    like(*out[0], x);
}

void infer_matmul(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& x = floats(node, 0);
    const tsr_tensor& weight = input(node, 1);
    const bool transposed = sdk::int_attribute(node, "transpose_weight", 0) != 0;
    const int64_t k = weight.dims[transposed ? 1 : 0], n = weight.dims[transposed ? 0 : 1];
    require(k == x.dims[0], "the weight's and the row's lengths differ");
    if (weight.rank == 3) {
        require(x.rank == 3 && x.dims[1] == weight.dims[2], "expected as many batches in the input as in the weight");
        dense(*out[0], {n, x.dims[1], x.dims[2]}, x.range);
    } else {
        require(weight.rank == 2 && x.rank == 2, "expected a weight [k, n] and rows [k, R]");
        dense(*out[0], {n, x.dims[1]}, x.range);
    }
}

void infer_matmul_group(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& x = floats(node, 0);
    require(x.rank == 2 && node.input_count >= 2, "expected rows [k, R] and weights");
    for (uint32_t i = 1; i < node.input_count; ++i) {
        const tsr_tensor& weight = input(node, i);
        require(weight.rank == 2 && weight.dims[0] == x.dims[0], "the weight's and the row's lengths differ");
        dense(*out[i - 1], {weight.dims[1], x.dims[1]}, x.range);
    }
}

// One row an expert, or one.
void require_bias(const tsr_node& node, uint32_t index, int64_t length, int64_t experts) {
    if (!sdk::has_input(node, index)) return;
    const tsr_tensor& bias = floats(node, index);
    require(bias.dims[0] == length && bias.dims[1] == experts, "a bias does not fit its matrix");
}

void infer_gated_ffn(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& x = floats(node, 0);
    const tsr_tensor &gate = input(node, 1), &up = input(node, 2), &down = input(node, 3);
    require(x.rank == 2 && gate.rank == 2 && same_dims(gate, up) && gate.dims[0] == x.dims[0],
            "gate and up do not fit");
    require(down.rank == 2 && down.dims[0] == gate.dims[1], "down does not fit gate");
    require_bias(node, 4, gate.dims[1], 1);
    require_bias(node, 5, gate.dims[1], 1);
    require_bias(node, 6, down.dims[1], 1);
    dense(*out[0], {down.dims[1], x.dims[1]}, x.range);
}

void infer_matmul_id(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& x = floats(node, 0);
    const tsr_tensor& weight = input(node, 1);
    const tsr_tensor& ids = indices(node, 2);
    require(weight.rank == 3 && ids.rank == 2 && weight.dims[0] == x.dims[0],
            "expected a weight [k, n, E] and ids [K, R]");
    require(rows(x) == rows(ids) && x.range == ids.range, "rows of input and ids differ");
    require(x.rank == 2 || (x.rank == 3 && x.dims[1] == ids.dims[0]), "expected rows [k, R] or [k, K, R]");
    dense(*out[0], {weight.dims[1], ids.dims[0], rows(x)}, x.range);
}

void infer_add_id(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor &x = floats(node, 0), &bias = floats(node, 1), &ids = indices(node, 2);
    require(x.rank == 3 && bias.rank == 2 && bias.dims[0] == x.dims[0], "expected rows [n, K, R] and a bias [n, E]");
    require(ids.rank == 2 && ids.dims[0] == x.dims[1] && ids.dims[1] == x.dims[2] && x.range == ids.range,
            "rows of input and ids differ");
    like(*out[0], x);
}

void infer_weighted_sum(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor &x = floats(node, 0), &weights = floats(node, 1);
    require(x.rank == 3 && weights.rank == 2 && x.dims[1] == weights.dims[0] && x.dims[2] == weights.dims[1] &&
                x.range == weights.range,
            "expected rows [n, K, R] and weights [K, R]");
    dense(*out[0], {x.dims[0], x.dims[2]}, x.range);
}

void infer_moe_ffn(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& x = floats(node, 0);
    const tsr_tensor& ids = indices(node, 1);
    const tsr_tensor& weights = floats(node, 2);
    const tsr_tensor &gate = input(node, 3), &up = input(node, 4), &down = input(node, 5);
    require(x.rank == 2 && ids.rank == 2 && same_dims(ids, weights) && rows(ids) == rows(x),
            "rows, ids and weights differ");
    require(gate.rank == 3 && same_dims(gate, up) && gate.dims[0] == x.dims[0], "gate and up do not fit");
    require(down.rank == 3 && down.dims[0] == gate.dims[1] && down.dims[2] == gate.dims[2], "down does not fit gate");
    require_bias(node, 6, gate.dims[1], gate.dims[2]);
    require_bias(node, 7, gate.dims[1], gate.dims[2]);
    require_bias(node, 8, down.dims[1], down.dims[2]);
    dense(*out[0], {down.dims[1], x.dims[1]}, x.range);
}

void infer_moe_route(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& logits = floats(node, 0);
    const int64_t used = sdk::int_attribute(node, "used", 0);
    const int64_t groups = sdk::int_attribute(node, "groups", 1);
    const int64_t groups_used = sdk::int_attribute(node, "groups_used", 1);
    const int64_t experts = logits.dims[0];
    require(logits.rank == 2 && used >= 1 && used <= experts, "'used' is not between 1 and the number of experts");
    require(groups >= 1 && experts % groups == 0 && groups_used >= 1 && groups_used <= groups,
            "the experts do not divide into that many groups");
    require(used <= experts / groups * groups_used, "fewer experts in the used groups than are to be chosen");
    if (sdk::has_input(node, 1)) require(floats(node, 1).dims[0] == experts, "the bias has not one value an expert");
    dense(*out[0], {used, logits.dims[1]}, logits.range, TSR_TYPE_I32);
    dense(*out[1], {used, logits.dims[1]}, logits.range);
}

void infer_rope(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& x = floats(node, 0);
    const tsr_tensor& positions = indices(node, 1);
    require(x.rank == 3 && x.dims[0] % 2 == 0, "expected heads [d, H, R] of an even d");
    require(positions.rank == 1 && positions.dims[0] == x.dims[2], "rows and positions differ");
    if (sdk::has_input(node, 2)) require(floats(node, 2).dims[0] == x.dims[0] / 2, "expected d / 2 frequency factors");
    like(*out[0], x);
}

void infer_add_mul(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor &a = floats(node, 0), &b = floats(node, 1);
    require(same_dims(a, b) || (b.rank == 1 && b.dims[0] == a.dims[0]), "the operands' shapes differ");
    like(*out[0], a);
}

void infer_silu_mul(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor &gate = floats(node, 0), &up = floats(node, 1);
    require(same_dims(gate, up), "the operands' shapes differ");
    like(*out[0], gate);
}

void infer_scale_by_position(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& x = floats(node, 0);
    require(x.rank >= 2 && indices(node, 1).dims[0] == rows(x), "rows and positions differ");
    require(sdk::int_attribute(node, "length", 0) >= 1, "'length' is not at least 1");
    like(*out[0], x);
}

void infer_scale(const tsr_node& node, tsr_tensor* const* out) {
    require(sdk::find_attribute(node, "factor") != nullptr, "there is no 'factor'");
    like(*out[0], floats(node, 0));
}

void infer_hadamard(const tsr_node& node, tsr_tensor* const* out) {
    like(*out[0], floats(node, 0));
}

void infer_convert(const tsr_node& node, tsr_tensor* const* out) {
    like(*out[0], input(node, 0));
    out[0]->type = static_cast<tsr_type>(sdk::int_attribute(node, "type", TSR_TYPE_F32));
}

void infer_transpose(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& weight = input(node, 0);
    require(weight.rank == 2 || weight.rank == 3, "expected [k, n] or [k, n, B]");
    like(*out[0], weight);
    std::swap(out[0]->dims[0], out[0]->dims[1]);
    out[0]->type = static_cast<tsr_type>(sdk::int_attribute(node, "type", TSR_TYPE_F32));
}

void infer_cache_write(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& x = floats(node, 0);
    require(x.rank == 2, "expected rows [n, R]");
    require(indices(node, 1).dims[0] == x.dims[1] && indices(node, 2).dims[0] == x.dims[1],
            "rows and positions differ");
    require(indices(node, 3).rank == 2, "expected a page table [P, S]");
    // The output is always given; only the shape of this one is used.
    dense(*out[0], {x.dims[0], TSR_PAGE_TOKENS, 1}, TSR_RANGE_FIXED);
}

void require_window_and_sinks(const tsr_node& node, uint32_t sinks, int64_t heads) {
    require(sdk::int_attribute(node, "window", 0) >= 0, "a window of fewer tokens than none");
    if (sdk::has_input(node, sinks))
        require(floats(node, sinks).rank == 1 && input(node, sinks).dims[0] == heads,
                "expected one sink for each head");
}

void infer_attention(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor& q = floats(node, 0);
    const tsr_tensor& k = input(node, 1);
    const int64_t dk = q.dims[0], heads = q.dims[1], dv = sdk::int_attribute(node, "head_dim_v", 0);
    const int64_t kv_heads = sdk::int_attribute(node, "kv_heads", 1);
    require(q.rank == 3 && k.role == TSR_ROLE_CACHE && dv > 0, "expected queries [dk, H, R], a cache and head_dim_v");
    require(indices(node, 3).dims[0] == q.dims[2] && indices(node, 4).dims[0] == q.dims[2],
            "rows and positions differ");
    require(indices(node, 5).rank == 2, "expected a page table [P, S]");
    if (sdk::has_input(node, 6)) {
        const tsr_tensor &wk = input(node, 6), &wv = input(node, 7);
        require(wk.rank == 3 && wv.rank == 3 && wk.dims[0] == wv.dims[0] && wk.dims[2] == heads &&
                    wv.dims[2] == heads && wv.dims[1] == dv && wk.dims[1] < dk &&
                    k.dims[0] == wk.dims[0] + dk - wk.dims[1],
                "the projections do not fit the cache");
    } else if (sdk::has_input(node, 2)) {
        require(kv_heads >= 1 && heads % kv_heads == 0 && k.dims[0] == kv_heads * dk &&
                    input(node, 2).dims[0] == kv_heads * dv,
                "the cache's rows do not fit the heads");
    } else {
        require(kv_heads == 1 && k.dims[0] == dk && dv <= dk, "the cache's rows do not fit the query");
    }
    require_window_and_sinks(node, 8, heads);
    dense(*out[0], {dv, heads, q.dims[2]}, q.range);
}

void infer_cached_attention(const tsr_node& node, tsr_tensor* const* out) {
    const tsr_tensor &q = floats(node, 0), &k = floats(node, 1), &v = floats(node, 2);
    require(q.rank == 3 && k.rank == 3 && v.rank == 3 && q.dims[0] == k.dims[0] && k.dims[1] == v.dims[1] &&
                q.dims[1] % k.dims[1] == 0 && k.dims[2] == q.dims[2] && v.dims[2] == q.dims[2],
            "heads of queries, keys and values do not fit");
    require_window_and_sinks(node, 6, q.dims[1]);
    dense(*out[0], {v.dims[0], q.dims[1], q.dims[2]}, q.range);
}

using Infer = void (*)(const tsr_node&, tsr_tensor* const*);

template <Infer kInfer>
const tsr_status* infer(const tsr_operator*, const tsr_node* node, tsr_tensor* const* outputs) {
    return sdk::guarded([&] { kInfer(*node, outputs); });
}

template <Infer kInfer>
tsr_operator op(const char* name, uint32_t outputs = 1) {
    const auto lowerings = builtin_lowerings(name);
    return {sizeof(tsr_operator),
            1,
            nullptr,
            nullptr,
            name,
            infer<kInfer>,
            lowerings.data(),
            static_cast<uint32_t>(lowerings.size()),
            outputs};
}

}  // namespace

std::span<const tsr_operator* const> builtin_operators() {
    static const std::array kOperators = {
        op<infer_get_rows>(TSR_OP_GET_ROWS),
        op<infer_rms_norm>(TSR_OP_RMS_NORM),
        op<infer_matmul>(TSR_OP_MATMUL),
        op<infer_matmul_group>(TSR_OP_MATMUL_GROUP, 0),
        op<infer_gated_ffn>(TSR_OP_GATED_FFN),
        op<infer_matmul_id>(TSR_OP_MATMUL_ID),
        op<infer_add_id>(TSR_OP_ADD_ID),
        op<infer_weighted_sum>(TSR_OP_WEIGHTED_SUM),
        op<infer_moe_ffn>(TSR_OP_MOE_FFN),
        op<infer_moe_route>(TSR_OP_MOE_ROUTE, 2),
        op<infer_rope>(TSR_OP_ROPE),
        op<infer_scale_by_position>(TSR_OP_SCALE_BY_POSITION),
        op<infer_scale>(TSR_OP_SCALE),
        op<infer_add_mul>(TSR_OP_ADD),
        op<infer_add_mul>(TSR_OP_MUL),
        op<infer_silu_mul>(TSR_OP_SILU_MUL),
        op<infer_silu_mul>(TSR_OP_GLU),
        op<infer_hadamard>(TSR_OP_HADAMARD),
        op<infer_convert>(TSR_OP_CONVERT),
        op<infer_transpose>(TSR_OP_TRANSPOSE),
        op<infer_cache_write>(TSR_OP_CACHE_WRITE),
        op<infer_attention>(TSR_OP_FLASH_ATTENTION),
        op<infer_attention>(TSR_OP_TILED_ATTENTION),
        op<infer_cached_attention>(TSR_OP_CACHED_ATTENTION),
    };
    static const auto kPointers = [] {
        std::array<const tsr_operator*, kOperators.size()> all{};
        for (size_t i = 0; i < all.size(); ++i) all[i] = &kOperators[i];
        return all;
    }();
    return kPointers;
}

}  // namespace tessera
