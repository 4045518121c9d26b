// Files that are written. Every error is an Error with the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace tessera {

// The file or stream that the name of an output refers to.
struct OutputPlace {
    std::filesystem::path path;  // absolute, with symbolic links followed; of a stream as it was given
    bool stream = false;         // a device, a pipe or an open descriptor: written to as it is, never replaced
    int descriptor = -1;         // of "/dev/stdout", "/dev/fd/N" and the like; the process owns it
};

// Throws Error: TSR_INVALID_ARGUMENT for a folder, a socket or a disk, TSR_NOT_FOUND, TSR_IO_ERROR.
OutputPlace output_place(const std::filesystem::path& name);

// A file that is being written. A regular file is written under a temporary name in its folder and renamed in finish(),
// so that readers see either the old content or all of the new, and of two writers of one name the later one wins.
// Symbolic links are followed, not replaced; permissions of a file that is replaced are kept. What is not finished is
// removed. Streams are written to at once. One thread.
class OutputFile {
  public:
    explicit OutputFile(const std::filesystem::path& name);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    // Throws Error(TSR_CANCELLED) if a signal interrupts it while it waits for a stream.
    void append(std::span<const std::byte> data);
    uint64_t size() const noexcept { return size_; }

    // Flushes the file to the disk, closes and renames it.
    void finish();

    // Removes the files of this process that are not finished. Safe in signal handlers, for
    // signals that end the process.
    static void remove_unfinished() noexcept;

  private:
    void create_part();

    OutputPlace place_;
    std::filesystem::path part_;  // empty: a stream
    int slot_ = -1;               // of the list that remove_unfinished() reads
    int descriptor_ = -1;
    uint64_t size_ = 0;
};

}  // namespace tessera
