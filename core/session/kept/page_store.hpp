// Cache pages in files, so that a process finds what an earlier one has computed.
#pragma once

#include "core/session/kept/page_identity.hpp"
#include "core/session/kept/page_record.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::session {

// Sums since the store was opened, and what it holds now.
struct PageStoreStatus {
    uint64_t written_pages = 0, written_bytes = 0;
    uint64_t read_pages = 0, read_bytes = 0;
    uint64_t damaged_pages = 0;    // dropped as their files were not whole
    uint64_t failures = 0;         // of the system, to write or read one
    uint64_t forgotten_pages = 0;  // to stay below the limit
    uint64_t pages = 0, bytes = 0;
};

// A folder with a folder for each identity, in which each page is a file PATH-PARENT-GROUP: its record and its bytes.
// What there is follows from the names alone, and a file appears under its name when it is whole: a process that is
// killed leaves at most a temporary file, which the next one removes, and what a power failure leaves incomplete its
// checksum tells. So nothing waits for the disk. Nothing that is read is trusted. Folders are for their owner alone
// (0700), files too (0600); symbolic links and what others own are refused. What spaces and keys are called is in no
// name or file: paths begin with a secret that the folder has.
//
// Above the limit the page that was used longest ago goes first, of those that no other follows. Of a text that alone
// exceeds it the beginning stays. Others' identities count, too. Any thread; one process at a time for each identity.
// has(), touch(), forget() and status() never wait for the disk.
class PageStore {
  public:
    // `page_bytes`: of a page of each group. `notes` gets a line for each other identity, and why its pages are not
    // used. Throws Error that says why the folder cannot be used.
    PageStore(const std::filesystem::path& folder, uint64_t limit_bytes, const PageIdentity& identity,
              std::vector<uint64_t> page_bytes, std::vector<std::string>& notes);
    virtual ~PageStore();
    PageStore(const PageStore&) = delete;
    PageStore& operator=(const PageStore&) = delete;

    uint64_t page_bytes(uint32_t group) const { return page_bytes_.at(group); }
    // Before the first page of each text.
    PathId root(std::string_view space);

    // As far as is known without reading the file.
    bool has(const PathId& path, uint32_t group) const;
    // Fills `out`, page_bytes() long. False: there is none, or none that is whole, and has() says so from now on. A
    // file that cannot be read stays, as one that is damaged and cannot be removed; forget() tells of it.
    virtual bool read(const PathId& parent, std::span<const int32_t> tokens, uint32_t group, std::span<std::byte> out);
    // `tokens`: of a whole page. False: the page before it is not there, or would have to go to make room; or writing
    // failed, which is logged for the first of several times, and nothing is tried for half a minute (waits()).
    virtual bool write(const PathId& parent, std::span<const int32_t> tokens, uint32_t group,
                       std::span<const std::byte> bytes);
    bool waits() const;
    // Forgets that a page is there and adds its files, which are for remove(), those that stayed when it
    // was dropped, too. False: pages that follow it are there.
    bool forget(const PathId& path, std::vector<std::string>& files);
    // All that can be; throws Error(TSR_IO_ERROR) about the first that cannot. One that is not there is none.
    void remove(std::span<const std::string> files);
    // Counts as use of the pages of a path, the last one first.
    void touch(std::span<const PathId> path);
    // Keeps for later processes when pages were used, as long as `go_on` says so.
    void keep_times(const std::function<bool()>& go_on);

    PageStoreStatus status() const;

  protected:
    enum class Found { kWhole, kDamaged, kNone, kFailed };
    // Of the file of that name. `why`: what is wrong with it.
    virtual Found read_file(const std::string& name, const PageRecord& expected, std::span<std::byte> out,
                            std::string& why);

  private:
    // A descriptor of the process.
    class Handle {
      public:
        explicit Handle(int descriptor = -1) noexcept : descriptor_(descriptor) {}
        ~Handle();
        Handle(Handle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
        Handle& operator=(Handle&& other) noexcept {
            std::swap(descriptor_, other.descriptor_);
            return *this;
        }
        int get() const noexcept { return descriptor_; }

      private:
        int descriptor_;
    };
    struct Entry {
        PathId parent{};
        std::vector<uint64_t> files;  // which one each group has, a number of its own; 0: none
        uint64_t used = 0;            // clock_
        bool touched = false;         // since keep_times() or the start
    };
    using Entries = std::map<PathId, Entry>;
    // A file of another identity, and when it was used.
    struct OtherFile {
        std::pair<int64_t, int64_t> time;  // seconds and nanoseconds
        std::string name;                  // in the whole folder
        uint64_t bytes;
        auto operator<=>(const OtherFile&) const = default;
    };

    void open_folder(const std::filesystem::path& folder, const PageIdentity& identity);
    void read_secret();
    void list_own();
    void drop_rings();
    void list_others(const PageIdentity& identity, std::vector<std::string>& notes);
    void list_other(const std::string& name, const PageIdentity& identity, std::vector<std::string>& notes);
    uint64_t file_bytes(uint32_t group) const { return kRecordBytes + page_bytes_[group]; }
    void write_file(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> bytes);
    // With mutex_ held.
    uint64_t file_of(const PathId& path, uint32_t group) const;
    void not_left(const PathId& path, const std::string& file);
    void add(const PathId& path, const PathId& parent, uint32_t group);
    void drop(const PathId& path, uint32_t group);
    void use(Entries::iterator at);
    bool is_leaf(const PathId& path) const { return !children_.contains(path); }
    // False: there is not so much but for these pages, the one that is to be written and the one before it. Adds the
    // files of what goes, which are for remove().
    bool make_room(uint64_t bytes, std::vector<std::string>& files, const PathId& own = {}, const PathId& before = {});
    void drop_all(const PathId& path, std::vector<std::string>& files);
    void failed(std::string_view what);

    std::filesystem::path path_;  // of the identity's folder
    const uint64_t limit_;
    const std::vector<uint64_t> page_bytes_;
    Digest identity_{};
    std::string own_;  // the folder's name
    Handle whole_, folder_, lock_;
    std::vector<std::byte> secret_;

    mutable std::mutex mutex_;
    Entries entries_;
    std::map<PathId, uint32_t> children_;           // of each page that has some
    std::set<std::pair<uint64_t, PathId>> leaves_;  // pages that no other follows, by use
    std::set<PathId> roots_;                        // that were asked for
    std::map<PathId, std::set<std::string>> left_;  // files of pages that are not there: none could be removed
    std::set<OtherFile> others_;
    uint64_t clock_ = 0, parts_ = 0, files_ = 0, other_bytes_ = 0;
    bool failing_ = false;
    std::chrono::steady_clock::time_point waits_until_;
    PageStoreStatus status_;
};

}  // namespace tessera::session
