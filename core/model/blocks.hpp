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
    double epsilon = 1e-6;
};

// Of the routed experts.
struct ExpertParameters {
    int64_t count = 0;
    int64_t used = 0;
    int64_t feed_forward = 0;
    int64_t groups = 1;
    int64_t groups_used = 1;
    bool sigmoid = false;
    bool normalize = false;
    double scale = 1.0;
};

// An integer key that must be in minimum .. 2^31 - 1. Throws Error naming the key.
int64_t get_count(const gguf::Metadata& metadata, const std::string& key, int64_t minimum = 1);
int64_t find_count(const gguf::Metadata& metadata, const std::string& key, int64_t otherwise, int64_t minimum = 1);

CommonParameters read_common(const gguf::GgufFile& file);
ExpertParameters read_experts(const gguf::Metadata& metadata, const std::string& architecture);

// A model under construction.
class ModelBuilder {
  public:
    ModelBuilder(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits,
                 const CommonParameters& common);

    Graph graph;
    Weights weights;
    const CommonParameters& common;
    Value tokens, positions, sequences, page_table, output_rows;

    // Rows of the token embeddings.
    Value embed();
    Value norm(Value x, const std::string& weight, int64_t length);
    // What follows the attention of a layer: output projection, residual, norm, feed-forward (`moe`: routed experts
    // plus shared ones if the file has them), residual. In the last layer only output rows are kept.
    Value finish_layer(int64_t layer, Value attention, int64_t attention_width, Value residual,
                       const ExpertParameters* moe, int64_t shared_feed_forward);
    // Final norm and output matrix (that of the embeddings if the file has no other); sets the output "logits".
    Graph finish(Value x);

    static std::string block(int64_t layer, const char* name) { return "blk." + std::to_string(layer) + "." + name; }

    Value reshape(Value x, std::initializer_list<int64_t> dims);  // dense f32 rows

  private:
    const ExpertReduction reduction_;

    Value dense_ffn(int64_t layer, Value x);
    Value expert_ffn(int64_t layer, Value x, const ExpertParameters& moe, int64_t shared_feed_forward);
};

}  // namespace tessera
