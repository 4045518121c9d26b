// The weights of a model file, as the loader asks for them.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/run/loader.hpp"

namespace tessera {

class FileWeights : public WeightSource {
  public:
    // `file` outlives it. Without `map` the file is only ever read.
    FileWeights(const gguf::GgufFile& file, bool map) : file_(file), map_(map) {}

    void read(const std::string& name, uint64_t offset, std::span<std::byte> to) const override {
        file_.read(file_.tensor(name), offset, to);
    }
    const std::byte* mapped(const std::string& name) const override { return file_.map(file_.tensor(name)).data(); }
    std::span<const std::byte> acquire(const std::string& name, uint64_t offset, uint64_t bytes) const override {
        if (!map_) return {};
        return file_.acquire(file_.tensor(name), offset, bytes);
    }
    void release(const std::string& name, uint64_t offset, uint64_t bytes) const override {
        if (map_) file_.drop_pages(file_.tensor(name), offset, bytes);
    }

  private:
    const gguf::GgufFile& file_;
    bool map_;
};

}  // namespace tessera
