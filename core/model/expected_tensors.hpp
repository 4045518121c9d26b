// The tensors that a described model takes from its file: one list for the graph, for what a file lacks and for what
// would not be used of it.
#pragma once

#include "core/model/description.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace tessera {

enum class Presence : uint8_t {
    kRequired,
    kOptional,
    kEverywhere,  // in all layers that can have it, or in none
};

struct ExpectedTensor {
    ModelTensor which;
    int64_t layer;                // -1: of none
    std::string name, other;      // other: "", or a second name for it
    std::vector<int64_t> dims;    // fastest first; trailing ones of 1 may be missing in the file
    std::vector<int64_t> joined;  // the same with the last two as one, which some tools write; empty: not accepted
    Presence presence = Presence::kRequired;
    bool vector = false;  // f32, f16 or bf16, which ops want as f32: a row, or one for each expert
    // A tensor of which it may be the rows, or elements, from `first` on, of `fused_rows`; "": none.
    std::string fused;
    int64_t first = 0, fused_rows = 0;
    bool always_fused = false;  // a tensor of its own name is that one

    std::vector<int64_t> fused_dims() const;
};

class ExpectedTensors {
  public:
    explicit ExpectedTensors(const ModelDescription& model);

    const std::vector<ExpectedTensor>& all() const noexcept { return all_; }
    // nullptr if the model has none.
    const ExpectedTensor* find(ModelTensor which, int64_t layer = -1) const;

  private:
    void add(ExpectedTensor tensor);
    void add(ModelTensor which, int64_t layer, std::vector<int64_t> dims, Presence presence = Presence::kRequired);
    void add_vector(ModelTensor which, int64_t layer, int64_t length, Presence presence = Presence::kRequired);
    // Lets the last tensor that was added be a part of `whole`.
    void part_of(ModelTensor whole, int64_t first, int64_t rows);
    void add_rope_factors(const Rope& rope);
    void add_grouped(const Attention& attention, int64_t layer);
    void add_latent(const Attention& attention, int64_t layer);
    void add_feed_forward(const FeedForward& feed_forward, int64_t layer);

    const ModelDescription& model_;
    std::vector<ExpectedTensor> all_;
    std::unordered_map<int64_t, size_t> places_;
};

}  // namespace tessera
