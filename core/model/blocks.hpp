// Parts that architectures share: token embeddings, feed-forward networks, output. The file of each architecture builds
// its layers from them.
#pragma once

#include "core/model/model.hpp"
#include "core/model/rope.hpp"
#include "core/model/weights.hpp"

#include <string>

namespace tessera {

// Hyperparameters that all architectures have.
struct CommonParameters {
    std::string architecture;
    int64_t layers = 0;  // those that are computed
    int64_t embedding = 0;
    int64_t vocabulary = 0;
    int64_t context = 0;
    int64_t heads = 0;
    int64_t kv_heads = 0;
    int64_t feed_forward = 0;  // 0 where all layers have experts
    double epsilon = 0;        // of RMS norms
};

// Of the routed experts.
struct ExpertParameters {
    int64_t count = 0;  // 0: there are none
    int64_t used = 0;
    int64_t feed_forward = 0;
    int64_t groups = 1;
    int64_t groups_used = 1;
    bool sigmoid = false;
    bool normalize = false;
    double scale = 1.0;
};

// Of a model; real ones have one to three.
inline constexpr int64_t kMaxPredictionLayers = 64;

CommonParameters read_common(ModelFile& model);

// `layers`: those that are computed. `normalize`: whether the architecture divides the weights of the chosen experts by
// their sum where the file does not say. `feed_forward`: the length that its experts have then; 0: the file has to say.
ExpertParameters read_experts(ModelFile& model, int64_t layers, bool normalize, int64_t feed_forward);

// A model under construction.
class ModelBuilder {
  public:
    ModelBuilder(ModelFile& model, const OpSet& ops, const GraphLimits& limits, const CommonParameters& common);

    Graph graph;
    Weights weights;
    const CommonParameters& common;
    Value tokens, positions, sequences, page_table, output_rows;

    ModelFile& model;
    // Rows of the token embeddings.
    Value embed();
    Value norm(Value x, const std::string& weight, int64_t length);
    // x plus the bias of a layer's part ("attn_q") if the file has one.
    Value add_bias(Value x, int64_t layer, const char* part, int64_t length);
    // What follows the attention of a layer: output projection, residual, norm, feed-forward (`moe`: routed experts,
    // and shared ones of a length that is not 0), residual. In the last layer only output rows are kept.
    Value finish_layer(int64_t layer, Value attention, int64_t attention_width, Value residual,
                       const ExpertParameters* moe, int64_t shared_feed_forward);
    // Final norm and output matrix (that of the embeddings if the file has no other); sets the output "logits". Throws
    // Error as Weights::check_layers does.
    Graph finish(Value x);

    static std::string block(int64_t layer, const char* name) { return "blk." + std::to_string(layer) + "." + name; }

    Value reshape(Value x, std::initializer_list<int64_t> dims);  // dense f32 rows

  private:
    const ExpertReduction reduction_;

    Value dense_ffn(int64_t layer, Value x);
    Value biased_ffn(Value x, int64_t layer, Value gate_bias, Value up_bias);
    Value expert_ffn(int64_t layer, Value x, const ExpertParameters& moe, int64_t shared_feed_forward);
};

}  // namespace tessera
