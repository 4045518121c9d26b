#include "core/session/kept/slot_file.hpp"

#include "core/base/error.hpp"
#include "core/base/system_error.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tessera::session {
namespace {

constexpr std::string_view kSlotMagic("TSRSLOT\0", 8);
constexpr std::string_view kSlotPart = ".part-";
constexpr int kPartTries = 8;  // names; behind them what a file system says of one is not believed

// What a file begins with; the identity's text follows, then the pages.
struct SlotHeader {
    char magic[8];
    uint32_t format;
    uint32_t identity_bytes;
    uint32_t tokens;
    uint32_t pages;
    uint32_t identity_checksum;
    uint32_t own_checksum;  // of all before it
};
static_assert(sizeof(SlotHeader) == 32);

uint32_t header_checksum(const SlotHeader& header) {
    return checksum_of(std::as_bytes(std::span(&header, 1)).first(offsetof(SlotHeader, own_checksum)));
}

// Calls body(entry) for what is in the folder, as far as it can be read.
template <typename Body>
void each_entry(const std::filesystem::path& folder, Body&& body) {
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        body(*at);
}

// Of writers that are no more: nobody holds the lock.
void remove_parts(const std::filesystem::path& folder) {
    each_entry(folder, [](const std::filesystem::directory_entry& entry) {
        if (!entry.path().filename().string().starts_with(kSlotPart)) return;
        const int part = open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (part < 0) return;
        struct stat info {};
        if (fstat(part, &info) == 0 && S_ISREG(info.st_mode) && flock(part, LOCK_EX | LOCK_NB) == 0)
            unlink(entry.path().c_str());
        close(part);
    });
}

}  // namespace

void open_slot_folder(const std::filesystem::path& folder) {
    std::error_code error;
    if (const auto parent = std::filesystem::absolute(folder).parent_path(); !parent.empty())
        std::filesystem::create_directories(parent, error);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail_system(errno, folder, "make this folder for slots");
    const int own = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) fail_system(errno, folder, "save slots in this folder");
    close(own);
    if (access(folder.c_str(), W_OK | X_OK) != 0) fail_system(errno, folder, "save slots in this folder");
    remove_parts(folder);
    each_entry(folder, [&](const std::filesystem::directory_entry& entry) {
        if (parse_path(entry.path().filename().string()) && !entry.is_symlink(error)) remove_parts(entry.path());
    });
}

SlotReader::SlotReader(const gguf::ByteSource& source, const PageIdentity& here, std::span<const uint64_t> page_bytes)
    : source_(source), page_bytes_(page_bytes), identity_(here.digest()) {
    SlotHeader header;
    if (source.size() < sizeof header)
        fail(TSR_CORRUPT_DATA, "{}: it has {} bytes and is no saved slot", source.name(), source.size());
    source.read(0, std::as_writable_bytes(std::span(&header, 1)));
    if (std::string_view(header.magic, sizeof header.magic) != kSlotMagic)
        fail(TSR_CORRUPT_DATA, "{}: it does not begin as a saved slot does", source.name());
    if (header.own_checksum != header_checksum(header))
        fail(TSR_CORRUPT_DATA, "{}: its header is damaged", source.name());
    if (header.format != kPageFormat)
        fail(TSR_UNSUPPORTED, "{}: format {} of saved slots; this version reads and writes {}", source.name(),
             header.format, kPageFormat);
    at_ = sizeof header;
    if (header.identity_bytes > kMaxIdentityBytes || header.identity_bytes > source.size() - at_)
        fail(TSR_CORRUPT_DATA, "{}: it ends within its header", source.name());
    std::string text(header.identity_bytes, '\0');
    source.read(at_, std::as_writable_bytes(std::span(text)));
    at_ += text.size();
    if (checksum_of(std::as_bytes(std::span(text))) != header.identity_checksum)
        fail(TSR_CORRUPT_DATA, "{}: its header is damaged", source.name());
    if (const auto other = parse_identity(text).difference(here))
        fail(TSR_INVALID_ARGUMENT, "{}: it was saved with another {}", source.name(), *other);
    tokens_ = header.tokens;
    pages_ = header.pages;
}

