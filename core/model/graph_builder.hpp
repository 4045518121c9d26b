// Inside core/model: a graph under construction.
#pragma once

#include "core/model/build_graph.hpp"
#include "core/model/weights.hpp"

#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace tessera {

class GraphBuilder {
  public:
    // All outlive it.
    GraphBuilder(const ModelDescription& description, ModelFile& model, const OpSet& ops, const GraphLimits& limits);

    Graph build();

  private:
    // A layer's rows [embedding, R] -> those of the next one. In the last layer only output rows are kept.
    // `index`: the layer's number in the file.
    Value layer(int64_t index, Value rows);
    // What follows a layer's attention: heads and the layer's rows -> those of the next one.
    Value layer_end(int64_t index, Value heads, Value rows);
    // What a layer of prediction begins with: embeddings of tokens beside the states before them.
    Value predicted_rows(Value embeddings);
    Value output(Value rows);

    // Rows [embedding, R] -> heads [heads * value_length, R].
    Value attention(int64_t layer, const Attention& attention, Value x);
    Value grouped_attention(int64_t layer, const Attention& attention, Value x);
    Value latent_attention(int64_t layer, const Attention& attention, Value x);

    // Heads [key_length, H, R] with the rotary embedding; of a part of a head in place.
    Value rotated(const Attention& attention, Value heads, std::string name);
    // Of attention, in a sequence as long as the graph is built for; 0: all tokens are seen.
    int64_t window_of(const Attention& attention) const;
    // Of the caches of a layer: layers with the same window share one.
    Value page_table_of(const Attention& attention);
    // Queries of any shape [..., R] times the attention's temperature at their positions, in place.
    Value with_temperature(int64_t layer, const Attention& attention, Value q);

    // Rows [embedding, R] -> the same.
    Value feed_forward(int64_t layer, const FeedForward& feed_forward, Value x);
    // The op gated_ffn or moe_ffn. biases: of gate, up and down, 0 where there is none.
    Value network(const char* op, std::string name, std::vector<Value> operands, const std::array<Value, 3>& biases,
                  const Unit& unit);
    Value experts(int64_t layer, const Experts& experts, Value x);
    Value shared_experts(int64_t layer, const Experts& experts, Value x);

    // x where the model has no such weight. The node is named after the weight. `into`: 0, or what is written.
    Value norm(Value x, ModelTensor weight, int64_t layer = -1, Value into = 0);
    // x plus the bias, if there is one. `part`: "attn_q".
    Value add_bias(Value x, ModelTensor bias, int64_t layer, const char* part);
    // x where the factor is 1. In place.
    Value scaled(Value x, double factor, std::string name);
    Value reshape(Value x, std::initializer_list<int64_t> dims);  // dense f32 rows

    const ModelDescription& description_;
    ModelFile& model_;
    // Factors of LongRoPE for the context that the graph is built for; 0 without.
    Value rope_factors(const Rope& rope);

    const GraphLimits limits_;
    const int64_t context_;  // tokens of a sequence
    const ExpectedTensors expected_;
    Graph graph_;
    Weights weights_;
    Value tokens_, positions_, sequences_, page_table_, output_rows_;
    Value row_states_ = 0;                    // what the last layer gives of all rows, where that is wanted
    std::map<int64_t, Value> window_tables_;  // page tables of layers with a window, by its length
};

// Attributes of the op "rope", each name behind the prefix; "rope_" for ops that hold a rope.
enum class RopePrefix : uint8_t { kNone, kRope };
std::vector<tsr_attribute> rope_attributes(const Rope& rope, RopePrefix prefix);

}  // namespace tessera
