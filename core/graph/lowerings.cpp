#include "core/graph/builtin_lowerings.hpp"

#include <tessera/cpp/builder.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace tessera {
namespace {

using sdk::attribute;
using sdk::Builder;

using BuildFunction = void (*)(const tsr_node&, const tsr_lowering_options&, const Builder&);

template <BuildFunction kBuild>
const tsr_status* build(const tsr_lowering*, const tsr_node* node, const tsr_lowering_options* options,
                        tsr_builder* builder) {
    return sdk::guarded([&] { kBuild(*node, *options, Builder(builder)); });
}

std::string part(const tsr_node& node, const char* name) {
    return std::string(node.name) + "." + name;
}

void split_matmul_group(const tsr_node& node, const tsr_lowering_options&, const Builder& b) {
    for (uint32_t i = 1; i < node.input_count; ++i) {
        const char* name = node.inputs[i]->name ? node.inputs[i]->name : node.name;
        b.output(i - 1, b.add(TSR_OP_MATMUL, name, {b.input(0), b.input(i)}));
    }
}

// Of a network's gate and up, in place of gate.
tsr_value activated(const tsr_node& node, const Builder& b, tsr_value gate, tsr_value up) {
    std::vector<tsr_attribute> attributes;
    for (const char* name : {"activation", "limit", "alpha"}) {
        if (const tsr_attribute* one = sdk::find_attribute(node, name)) attributes.push_back(*one);
    }
    return attributes.empty() ? b.add(TSR_OP_SILU_MUL, part(node, "silu").c_str(), {gate, up}, {}, gate)
                              : b.add(TSR_OP_GLU, part(node, "glu").c_str(), std::vector{gate, up}, attributes, gate);
}

void split_gated_ffn(const tsr_node& node, const tsr_lowering_options&, const Builder& b) {
    const auto biased = [&](tsr_value x, uint32_t bias, const char* name) {
        return b.input(bias) == 0 ? x : b.add(TSR_OP_ADD, part(node, name).c_str(), {x, b.input(bias)}, {}, x);
    };
    const auto both =
        b.add_many(TSR_OP_MATMUL_GROUP, part(node, "gate_up").c_str(), {b.input(0), b.input(1), b.input(2)}, 2);
    const tsr_value hidden = activated(node, b, biased(both[0], 4, "gate_bias"), biased(both[1], 5, "up_bias"));
    b.output(0, biased(b.add(TSR_OP_MATMUL, part(node, "down").c_str(), {hidden, b.input(3)}), 6, "down_bias"));
}

void split_moe_ffn(const tsr_node& node, const tsr_lowering_options&, const Builder& b) {
    const tsr_value ids = b.input(1);
    const auto product = [&](const char* name, tsr_value x, uint32_t weight) {
        const tsr_value y = b.add(TSR_OP_MATMUL_ID, part(node, name).c_str(), {x, b.input(weight), ids});
        const tsr_value bias = b.input(weight + 3);
        return bias == 0 ? y : b.add(TSR_OP_ADD_ID, (part(node, name) + "_bias").c_str(), {y, bias, ids}, {}, y);
    };
    const tsr_value gate = product("gate", b.input(0), 3), up = product("up", b.input(0), 4);
    const tsr_value down = product("down", activated(node, b, gate, up), 5);
    b.output(0, b.add(TSR_OP_WEIGHTED_SUM, part(node, "sum").c_str(), {down, b.input(2)}));
}

const tsr_status* attention_components(const tsr_lowering*, const tsr_node* node,
                                       tsr_cache_component* const* components, uint32_t* count) {
    const tsr_tensor &k = *node->inputs[1], &v = *node->inputs[2];
    if (*count < 2) return sdk::make_status(TSR_UNSUPPORTED, "room for two cache components is needed");
    sdk::set_component(*components[0], "k", k.dims[0] * k.dims[1], 0);
    sdk::set_component(*components[1], "v", v.dims[0] * v.dims[1], 1);
    *count = 2;
    return nullptr;
}

template <bool kFlash>
void lower_attention(const tsr_node& node, const tsr_lowering_options& options, const Builder& b) {
    if (kFlash && !options.flash_attention) throw sdk::Failure(TSR_UNSUPPORTED, "flash attention is switched off");
    const tsr_tensor k = b.describe(b.input(1)), v = b.describe(b.input(2));
    const tsr_value positions = b.input(3), sequences = b.input(4), pages = b.input(5);
    const auto hadamard = [&](uint32_t wanted, const char* name, tsr_value rows) {
        return wanted ? b.add(TSR_OP_HADAMARD, part(node, name).c_str(), {rows}, {}, rows) : rows;
    };
    const tsr_value q = hadamard(options.hadamard_keys, "q_hadamard", b.input(0));
    const tsr_value keys = hadamard(options.hadamard_keys, "k_hadamard", b.input(1));
    const tsr_value values = hadamard(options.hadamard_values, "v_hadamard", b.input(2));
    const tsr_value k_rows = b.reshape(keys, {k.dims[0] * k.dims[1], k.dims[2]});
    const tsr_value v_rows = b.reshape(values, {v.dims[0] * v.dims[1], v.dims[2]});
    b.add(TSR_OP_CACHE_WRITE, part(node, "write_k").c_str(), {k_rows, positions, sequences, pages}, {}, b.cache(0));
    b.add(TSR_OP_CACHE_WRITE, part(node, "write_v").c_str(), {v_rows, positions, sequences, pages}, {}, b.cache(1));
    std::vector<tsr_value> operands = {q, b.cache(0), b.cache(1), positions, sequences, pages, 0, 0};
    std::vector<tsr_attribute> attributes = {attribute("scale", sdk::float_attribute(node, "scale", 1.0)),
                                             attribute("kv_heads", k.dims[1]), attribute("head_dim_v", v.dims[0]),
                                             attribute("scratch_bytes", static_cast<int64_t>(options.scratch_bytes)),
                                             attribute("max_tokens", static_cast<int64_t>(options.max_tokens))};
    // Where there are none, a node is one that any kernel takes.
    if (b.input(6) != 0) operands.push_back(b.input(6));
    if (const int64_t window = sdk::int_attribute(node, "window", 0); window != 0)
        attributes.push_back(attribute("window", window));
    const tsr_value attended =
        b.add(kFlash ? TSR_OP_FLASH_ATTENTION : TSR_OP_TILED_ATTENTION, node.name, operands, attributes);
    b.output(0, hadamard(options.hadamard_values, "hadamard", attended));
}

constexpr tsr_lowering lowering(const char* op, const char* name, const char* family, int32_t priority,
                                const char* summary, decltype(tsr_lowering::components) components,
                                decltype(tsr_lowering::build) write) {
    return {sizeof(tsr_lowering), priority, nullptr, nullptr, op, name, family, summary, components, write};
}

constexpr tsr_lowering kGroupParts =
    lowering(TSR_OP_MATMUL_GROUP, "parts", "", 0, "one matmul a weight", nullptr, build<split_matmul_group>);
constexpr tsr_lowering kGatedParts =
    lowering(TSR_OP_GATED_FFN, "parts", "", 0, "gate and up, activation, down", nullptr, build<split_gated_ffn>);
constexpr tsr_lowering kMoeParts = lowering(
    TSR_OP_MOE_FFN, "parts", "", 0, "gate, up, activation, down, sum over experts", nullptr, build<split_moe_ffn>);
constexpr tsr_lowering kFlash =
    lowering(TSR_OP_CACHED_ATTENTION, "flash", "expanded", 1, "flash attention over cached keys and values",
             attention_components, build<lower_attention<true>>);
constexpr tsr_lowering kTiles =
    lowering(TSR_OP_CACHED_ATTENTION, "tiles", "expanded", 0, "attention in tiles of scores under the scratch cap",
             attention_components, build<lower_attention<false>>);

// Those of one op lie together.
constexpr std::array kLowerings = {&kGroupParts, &kGatedParts, &kMoeParts, &kFlash, &kTiles};

}  // namespace

std::span<const tsr_lowering* const> builtin_lowerings(std::string_view op) {
    const auto is_of = [&](const tsr_lowering* lowering) { return op == lowering->op; };
    const auto first = std::ranges::find_if(kLowerings, is_of);
    return {first, std::find_if_not(first, kLowerings.end(), is_of)};
}

}  // namespace tessera
