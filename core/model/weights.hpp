// The file's tensors as weights of a graph, with their shapes checked.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/graph/graph.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>

namespace tessera {

class Weights {
  public:
    Weights(const gguf::GgufFile& file, Graph& graph) : file_(file), graph_(graph) {}

    // The weight NAME.weight with exactly these extents (fastest first; trailing ones may be missing in the file).
    // Throws Error: TSR_NOT_FOUND if it is not there, TSR_CORRUPT_DATA if its shape is another.
    Value get(const std::string& name, std::initializer_list<int64_t> dims);
    // 0 if it is missing.
    Value find(const std::string& name, std::initializer_list<int64_t> dims);
    bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

    // The same for a tensor whose full name is given ("exp_probs_b.bias").
    Value find_exact(const std::string& name, std::initializer_list<int64_t> dims);

    // Extent `index` of a tensor that must be there, by its full name.
    int64_t extent(const std::string& name, uint32_t index) const;

  private:
    const gguf::GgufFile& file_;
    Graph& graph_;
};

}  // namespace tessera