bool SlotReader::next(SlotPage& page) {
    if (pages_ == 0) {
        if (read_tokens_ != tokens_ || at_ != source_.size())
            fail(TSR_CORRUPT_DATA, "{}: it has pages of {} tokens and {} bytes behind them, expected {} and none",
                 source_.name(), read_tokens_, source_.size() - at_, tokens_);
        return false;
    }
    std::array<std::byte, kRecordBytes> bytes;
    if (source_.size() - at_ < bytes.size())
        fail(TSR_CORRUPT_DATA, "{}: it ends {} pages early", source_.name(), pages_);
    source_.read(at_, bytes);
    at_ += bytes.size();
    const PageRecord record = parse_record(bytes);
    const bool first = record.group == 0;
    if (record.identity != identity_ || record.group >= page_bytes_.size() || record.bytes != page_bytes_[record.group])
        fail(TSR_CORRUPT_DATA, "{}: a page is of another model or cache", source_.name());
    if (first) {
        if (record.parent != parent_ || (last_ && last_->count < TSR_PAGE_TOKENS))
            fail(TSR_CORRUPT_DATA, "{}: a page does not follow the one before it", source_.name());
        parent_ = record.path();
        read_tokens_ += record.count;
    } else if (!last_ || record.group <= last_->group || record.parent != last_->parent ||
               record.tokens != last_->tokens || record.count != last_->count) {
        fail(TSR_CORRUPT_DATA, "{}: a page of group {} is not of the tokens before it", source_.name(), record.group);
    }
    if (read_tokens_ > tokens_) fail(TSR_CORRUPT_DATA, "{}: it has pages of too many tokens", source_.name());
    if (source_.size() - at_ < record.bytes)
        fail(TSR_CORRUPT_DATA, "{}: it ends {} pages early", source_.name(), pages_);
    page.bytes.resize(record.bytes);
    source_.read(at_, page.bytes);
    at_ += record.bytes;
    if (const uint32_t own = checksum_of(page.bytes); own != record.checksum)
        fail(TSR_CORRUPT_DATA, "{}: a page is damaged: its checksum is {:08x}, expected {:08x}", source_.name(), own,
             record.checksum);
    page.record = record;
    last_ = record;
    --pages_;
    return true;
}

SlotWriter::SlotWriter(std::filesystem::path path, const PageIdentity& identity, uint32_t tokens, uint32_t pages)
    : path_(std::move(path)), identity_(identity.digest()) {
    const std::string text = identity.text();
    SlotHeader header{};
    std::copy_n(kSlotMagic.data(), kSlotMagic.size(), header.magic);
    header.format = kPageFormat;
    header.identity_bytes = static_cast<uint32_t>(text.size());
    header.tokens = tokens;
    header.pages = pages;
    header.identity_checksum = checksum_of(std::as_bytes(std::span(text)));
    header.own_checksum = header_checksum(header);
    open_part();
    try {
        write(std::as_bytes(std::span(&header, 1)));
        write(std::as_bytes(std::span(text)));
    } catch (...) {
        close(descriptor_);
        unlink(part_.c_str());
        throw;
    }
}

// With a name that no other writer has.
void SlotWriter::open_part() {
    for (int left = kPartTries;; --left) {
        std::string name = (path_.parent_path() / kSlotPart).string() + "XXXXXX";
        descriptor_ = mkostemp(name.data(), O_CLOEXEC);
        if (descriptor_ < 0) fail_system(errno, path_, "write this file");
        part_ = std::move(name);
        // A process that starts may have taken it for one that is left over, before it was locked. Where the file
        // system has no locks, none can.
        struct stat info {};
        const bool locked_by_other = flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        const bool removed = fstat(descriptor_, &info) == 0 && info.st_nlink == 0;
        if ((!locked_by_other && !removed) || left == 0) return;
        close(std::exchange(descriptor_, -1));
        unlink(part_.c_str());
    }
}

SlotWriter::~SlotWriter() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    unlink(part_.c_str());
}

void SlotWriter::write(std::span<const std::byte> bytes) {
    bytes_ += bytes.size();
    while (!bytes.empty()) {
        const ssize_t done = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kTransferBytes));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail_system(done < 0 ? errno : EIO, path_, "write this file");
        bytes = bytes.subspan(static_cast<size_t>(done));
    }
}

void SlotWriter::add(SlotPage& page) {
    page.record.identity = identity_;
    page.record.bytes = page.bytes.size();
    page.record.checksum = checksum_of(page.bytes);
    write(write_record(page.record));
    write(page.bytes);
}

uint64_t SlotWriter::finish() {
    if (rename(part_.c_str(), path_.c_str()) != 0) fail_system(errno, path_, "write this file");
    close(std::exchange(descriptor_, -1));
    return bytes_;
}

}  // namespace tessera::session
