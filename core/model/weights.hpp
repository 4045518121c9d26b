// The file's tensors as weights of a graph.
#pragma once

#include "core/graph/graph.hpp"
#include "core/model/expected_tensors.hpp"
#include "core/model/model_file.hpp"

#include <cstdint>
#include <span>

namespace tessera {

// Throws Error(TSR_CORRUPT_DATA) if the tensor's extents are others (fastest first; trailing ones of 1 may be missing
// in the file), TSR_UNSUPPORTED for a `vector` of another type than f32, f16 and bf16. `graph` gets the weight, a
// vector as f32: one of f16 or bf16 is converted when it is read (FileWeights).
Value add_weight(Graph& graph, const ModelFile& model, const gguf::TensorEntry& entry, std::span<const int64_t> dims,
                 bool vector);

class Weights {
  public:
    // All outlive it. Throws Error naming the tensor: TSR_NOT_FOUND if one that is required is not in the file, or one
    // that all layers have is missing in some, and what add_weight throws.
    Weights(ModelFile& model, Graph& graph, const ExpectedTensors& expected);

    // 0 if the model has no such tensor, or may do without and the file does not have it.
    Value get(ModelTensor which, int64_t layer = -1);

    // Throws Error(TSR_INTERNAL) for a tensor that is expected, in the file, and was not asked for.
    void check_all_taken() const;

  private:
    struct Found {
        const gguf::TensorEntry* entry = nullptr;  // nullptr: the file has none
        bool fused = false;                        // the tensor is a part of it

        explicit operator bool() const { return entry != nullptr; }
    };
    Found find(const ExpectedTensor& tensor) const;
    void check(const ExpectedTensor& tensor, const Found& found) const;
    Value add_part(const ExpectedTensor& tensor, const gguf::TensorEntry& whole);

    ModelFile& model_;
    Graph& graph_;
    const ExpectedTensors& expected_;
};

}  // namespace tessera
