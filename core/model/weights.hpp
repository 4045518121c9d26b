// The file's tensors as weights of a graph, with their shapes checked.
#pragma once

#include "core/graph/graph.hpp"
#include "core/model/model_file.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace tessera {

class Weights {
  public:
    Weights(ModelFile& model, Graph& graph) : model_(model), graph_(graph) {}

    // The weight NAME.weight with exactly these extents (fastest first; trailing ones may be missing in the file).
    // Throws Error: TSR_NOT_FOUND if it is not there, TSR_CORRUPT_DATA if its shape is another.
    Value get(const std::string& name, std::initializer_list<int64_t> dims);
    // 0 if it is missing.
    Value find(const std::string& name, std::initializer_list<int64_t> dims);

    // The same for a vector whose full name is given ("output_norm.weight", "output.bias"), which ops want as f32: one
    // of f16 or bf16 is converted when it is read (FileWeights).
    Value get_vector(const std::string& full_name, int64_t length);
    Value find_vector(const std::string& full_name, int64_t length);

    // A vector that all layers have or none ("blk.3.attn_q.bias" is part "attn_q.bias" of layer 3). `other`: a second
    // name for it.
    Value find_in_layer(int64_t layer, const std::string& part, int64_t length, const std::string& other = "");
    // Throws Error(TSR_NOT_FOUND) naming one that was found in some layers only. Call it when the graph is built.
    void check_layers() const;

    // Extent `index` of a tensor that must be there, by its full name.
    int64_t extent(const std::string& full_name, uint32_t index) const;

  private:
    struct Layers {
        std::vector<int64_t> with, without;
    };

    Value make(const gguf::TensorEntry& entry, std::initializer_list<int64_t> dims, bool as_f32);

    ModelFile& model_;
    Graph& graph_;
    std::map<std::string, Layers> parts_;
};

}  // namespace tessera
