// Writes the lowerings of "mla_attention" in primitive ops.
#pragma once

#include "node.hpp"

#include <tessera/cpp/builder.hpp>

#include <initializer_list>
#include <string>

namespace tessera::mla {

// The attention op that a part uses.
enum class Kernel { kTiles, kFlash };

class Writer {
  public:
    // All of them outlive the writer. Throws sdk::Failure if the node is malformed.
    Writer(const tsr_node& node, const tsr_lowering_options& options, const sdk::Builder& builder);

    // 0: keys and values of every head are cached.
    void expanded(Kernel kernel);
    // 1: latent rows are cached, all rows attend in latent space.
    void absorbed(Kernel kernel);
    // 2 and 3: latent rows are cached; prompt rows attend to keys and values projected from them, generation rows
    // attend in latent space.
    void mixed(Kernel prompt, Kernel generation);

  private:
    // A weight [.., .., heads] and how matmul is to read it.
    struct Weight {
        tsr_value value;
        bool transposed;
    };

    std::string name(const char* part) const;
    tsr_tensor shaped(tsr_value of, std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides,
                      int64_t skipped_bytes, int32_t range) const;
    tsr_value view(tsr_value of, std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides,
                   int64_t skipped_bytes) const;
    // Applies the op "hadamard" in place, if requested.
    void hadamard(uint32_t wanted, const char* part, tsr_value x) const;
    tsr_value rope(const char* part, tsr_value x, tsr_value positions, tsr_value into) const;
    tsr_value matmul(const char* part, tsr_value x, Weight weight, tsr_value into) const;
    tsr_value transposed(const char* part, tsr_value weight) const;

    tsr_value key_part_of_wkv_b() const;
    tsr_value value_part_of_wkv_b() const;
    tsr_value three_dimensional(uint32_t input, int64_t n) const;
    Weight absorbing_key() const;
    Weight expanding_key() const;
    tsr_value projecting_key() const;
    tsr_value value_weight() const;

    tsr_value q_nope(int32_t range) const;
    tsr_value q_rope(int32_t range) const;
    void write_latent() const;
    void attend_absorbed(Kernel kernel, int32_t range, tsr_value output) const;
    void attend_projected(Kernel kernel, int32_t range, tsr_value output) const;
    tsr_value attention(const char* part, Kernel kernel, std::initializer_list<tsr_value> inputs, int64_t kv_heads,
                        int64_t head_dim_v, tsr_value into, bool hadamard_weights = false) const;
    tsr_value heads_of_output(tsr_value output, int32_t range) const;

    const tsr_node& node_;
    const tsr_lowering_options& options_;
    const sdk::Builder& b_;
    Sizes s_;
    int64_t rows_;
    int32_t range_;
    tsr_value q_;  // [nope + rope, H, R]
};

}  // namespace tessera::mla
