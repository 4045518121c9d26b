#include "node.hpp"

#include <tessera/cpp/status.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>

namespace tessera::mla {
namespace {

using sdk::Failure;

[[noreturn]] void bad(const tsr_node& node, const std::string& what) {
    throw Failure(TSR_INVALID_ARGUMENT, std::string("mla_attention ") + (node.name ? node.name : "") + ": " + what);
}

std::string text(std::initializer_list<int64_t> dims) {
    std::string out = "[";
    for (const int64_t d : dims) out += (out.size() > 1 ? ", " : "") + std::to_string(d);
    return out + "]";
}

std::string text(const tsr_tensor& tensor) {
    std::string out = "[";
    for (uint32_t i = 0; i < std::min<uint32_t>(tensor.rank, TSR_MAX_RANK); ++i) {
        out += (i ? ", " : "") + std::to_string(tensor.dims[i]);
    }
    return out + "]";
}

bool has_dims(const tsr_tensor& tensor, std::initializer_list<int64_t> dims) {
    return tensor.rank == dims.size() && std::equal(dims.begin(), dims.end(), tensor.dims);
}

const tsr_tensor& wanted(const tsr_node& node, uint32_t index, const char* name, tsr_type type) {
    if (!sdk::has_input(node, index)) bad(node, std::string(name) + " is missing");
    const tsr_tensor& tensor = *node.inputs[index];
    if (type != TSR_TYPE_NONE && tensor.type != type) {
        bad(node, std::string(name) + " is of type " + std::to_string(tensor.type) + ", not " + std::to_string(type));
    }
    return tensor;
}

void expect(const tsr_node& node, const char* name, const tsr_tensor& tensor, std::initializer_list<int64_t> dims,
            std::initializer_list<int64_t> other) {
    if (!has_dims(tensor, dims) && !has_dims(tensor, other)) {
        bad(node, std::string(name) + " is " + text(tensor) + "; expected " + text(dims) + " or " + text(other));
    }
}

void expect(const tsr_node& node, const char* name, const tsr_tensor& tensor, std::initializer_list<int64_t> dims) {
    if (!has_dims(tensor, dims)) bad(node, std::string(name) + " is " + text(tensor) + "; expected " + text(dims));
}

// Attributes come from a file: bounded so that no product below overflows.
int64_t size_attribute(const tsr_node& node, const char* name) {
    const int64_t value = sdk::int_attribute(node, name, 0);
    if (value < 1 || value > (1 << 20)) {
        bad(node, std::string("attribute ") + name + " is " + std::to_string(value) + "; expected 1 to 1048576");
    }
    return value;
}

}  // namespace

Sizes checked_sizes(const tsr_node& node) {
    if (node.input_count != kRopeFactors && node.input_count != kInputs)
        bad(node, std::to_string(node.input_count) + " inputs; expected 9, or 10 with factors of rope");
    const Sizes s{size_attribute(node, "heads"), size_attribute(node, "nope"), size_attribute(node, "rope"),
                  size_attribute(node, "v"), size_attribute(node, "kv_lora")};
    for (const char* name : {"epsilon", "scale", "rope_base"}) {
        if (!(sdk::float_attribute(node, name, 0) > 0))
            bad(node, std::string("attribute ") + name + " is not positive");
    }

    const tsr_tensor& kv = wanted(node, kKv, "kv", TSR_TYPE_F32);
    if (kv.rank != 2) bad(node, "kv is " + text(kv) + "; expected " + text({s.row()}) + " by rows");
    const int64_t rows = kv.dims[1];
    expect(node, "kv", kv, {s.row(), rows});
    expect(node, "q", wanted(node, kQ, "q", TSR_TYPE_F32), {s.key() * s.heads, rows}, {s.key(), s.heads, rows});
    expect(node, "kv_norm", wanted(node, kKvNorm, "kv_norm", TSR_TYPE_F32), {s.latent});
    expect(node, "positions", wanted(node, kPositions, "positions", TSR_TYPE_I32), {rows});
    expect(node, "sequences", wanted(node, kSequences, "sequences", TSR_TYPE_I32), {rows});
    if (sdk::has_input(node, kRopeFactors))
        expect(node, "rope_factors", wanted(node, kRopeFactors, "rope_factors", TSR_TYPE_F32), {s.rope / 2});
    if (wanted(node, kPageTable, "page_table", TSR_TYPE_I32).rank != 2)
        bad(node, "page_table is not [pages, sequences]");
    for (const uint32_t index : {kKv, kPositions, kSequences}) {
        if (node.inputs[index]->range != node.inputs[kQ]->range) bad(node, "its rows are over different ranges");
    }

    const bool whole = sdk::has_input(node, kWkvB);
    if (!whole && !(sdk::has_input(node, kWkB) && sdk::has_input(node, kWvB))) {
        bad(node, "needs attn_kv_b, or attn_k_b and attn_v_b");
    }
    if (whole) expect(node, "wkv_b", *node.inputs[kWkvB], {s.latent, s.heads * (s.nope + s.v)});
    if (sdk::has_input(node, kWkB)) {
        expect(node, "wk_b", *node.inputs[kWkB], {s.nope, s.latent, s.heads}, {s.nope, s.latent * s.heads});
    }
    if (sdk::has_input(node, kWvB)) {
        expect(node, "wv_b", *node.inputs[kWvB], {s.latent, s.v, s.heads}, {s.latent, s.v * s.heads});
    }
    return s;
}

void infer(const tsr_node& node, tsr_tensor& output) {
    const Sizes s = checked_sizes(node);
    tsr_tensor& out = output;
    out = {};
    out.struct_size = sizeof out;
    out.type = TSR_TYPE_F32;
    out.role = TSR_ROLE_ACTIVATION;
    out.rank = 2;
    out.range = node.inputs[kQ]->range;
    std::fill_n(out.dims, TSR_MAX_RANK, 1);
    out.dims[0] = s.v * s.heads;
    out.dims[1] = node.inputs[kKv]->dims[1];
    out.strides[0] = 4;
    out.strides[1] = 4 * out.dims[0];
    out.strides[2] = out.strides[3] = out.strides[1] * out.dims[1];
}

}  // namespace tessera::mla
