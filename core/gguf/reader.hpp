// A model on disk: one GGUF file, or all shards of a split one.
#pragma once

#include "core/base/file.hpp"
#include "core/gguf/header.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tessera::gguf {

// Opening reads only the headers. Movable; const functions may be called from any thread.
class GgufFile {
  public:
    // `path`: the file, or any shard of a split model, whose other shards lie beside it. Overrides replace metadata
    // after the files were checked. Throws what File and parse_header throw; a missing shard is TSR_NOT_FOUND.
    static GgufFile open(const std::filesystem::path& path, std::span<const Override> overrides = {});

    GgufFile(GgufFile&&) noexcept;
    GgufFile& operator=(GgufFile&&) noexcept;
    ~GgufFile();

    const Metadata& metadata() const noexcept { return header_.metadata; }
    std::span<const TensorEntry> tensors() const noexcept { return header_.tensors; }
    uint32_t version() const noexcept { return header_.version; }
    uint64_t file_bytes() const noexcept { return header_.file_bytes; }  // of all shards
    size_t file_count() const noexcept { return shards_.size(); }
    const std::filesystem::path& file_path(size_t i) const;

    // Replaces more metadata; what views of it showed is no longer valid.
    void override_metadata(std::span<const Override> overrides);

    // Keys of overrides given to open() that the files do not have.
    std::span<const std::string> added_keys() const noexcept { return added_keys_; }

    // nullptr, or Error(TSR_NOT_FOUND) naming file and tensor, if there is none of that name. Entries live as long as
    // the GgufFile and stay where they are when it is moved.
    const TensorEntry* find_tensor(std::string_view name) const;
    const TensorEntry& tensor(std::string_view name) const;

    // The bytes of a tensor of this file. read() fills `out` from byte `begin` of the tensor. map() gives
    // all of it, valid while the GgufFile lives; a file is mapped when the first of its tensors is requested.
    void read(const TensorEntry& tensor, uint64_t begin, std::span<std::byte> out) const;
    std::span<const std::byte> map(const TensorEntry& tensor) const;

    // The bytes of a range of the tensor in the mapped file, with its pages resident; empty if the system cannot ensure
    // that. Throws Error(TSR_IO_ERROR).
    std::span<const std::byte> acquire(const TensorEntry& tensor, uint64_t begin, uint64_t bytes) const;

    // Releases the mapped pages that lie wholly inside the range of the tensor (see MappedFile::drop_pages).
    void drop_pages(const TensorEntry& tensor, uint64_t begin, uint64_t bytes) const;

  private:
    struct Shard;

    GgufFile(Header header, std::vector<std::unique_ptr<Shard>> shards);
    Shard& shard_of(const TensorEntry& tensor, uint64_t begin, uint64_t bytes) const;

    Header header_;
    std::vector<std::unique_ptr<Shard>> shards_;
    std::vector<std::string> added_keys_;
    std::unordered_map<std::string_view, size_t> places_;  // keys point into header_.tensors
};

}  // namespace tessera::gguf
