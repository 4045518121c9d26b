// Files that are read. Every error is an Error with the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

// Bytes to read or write at once: the system moves at most 2 GiB less a page.
inline constexpr size_t kTransferBytes = size_t{1} << 30;

// A regular file, open for reading. Movable; all const functions may be called from any thread at once.
class File {
  public:
    // Throws Error: TSR_NOT_FOUND if there is no such file, TSR_INVALID_ARGUMENT if it is not a regular file (a folder,
    // a pipe), else TSR_IO_ERROR.
    explicit File(std::filesystem::path path);
    ~File();
    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;

    const std::filesystem::path& path() const noexcept { return path_; }
    uint64_t size() const noexcept { return size_; }  // bytes, at the time of opening
    int descriptor() const noexcept { return descriptor_; }

    // Fills `out` from `offset`. Throws Error(TSR_IO_ERROR) if the file ends before that.
    void pread_exact(uint64_t offset, std::span<std::byte> out) const;

    // Tells the system that the range is needed soon, or no longer (its pages may leave the page cache). Only advice:
    // nothing is thrown.
    void advise_will_need(uint64_t offset, uint64_t bytes) const noexcept;
    void drop_cached(uint64_t offset, uint64_t bytes) const noexcept;

  private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    uint64_t size_ = 0;
};

// A whole file, mapped for reading. If another process shortens the file meanwhile, touching the lost part raises
// SIGBUS: callers that cannot exclude this read with File::pread_exact instead.
class MappedFile {
  public:
    explicit MappedFile(const File& file);  // the file may be closed afterwards
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;

    std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

    // Reads the range in and maps it, so that touching it takes no fault and raises no SIGBUS (unless the file is
    // shortened later). False if this system cannot do that. Throws Error(TSR_IO_ERROR) naming `name`. Any thread.
    bool read_in(uint64_t offset, uint64_t bytes, std::string_view name) const;

    // Starts reading the range ahead.
    void will_need(uint64_t offset, uint64_t bytes) const noexcept;

    // Releases the pages that lie wholly inside the range: they no longer count as resident memory of this process,
    // and the next access reads them again, usually from the page cache. Any thread.
    void drop_pages(uint64_t offset, uint64_t bytes) const noexcept;

  private:
    const std::byte* data_ = nullptr;
    size_t size_ = 0;
};

// All of a text that is read once: a regular file, a pipe or a device, of at most `limit` bytes. Throws what File
// throws, and Error(TSR_DOES_NOT_FIT) for a longer one.
std::string read_all(const std::filesystem::path& path, uint64_t limit);

}  // namespace tessera
