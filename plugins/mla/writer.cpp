#include "writer.hpp"

#include <tessera/ops.h>

#include <algorithm>

namespace tessera::mla {

using sdk::attribute;
using sdk::Failure;

namespace {

bool plain_type(tsr_type type) {
    return type == TSR_TYPE_F32 || type == TSR_TYPE_F16 || type == TSR_TYPE_BF16;
}

// The type of a derived weight with rows of `elements`: q8_0 is precise enough for any quantised source; f16 where
// blocks of 32 do not divide a row.
tsr_type derived_type(tsr_type source, int64_t elements) {
    if (plain_type(source)) return source;
    return elements % 32 == 0 ? TSR_TYPE_Q8_0 : TSR_TYPE_F16;
}

}  // namespace

Writer::Writer(const tsr_node& node, const tsr_lowering_options& options, const sdk::Builder& builder)
    : node_(node), options_(options), b_(builder), s_(checked_sizes(node)) {
    rows_ = node.inputs[kKv]->dims[1];
    range_ = node.inputs[kQ]->range;
    q_ = b_.input(kQ);
    const tsr_tensor q = b_.describe(q_);
    if (q.rank == 2) q_ = view(q_, {s_.key(), s_.heads, rows_}, {4, 4 * s_.key(), q.strides[1]}, 0);
}

std::string Writer::name(const char* part) const {
    return std::string(node_.name ? node_.name : "mla_attention") + "." + part;
}

// A view of `of` that starts `skipped_bytes` past its first element.
tsr_tensor Writer::shaped(tsr_value of, std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides,
                          int64_t skipped_bytes, int32_t range) const {
    tsr_tensor shape = b_.describe(of);
    shape.rank = static_cast<uint32_t>(dims.size());
    shape.range = range;
    shape.offset += skipped_bytes;
    std::fill_n(shape.dims, TSR_MAX_RANK, 1);
    std::copy(dims.begin(), dims.end(), shape.dims);
    std::copy(strides.begin(), strides.end(), shape.strides);
    for (uint32_t i = shape.rank; i < TSR_MAX_RANK; ++i) shape.strides[i] = shape.strides[i - 1] * shape.dims[i - 1];
    return shape;
}

tsr_value Writer::view(tsr_value of, std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides,
                       int64_t skipped_bytes) const {
    return b_.view(of, shaped(of, dims, strides, skipped_bytes, b_.describe(of).range));
}

tsr_value Writer::rope(const char* part, tsr_value x, tsr_value positions, tsr_value into) const {
    const std::string mode(sdk::string_attribute(node_, "rope_mode", "norm"));
    const tsr_value factors = sdk::has_input(node_, kRopeFactors) ? b_.input(kRopeFactors) : 0;
    return b_.add(TSR_OP_ROPE, name(part).c_str(), {x, positions, factors},
                  {attribute("mode", mode.c_str()), attribute("base", sdk::float_attribute(node_, "rope_base", 0)),
                   attribute("freq_scale", sdk::float_attribute(node_, "rope_freq_scale", 1)),
                   attribute("ext_factor", sdk::float_attribute(node_, "rope_ext_factor", 0)),
                   attribute("attn_factor", sdk::float_attribute(node_, "rope_attn_factor", 1)),
                   attribute("beta_fast", sdk::float_attribute(node_, "rope_beta_fast", 32)),
                   attribute("beta_slow", sdk::float_attribute(node_, "rope_beta_slow", 1)),
                   attribute("original_context", sdk::int_attribute(node_, "rope_original_context", 0))},
                  into);
}

void Writer::hadamard(uint32_t wanted, const char* part, tsr_value x) const {
    if (wanted) b_.add(TSR_OP_HADAMARD, name(part).c_str(), {x}, {}, x);
}

tsr_value Writer::matmul(const char* part, tsr_value x, Weight weight, tsr_value into) const {
    return b_.add(TSR_OP_MATMUL, name(part).c_str(), {x, weight.value},
                  {attribute("transpose_weight", int64_t{weight.transposed})}, into);
}

// The weight transposed once at load.
tsr_value Writer::transposed(const char* part, tsr_value weight) const {
    const tsr_tensor source = b_.describe(weight);
    return b_.add(TSR_OP_TRANSPOSE, name(part).c_str(), {weight},
                  {attribute("type", int64_t{derived_type(source.type, source.dims[1])})}, 0, TSR_STAGE_INIT);
}

// ---- weights ----

// [kv_lora, nope, H]
tsr_value Writer::key_part_of_wkv_b() const {
    const tsr_value whole = b_.input(kWkvB);
    const tsr_tensor w = b_.describe(whole);
    return view(whole, {s_.latent, s_.nope, s_.heads}, {w.strides[0], w.strides[1], w.strides[1] * (s_.nope + s_.v)},
                0);
}

// [kv_lora, v, H]
tsr_value Writer::value_part_of_wkv_b() const {
    const tsr_value whole = b_.input(kWkvB);
    const tsr_tensor w = b_.describe(whole);
    return view(whole, {s_.latent, s_.v, s_.heads}, {w.strides[0], w.strides[1], w.strides[1] * (s_.nope + s_.v)},
                w.strides[1] * s_.nope);
}

// A weight [m, n, H], which a file may hold as [m, n * H].
tsr_value Writer::three_dimensional(uint32_t input, int64_t n) const {
    const tsr_value value = b_.input(input);
    const tsr_tensor w = b_.describe(value);
    if (w.rank == 3) return value;
    return view(value, {w.dims[0], n, s_.heads}, {w.strides[0], w.strides[1], w.strides[1] * n}, 0);
}

// nope -> kv_lora, for queries.
Writer::Weight Writer::absorbing_key() const {
    if (sdk::has_input(node_, kWkB)) return {three_dimensional(kWkB, s_.latent), false};
    if (options_.derive_weights) return {transposed("wk_b", key_part_of_wkv_b()), false};
    return {key_part_of_wkv_b(), true};
}

// kv_lora -> nope, for new rows.
Writer::Weight Writer::expanding_key() const {
    if (sdk::has_input(node_, kWkvB)) return {key_part_of_wkv_b(), false};
    if (options_.derive_weights) return {transposed("wk", three_dimensional(kWkB, s_.latent)), false};
    return {three_dimensional(kWkB, s_.latent), true};
}

// [kv_lora, nope, H], as the projected variant of attention takes it.
tsr_value Writer::projecting_key() const {
    if (sdk::has_input(node_, kWkvB)) return key_part_of_wkv_b();
    if (!options_.derive_weights) {
        throw Failure(TSR_UNSUPPORTED, "the file has attn_k_b alone: expanding the prompt needs it transposed at load");
    }
    return transposed("wk", three_dimensional(kWkB, s_.latent));
}

// [kv_lora, v, H]
tsr_value Writer::value_weight() const {
    return sdk::has_input(node_, kWvB) ? three_dimensional(kWvB, s_.v) : value_part_of_wkv_b();
}

// ---- rows ----

// [nope, H, R]
tsr_value Writer::q_nope(int32_t range) const {
    const tsr_tensor q = b_.describe(q_);
    return b_.view(q_, shaped(q_, {s_.nope, s_.heads, rows_}, {4, q.strides[1], q.strides[2]}, 0, range));
}

// [rope, H, R]
tsr_value Writer::q_rope(int32_t range) const {
    const tsr_tensor q = b_.describe(q_);
    return b_.view(q_, shaped(q_, {s_.rope, s_.heads, rows_}, {4, q.strides[1], q.strides[2]}, 4 * s_.nope, range));
}

// The output [v * H, R] as [v, H, R].
tsr_value Writer::heads_of_output(tsr_value output, int32_t range) const {
    return b_.view(output, shaped(output, {s_.v, s_.heads, rows_}, {4, 4 * s_.v, 4 * s_.v * s_.heads}, 0, range));
}

// Norm and rope of the new rows into one buffer, and that into the cache.
void Writer::write_latent() const {
    const tsr_value kv = b_.input(kKv);
    const tsr_tensor from = b_.describe(kv);
    const tsr_value row = b_.buffer({s_.row(), rows_}, range_);
    const int64_t stride = 4 * s_.row();
    const tsr_value latent_part = b_.slice(row, 0, s_.latent);
    b_.add(TSR_OP_RMS_NORM, name("kv_norm").c_str(), {b_.slice(kv, 0, s_.latent), b_.input(kKvNorm)},
           {attribute("epsilon", sdk::float_attribute(node_, "epsilon", 0))}, latent_part);
    hadamard(options_.hadamard_keys, "kv_hadamard", latent_part);
    const tsr_value rope_part = view(row, {s_.rope, 1, rows_}, {4, stride, stride}, 4 * s_.latent);
    rope("k_rope", view(kv, {s_.rope, 1, rows_}, {4, from.strides[1], from.strides[1]}, 4 * s_.latent),
         b_.input(kPositions), rope_part);
    hadamard(options_.hadamard_keys, "k_rope_hadamard", rope_part);
    b_.add(TSR_OP_CACHE_WRITE, name("write").c_str(),
           {row, b_.input(kPositions), b_.input(kSequences), b_.input(kPageTable)}, {}, b_.cache(0));
}

tsr_value Writer::attention(const char* part, Kernel kernel, std::initializer_list<tsr_value> inputs, int64_t kv_heads,
                            int64_t head_dim_v, tsr_value into, bool hadamard_weights) const {
    return b_.add(
        kernel == Kernel::kFlash ? TSR_OP_FLASH_ATTENTION : TSR_OP_TILED_ATTENTION, name(part).c_str(), inputs,
        {attribute("scale", sdk::float_attribute(node_, "scale", 1)), attribute("kv_heads", kv_heads),
         attribute("head_dim_v", head_dim_v), attribute("scratch_bytes", static_cast<int64_t>(options_.scratch_bytes)),
         attribute("max_tokens", int64_t{options_.max_tokens}), attribute("hadamard", int64_t{hadamard_weights})},
        into);
}

// Rows of `range`: q is multiplied with wk_b and attends to latent rows; the results are multiplied with wv_b.
void Writer::attend_absorbed(Kernel kernel, int32_t range, tsr_value output) const {
    const int64_t head = 4 * s_.row();
    const tsr_value q = b_.buffer({s_.row(), s_.heads, rows_}, range);
    const tsr_value positions = b_.rows(b_.input(kPositions), range);
    const tsr_value sequences = b_.rows(b_.input(kSequences), range);
    const tsr_value latent_part = view(q, {s_.latent, s_.heads, rows_}, {4, head, head * s_.heads}, 0);
    const tsr_value rope_part = view(q, {s_.rope, s_.heads, rows_}, {4, head, head * s_.heads}, 4 * s_.latent);
    matmul("q_absorb", q_nope(range), absorbing_key(), latent_part);
    rope("q_rope_absorbed", q_rope(range), positions, rope_part);
    hadamard(options_.hadamard_keys, "q_hadamard_absorbed", latent_part);
    hadamard(options_.hadamard_keys, "q_rope_hadamard_absorbed", rope_part);
    const tsr_value latent =
        attention("attend_absorbed", kernel, {q, b_.cache(0), 0, positions, sequences, b_.input(kPageTable), 0, 0}, 1,
                  s_.latent, 0);
    hadamard(options_.hadamard_keys, "latent_hadamard", latent);
    matmul("v_absorb", latent, {value_weight(), false}, heads_of_output(output, range));
}

// Rows of `range`: attention projects keys and values from latent rows.
void Writer::attend_projected(Kernel kernel, int32_t range, tsr_value output) const {
    const tsr_value positions = b_.rows(b_.input(kPositions), range);
    const tsr_value sequences = b_.rows(b_.input(kSequences), range);
    const tsr_value wk = projecting_key();
    const tsr_value rope_part = q_rope(range);
    rope("q_rope_projected", rope_part, positions, rope_part);
    hadamard(options_.hadamard_keys, "q_rope_hadamard_projected", rope_part);
    attention("attend_projected", kernel,
              {b_.rows(q_, range), b_.cache(0), 0, positions, sequences, b_.input(kPageTable), wk, value_weight()},
              s_.heads, s_.v, heads_of_output(output, range), options_.hadamard_keys != 0);
}

// ---- the lowerings ----

void Writer::expanded(Kernel kernel) {
    const tsr_value kv = b_.input(kKv);
    const tsr_tensor from = b_.describe(kv);
    const tsr_value positions = b_.input(kPositions), sequences = b_.input(kSequences), pages = b_.input(kPageTable);
    const int64_t head = 4 * s_.key();

    const tsr_value rope_part = q_rope(range_);
    rope("q_rope", rope_part, positions, rope_part);

    // Every head reads the same latent row: a view whose stride between heads is 0.
    const tsr_value latent =
        b_.add(TSR_OP_RMS_NORM, name("kv_norm").c_str(), {b_.slice(kv, 0, s_.latent), b_.input(kKvNorm)},
               {attribute("epsilon", sdk::float_attribute(node_, "epsilon", 0))});
    const tsr_value latent_of_heads = view(latent, {s_.latent, s_.heads, rows_}, {4, 0, 4 * s_.latent}, 0);
    const tsr_value k = b_.buffer({s_.key(), s_.heads, rows_}, range_);
    matmul("k_expand", latent_of_heads, expanding_key(),
           view(k, {s_.nope, s_.heads, rows_}, {4, head, head * s_.heads}, 0));
    rope("k_rope", view(kv, {s_.rope, s_.heads, rows_}, {4, 0, from.strides[1]}, 4 * s_.latent), positions,
         view(k, {s_.rope, s_.heads, rows_}, {4, head, head * s_.heads}, 4 * s_.nope));
    const tsr_value v = matmul("v_expand", latent_of_heads, {value_weight(), false}, 0);
    hadamard(options_.hadamard_keys, "q_hadamard", q_);
    hadamard(options_.hadamard_keys, "k_hadamard", k);
    hadamard(options_.hadamard_values, "v_hadamard", v);

    b_.add(TSR_OP_CACHE_WRITE, name("write_k").c_str(),
           {b_.reshape(k, {s_.key() * s_.heads, rows_}), positions, sequences, pages}, {}, b_.cache(0));
    b_.add(TSR_OP_CACHE_WRITE, name("write_v").c_str(),
           {b_.reshape(v, {s_.v * s_.heads, rows_}), positions, sequences, pages}, {}, b_.cache(1));
    const tsr_value output = b_.buffer({s_.v * s_.heads, rows_}, range_);
    const tsr_value heads = heads_of_output(output, range_);
    attention("attend", kernel, {q_, b_.cache(0), b_.cache(1), positions, sequences, pages, 0, 0}, s_.heads, s_.v,
              heads);
    hadamard(options_.hadamard_values, "hadamard", heads);
    b_.output(0, output);
}

void Writer::absorbed(Kernel kernel) {
    write_latent();
    const tsr_value output = b_.buffer({s_.v * s_.heads, rows_}, range_);
    attend_absorbed(kernel, range_, output);
    b_.output(0, output);
}

void Writer::mixed(Kernel prompt, Kernel generation) {
    if (range_ != TSR_RANGE_ROWS) {
        throw Failure(TSR_UNSUPPORTED, "telling prompt from generation needs the rows of a batch");
    }
    write_latent();
    const tsr_value output = b_.buffer({s_.v * s_.heads, rows_}, range_);
    attend_projected(prompt, TSR_RANGE_PROMPT_ROWS, output);
    attend_absorbed(generation, TSR_RANGE_GENERATION_ROWS, output);
    b_.output(0, output);
}

}  // namespace tessera::mla
