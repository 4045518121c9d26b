// The weights of a model file, as the loader asks for them.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/graph/graph.hpp"
#include "core/run/loader.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace tessera {

class FileWeights : public WeightSource {
  public:
    // `file` outlives it. Without `map` the file is only ever read. Vectors of f16 and bf16 that are f32 in the graph
    // are read at once and kept converted.
    FileWeights(const gguf::GgufFile& file, const Graph& graph, bool map);

    void read(const std::string& name, uint64_t offset, std::span<std::byte> to) const override;
    const std::byte* mapped(const std::string& name) const override;
    std::span<const std::byte> acquire(const std::string& name, uint64_t offset, uint64_t bytes) const override;
    void release(const std::string& name, uint64_t offset, uint64_t bytes) const override;

  private:
    // A weight that is rows of a tensor of the file: runs of `run` bytes that begin `stride` apart.
    struct Rows {
        const gguf::TensorEntry* tensor;
        uint64_t first, run, stride;
        bool in_place;
    };

    static Rows rows_of(const gguf::TensorEntry& tensor, const Storage& weight);
    // Calls body(tensor, offset in it, offset in the range, bytes) for each run in a range of a weight.
    template <typename Body>
    void each_run(const std::string& name, uint64_t offset, uint64_t bytes, Body&& body) const;

    // Empty if the file has it as the graph does. Throws Error(TSR_INVALID_ARGUMENT) for a range outside.
    std::span<const std::byte> converted(const std::string& name, uint64_t offset, uint64_t bytes) const;

    const gguf::GgufFile& file_;
    bool map_;
    std::unordered_map<std::string, Rows> rows_;
    std::unordered_map<std::string, std::vector<float>> converted_;
};

}  // namespace tessera
