// The cached pages of one text in a file of its own.
#pragma once

#include "core/base/file.hpp"
#include "core/gguf/source.hpp"
#include "core/session/kept/page_identity.hpp"
#include "core/session/kept/page_record.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace tessera::session {

// A page in such a file, of one group. Those of group 0 follow each other from the beginning of the text on; behind
// each are those of other groups that there are of the same tokens, by group.
struct SlotPage {
    PageRecord record;
    std::vector<std::byte> bytes;
};

// Reads page after page; nothing that is read is trusted. One thread.
class SlotReader {
  public:
    // `here`: what reads it. `page_bytes`: of a page of each group. Both and `source` outlive the reader. Throws Error:
    // TSR_CORRUPT_DATA, TSR_UNSUPPORTED for another format, TSR_INVALID_ARGUMENT with the reason for pages of another
    // identity.
    SlotReader(const gguf::ByteSource& source, const PageIdentity& here, std::span<const uint64_t> page_bytes);

    uint32_t tokens() const noexcept { return tokens_; }  // of the whole text
    // False: that was the last. Throws Error(TSR_CORRUPT_DATA).
    bool next(SlotPage& page);

  private:
    const gguf::ByteSource& source_;
    const std::span<const uint64_t> page_bytes_;
    Digest identity_{};
    uint64_t at_ = 0;
    uint32_t tokens_ = 0, pages_ = 0;  // pages: that follow
    uint32_t read_tokens_ = 0;
    std::optional<PageRecord> last_;
    PathId parent_{};  // of the next page of group 0
};

// Makes a folder for such files where there is none, for its owner alone, and removes what writers that have ended left
// unfinished there and in the folders of spaces in it. Throws Error that says why files cannot be written there.
void open_slot_folder(const std::filesystem::path& folder);

// Writes them. The file appears under its name in finish(), for its owner alone (0600). One thread.
class SlotWriter {
  public:
    // Throws Error(TSR_IO_ERROR), as all of its functions do. `pages`: how many will be added.
    SlotWriter(std::filesystem::path path, const PageIdentity& identity, uint32_t tokens, uint32_t pages);
    // What is not finished is removed.
    ~SlotWriter();
    SlotWriter(const SlotWriter&) = delete;
    SlotWriter& operator=(const SlotWriter&) = delete;

    // In the order in which they are read; the record's identity and checksum are filled in.
    void add(SlotPage& page);
    // Returns the bytes of the file.
    uint64_t finish();

  private:
    void open_part();
    void write(std::span<const std::byte> bytes);

    const std::filesystem::path path_;
    std::filesystem::path part_;  // locked as long as it is written
    const Digest identity_;
    int descriptor_ = -1;
    uint64_t bytes_ = 0;
};

}  // namespace tessera::session
