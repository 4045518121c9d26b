// Writes GGUF files: metadata and tensors are declared first, then the tensors' bytes stream through in that order.
#pragma once

#include "core/base/output_file.hpp"
#include "core/gguf/header.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tessera::gguf {

// The bytes of a header, padded up to the start of the tensors' bytes, version 3. Alignment is that of the key
// general.alignment. Sets offset and bytes of the tensors, which follow each other. Throws Error if the
// reader would refuse the result.
std::vector<std::byte> write_header(const Metadata& metadata, std::vector<TensorEntry>& tensors);

// The file appears under its name in finish() only. One thread.
class Writer {
  public:
    explicit Writer(const std::filesystem::path& path);

    // Before the first write().
    void add(std::string key, Value value) { metadata_.add(std::move(key), std::move(value)); }
    // `dims`: 1 to 4, fastest first.
    void add_tensor(std::string name, tsr_type type, std::span<const uint64_t> dims);

    // The next bytes of the tensors' data, in writes of any size, which need not end where tensors do. Padding between
    // tensors is not part of the data. Throws Error(TSR_INVALID_ARGUMENT) for more than was declared.
    void write(std::span<const std::byte> data);

    // Throws Error(TSR_INVALID_ARGUMENT) naming the first tensor that lacks bytes.
    void finish();

  private:
    void begin_data();
    void pad_to(uint64_t offset);

    Metadata metadata_;
    std::vector<TensorEntry> tensors_;
    OutputFile out_;
    bool in_data_ = false;
    size_t current_ = 0;  // tensor that the next byte belongs to
};

}  // namespace tessera::gguf
