#include "core/model/model_tensors.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera {
namespace {

// In the order of ModelTensor.
constexpr std::array<TensorName, kModelTensors> kNames = {{
    {"token_embd.weight", "", false},
    {"rope_freqs.weight", "", false},
    {"rope_factors_short.weight", "", false},
    {"rope_factors_long.weight", "", false},
    {"output_norm.weight", "", false},
    {"output.weight", "", false},
    {"output.bias", "", false},
    {"attn_norm.weight"},
    {"attn_qkv.weight"},
    {"attn_qkv.bias"},
    {"attn_q.weight"},
    {"attn_k.weight"},
    {"attn_v.weight"},
    {"attn_q.bias"},
    {"attn_k.bias"},
    {"attn_v.bias"},
    {"attn_q_norm.weight"},
    {"attn_k_norm.weight"},
    {"attn_q_a.weight"},
    {"attn_q_a_norm.weight"},
    {"attn_q_b.weight"},
    {"attn_kv_a_mqa.weight"},
    {"attn_kv_a_norm.weight"},
    {"attn_kv_b.weight"},
    {"attn_k_b.weight"},
    {"attn_v_b.weight"},
    {"attn_sinks.weight", "attn_sinks"},
    {"attn_gate.weight"},
    {"attn_output.weight"},
    {"attn_output.bias"},
    {"post_attention_norm.weight"},
    {"ffn_norm.weight"},
    {"ffn_gate.weight"},
    {"ffn_up.weight"},
    {"ffn_down.weight"},
    {"ffn_gate.bias"},
    {"ffn_up.bias"},
    {"ffn_down.bias"},
    {"ffn_gate_inp.weight"},
    {"ffn_gate_inp.bias"},
    {"exp_probs_b.bias", "exp_probs_b"},
    {"ffn_gate_up_exps.weight"},
    {"ffn_gate_exps.weight"},
    {"ffn_up_exps.weight"},
    {"ffn_down_exps.weight"},
    {"ffn_gate_exps.bias"},
    {"ffn_up_exps.bias"},
    {"ffn_down_exps.bias"},
    {"ffn_gate_shexp.weight"},
    {"ffn_up_shexp.weight"},
    {"ffn_down_shexp.weight"},
    {"ffn_gate_inp_shexp.weight"},
    {"post_ffw_norm.weight"},
    {"nextn.eh_proj.weight"},
    {"nextn.enorm.weight"},
    {"nextn.hnorm.weight"},
}};
static_assert(kNames.back().name == "nextn.hnorm.weight");

}  // namespace

const TensorName& tensor_name(ModelTensor which) noexcept {
    return kNames[static_cast<size_t>(which)];
}

std::string in_layer(int64_t layer, std::string_view name) {
    return fmt::format("blk.{}.{}", layer, name);
}

}  // namespace tessera
