// Sources of the bytes of a header.
#pragma once

#include "core/base/file.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tessera::gguf {

class ByteSource {
  public:
    virtual ~ByteSource() = default;
    virtual uint64_t size() const noexcept = 0;
    virtual std::string name() const = 0;  // for messages
    // offset + out.size() <= size().
    virtual void read(uint64_t offset, std::span<std::byte> out) const = 0;
};

// `file` outlives the source.
class FileSource final : public ByteSource {
  public:
    explicit FileSource(const File& file) : file_(file) {}
    uint64_t size() const noexcept override { return file_.size(); }
    std::string name() const override;
    void read(uint64_t offset, std::span<std::byte> out) const override { file_.pread_exact(offset, out); }

  private:
    const File& file_;
};

// Bytes in memory of the caller, which outlives the source. With a `size` beyond them the rest of the file reads as
// zeros, as in a sparse file.
class MemorySource final : public ByteSource {
  public:
    explicit MemorySource(std::span<const std::byte> bytes, std::string name = "memory")
        : MemorySource(bytes, std::move(name), bytes.size()) {}
    MemorySource(std::span<const std::byte> bytes, std::string name, uint64_t size)
        : bytes_(bytes), name_(std::move(name)), size_(size) {}
    uint64_t size() const noexcept override { return size_; }
    std::string name() const override { return name_; }
    void read(uint64_t offset, std::span<std::byte> out) const override;

  private:
    std::span<const std::byte> bytes_;
    std::string name_;
    uint64_t size_;
};

}  // namespace tessera::gguf
