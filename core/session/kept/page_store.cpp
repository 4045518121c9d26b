#include "core/session/kept/page_store.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/system_error.hpp"
#include "core/base/text.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

namespace tessera::session {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr const char* kSecret = "secret";
constexpr const char* kIdentity = "identity";
constexpr const char* kLock = "lock";
constexpr std::string_view kPart = ".part";
constexpr int kOpen = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;  // a pipe in a file's place is refused, not waited for
constexpr std::chrono::seconds kWait(30);

struct PageName {
    PathId path, parent;
    uint32_t group;
};

std::string file_name(const PathId& path, const PathId& parent, uint32_t group) {
    return fmt::format("{}-{}-{}", path_text(path), path_text(parent), group);
}

std::optional<PageName> parse_file_name(std::string_view name) {
    constexpr size_t kPath = 2 * sizeof(PathId);
    if (name.size() != 2 * kPath + 3 || name[kPath] != '-' || name[2 * kPath + 1] != '-') return std::nullopt;
    const auto path = parse_path(name.substr(0, kPath)), parent = parse_path(name.substr(kPath + 1, kPath));
    const char group = name.back();
    if (!path || !parent || group < '0' || group > '9') return std::nullopt;
    return PageName{*path, *parent, static_cast<uint32_t>(group - '0')};
}

std::pair<int64_t, int64_t> time_of(const struct stat& info) {
    return {info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// A regular file that is this user's.
bool is_own_file(const struct stat& info) {
    return S_ISREG(info.st_mode) && info.st_uid == geteuid();
}

// Calls body(name, info) for everything in the folder.
template <typename Body>
void each_in(int folder, Body&& body) {
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const opened = own < 0 ? nullptr : fdopendir(own);
    if (!opened) {
        if (own >= 0) close(own);
        return;
    }
    const std::unique_ptr<DIR, decltype([](DIR* at) { closedir(at); })> listing(opened);
    std::vector<std::string> names;
    while (const dirent* const entry = readdir(listing.get())) names.emplace_back(entry->d_name);
    for (const std::string& name : names) {
        struct stat info {};
        if (name == "." || name == ".." || fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
        body(name, info);
    }
}

// All of a small file of this user's; nothing if there is none, it is longer, or anything else.
std::optional<std::string> read_small(int folder, const char* name, size_t most) {
    const int descriptor = openat(folder, name, O_RDONLY | kOpen);
    if (descriptor < 0) return std::nullopt;
    std::string text(most + 1, '\0');
    struct stat info {};
    const bool good = fstat(descriptor, &info) == 0 && is_own_file(info);
    const ssize_t got = good ? pread(descriptor, text.data(), text.size(), 0) : -1;
    close(descriptor);
    if (got < 0 || static_cast<size_t>(got) > most) return std::nullopt;
    text.resize(static_cast<size_t>(got));
    return text;
}

// Errno of the failure, or 0.
int write_all(int descriptor, std::span<const std::byte> head, std::span<const std::byte> bytes) {
    while (!head.empty() || !bytes.empty()) {
        iovec parts[2] = {{const_cast<std::byte*>(head.data()), head.size()},
                          {const_cast<std::byte*>(bytes.data()), std::min(bytes.size(), size_t{1} << 30)}};
        const ssize_t done = writev(descriptor, parts, 2);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : EIO;
        const size_t of_head = std::min(head.size(), static_cast<size_t>(done));
        head = head.subspan(of_head);
        bytes = bytes.subspan(static_cast<size_t>(done) - of_head);
    }
    return 0;
}

// Errno of the failure, 0, or -1 for a file that is shorter.
int read_all_of(int descriptor, std::span<std::byte> out, uint64_t at) {
    while (!out.empty()) {
        const ssize_t got =
            pread(descriptor, out.data(), std::min(out.size(), size_t{1} << 30), static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 ? errno : -1;
        out = out.subspan(static_cast<size_t>(got));
        at += static_cast<uint64_t>(got);
    }
    return 0;
}

}  // namespace

PageStore::Handle::~Handle() {
    if (descriptor_ >= 0) close(descriptor_);
}

PageStore::PageStore(const std::filesystem::path& folder, uint64_t limit_bytes, const PageIdentity& identity,
                     std::vector<uint64_t> page_bytes, std::vector<std::string>& notes)
    : limit_(limit_bytes), page_bytes_(std::move(page_bytes)), identity_(identity.digest()) {
    uint64_t all = 0;
    for (uint32_t group = 0; group < page_bytes_.size(); ++group) all += file_bytes(group);
    if (page_bytes_.size() > 10)
        fail(TSR_UNSUPPORTED, "the caches have {} groups; at most 10 are kept", page_bytes_.size());
    if (all > limit_)
        fail(TSR_DOES_NOT_FIT, "one page takes {}, and {} are to hold all", size_text(all), size_text(limit_));
    open_folder(folder, identity);
    read_secret();
    list_own();
    list_others(identity, notes);
    std::vector<std::string> files;
    make_room(0, files);
    remove(files);
}

PageStore::~PageStore() = default;

void PageStore::open_folder(const std::filesystem::path& folder, const PageIdentity& identity) {
    std::error_code ignored;
    if (const auto parent = std::filesystem::absolute(folder).parent_path(); !parent.empty())
        std::filesystem::create_directories(parent, ignored);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail_system(errno, folder, "make this folder");
    // The folder itself may be a link: systemd makes one of a service's cache folder.
    whole_ = Handle(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (whole_.get() < 0) fail_system(errno, folder, "open this folder");
    const auto check = [](int descriptor, const std::filesystem::path& path, mode_t others) {
        struct stat info {};
        if (fstat(descriptor, &info) != 0) fail_system(errno, path, "look at this folder");
        if (info.st_uid != geteuid()) fail(TSR_INVALID_ARGUMENT, "{}: it belongs to another user", path.string());
        if (info.st_mode & others)
            fail(TSR_INVALID_ARGUMENT, "{}: its mode is {:o}, so that other users {}; make it 700", path.string(),
                 info.st_mode & 0777u, others == 0022 ? "can write there" : "can use it");
    };
    check(whole_.get(), folder, 0022);
    PathId half;
    std::copy_n(identity_.begin(), half.size(), half.begin());
    own_ = path_text(half);
    path_ = folder / own_;
    if (mkdirat(whole_.get(), own_.c_str(), 0700) != 0 && errno != EEXIST)
        fail_system(errno, path_, "make this folder");
    folder_ = Handle(openat(whole_.get(), own_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (folder_.get() < 0) fail_system(errno, path_, "open this folder");
    check(folder_.get(), path_, 0077);
    lock_ = Handle(openat(folder_.get(), kLock, O_RDWR | O_CREAT | kOpen, 0600));
    if (lock_.get() < 0) fail_system(errno, path_ / kLock, "open this file");
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) fail_system(errno, path_ / kLock, "lock this file");
        fail(TSR_INVALID_ARGUMENT, "{}: another process keeps its pages there", path_.string());
    }
    const std::string text = identity.text();
    if (read_small(folder_.get(), kIdentity, kMaxIdentityBytes) != text)
        write_file(kIdentity, std::as_bytes(std::span(text)), {});
}

void PageStore::read_secret() {
    auto text = read_small(folder_.get(), kSecret, kSecretBytes);
    if (!text || text->size() != kSecretBytes) {
        text.emplace(kSecretBytes, '\0');
        if (getrandom(text->data(), kSecretBytes, 0) != ssize_t{kSecretBytes})
            fail_system(errno, path_ / kSecret, "draw random bytes for this file");
        write_file(kSecret, std::as_bytes(std::span(*text)), {});
    }
    const auto bytes = std::as_bytes(std::span(*text));
    secret_.assign(bytes.begin(), bytes.end());
}

// Pages whose size says that they are not whole are damaged. What is not a page is left alone.
void PageStore::list_own() {
    struct Listed {
        std::pair<int64_t, int64_t> time;
        PageName name;
    };
    std::vector<Listed> listed;
    each_in(folder_.get(), [&](const std::string& name, const struct stat& info) {
        if (!is_own_file(info)) {
            log().warn("{}: it is no file of this user, and not used", (path_ / name).string());
            return;
        }
        if (name.starts_with(kPart)) {
            unlinkat(folder_.get(), name.c_str(), 0);
            return;
        }
        const std::optional<PageName> page = parse_file_name(name);
        if (!page) return;
        if (page->group >= page_bytes_.size() || static_cast<uint64_t>(info.st_size) != file_bytes(page->group)) {
            log().warn("{}: a page of {} bytes, dropped as damaged", (path_ / name).string(), info.st_size);
            if (unlinkat(folder_.get(), name.c_str(), 0) != 0) left_[page->path].insert(own_ + "/" + name);
            ++status_.damaged_pages;
            return;
        }
        listed.push_back({time_of(info), *page});
    });
    std::ranges::stable_sort(listed, {}, &Listed::time);
    for (const auto& [time, name] : listed) add(name.path, name.parent, name.group);
    drop_rings();
    for (auto& [path, entry] : entries_) entry.touched = false;
}

// Pages that follow themselves, at once or over others, which names alone can say: nobody could find them, and none of
// them would ever be the last.
void PageStore::drop_rings() {
    std::multimap<PathId, PathId> following;
    std::vector<PathId> found;
    for (const auto& [path, entry] : entries_) {
        following.emplace(entry.parent, path);
        if (!entries_.contains(entry.parent)) found.push_back(path);
    }
    std::set<PathId> reached(found.begin(), found.end());
    while (!found.empty()) {
        const auto [begin, end] = following.equal_range(std::exchange(found.back(), {}));
        found.pop_back();
        for (auto at = begin; at != end; ++at) {
            if (reached.insert(at->second).second) found.push_back(at->second);
        }
    }
    std::vector<PathId> rings;
    for (const auto& [path, entry] : entries_) {
        if (!reached.contains(path)) rings.push_back(path);
    }
    std::vector<std::string> files;
    for (const PathId& path : rings) {
        log().warn("{}: a page that follows itself, dropped as damaged", (path_ / path_text(path)).string());
        drop_all(path, files);
    }
    status_.damaged_pages += files.size();
    remove(files);
}

void PageStore::list_others(const PageIdentity& identity, std::vector<std::string>& notes) {
    each_in(whole_.get(), [&](const std::string& name, const struct stat& info) {
        if (S_ISDIR(info.st_mode) && info.st_uid == geteuid() && name != own_ && parse_path(name))
            list_other(name, identity, notes);
    });
}

void PageStore::list_other(const std::string& name, const PageIdentity& identity, std::vector<std::string>& notes) {
    const Handle folder(openat(whole_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (folder.get() < 0) return;
    const Handle lock(openat(folder.get(), kLock, O_RDWR | kOpen));
    if (lock.get() >= 0 && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;  // a process that counts them itself
    uint64_t pages = 0, bytes = 0;
    each_in(folder.get(), [&](const std::string& file, const struct stat& info) {
        if (!is_own_file(info) || (!parse_file_name(file) && !file.starts_with(kPart))) return;
        others_.insert({time_of(info), name + "/" + file, static_cast<uint64_t>(info.st_size)});
        bytes += static_cast<uint64_t>(info.st_size);
        ++pages;
    });
    if (pages == 0) {
        for (const char* const file : {kSecret, kIdentity, kLock}) unlinkat(folder.get(), file, 0);
        unlinkat(whole_.get(), name.c_str(), AT_REMOVEDIR);
        return;
    }
    other_bytes_ += bytes;
    std::string why = "it does not say what they are of";
    try {
        if (const auto text = read_small(folder.get(), kIdentity, kMaxIdentityBytes))
            why = parse_identity(*text).difference(identity).value_or("its name is not that of what it holds");
    } catch (const Error& error) {
        why = error.what();
    }
    notes.push_back(fmt::format("{} pages ({}) in {} are not used: {}", pages, size_text(bytes),
                                (path_.parent_path() / name).string(), why));
}

// Throws Error(TSR_IO_ERROR). Any thread.
void PageStore::write_file(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> bytes) {
    uint64_t number;
    {
        const std::scoped_lock lock(mutex_);
        number = parts_++;
    }
    const std::string part = fmt::format("{}-{}", kPart, number);
    const Handle file(openat(folder_.get(), part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | kOpen, 0600));
    if (file.get() < 0) fail_system(errno, path_ / part, "write this file");
    int error = write_all(file.get(), head, bytes);
    if (error == 0 && renameat(folder_.get(), part.c_str(), folder_.get(), name.c_str()) != 0) error = errno;
    if (error == 0) return;
    unlinkat(folder_.get(), part.c_str(), 0);
    fail_system(error, path_ / name, "write this file");
}

// With mutex_ held, or before others know of the store.
void PageStore::add(const PathId& path, const PathId& parent, uint32_t group) {
    const auto [at, fresh] = entries_.try_emplace(path);
    Entry& entry = at->second;
    if (fresh) {
        entry.parent = parent;
        entry.files.resize(page_bytes_.size());
        if (++children_[parent] == 1) {
            if (const auto before = entries_.find(parent); before != entries_.end())
                leaves_.erase({before->second.used, parent});
        }
    }
    not_left(path, own_ + "/" + file_name(path, parent, group));  // in its place there is a page again
    if (entry.files[group] == 0) {
        ++status_.pages;
        status_.bytes += file_bytes(group);
    }
    entry.files[group] = ++files_;
    use(at);
}

// 0: there is none.
uint64_t PageStore::file_of(const PathId& path, uint32_t group) const {
    const auto at = entries_.find(path);
    return at == entries_.end() ? 0 : at->second.files[group];
}

void PageStore::not_left(const PathId& path, const std::string& file) {
    const auto left = left_.find(path);
    if (left == left_.end()) return;
    left->second.erase(file);
    if (left->second.empty()) left_.erase(left);
}

void PageStore::use(Entries::iterator at) {
    auto& [path, entry] = *at;
    leaves_.erase({entry.used, path});
    entry.used = ++clock_;
    entry.touched = true;
    if (is_leaf(path)) leaves_.emplace(entry.used, path);
}

// Forgets that there is a file.
void PageStore::drop(const PathId& path, uint32_t group) {
    const auto at = entries_.find(path);
    if (at == entries_.end() || at->second.files[group] == 0) return;
    Entry& entry = at->second;
    entry.files[group] = 0;
    --status_.pages;
    status_.bytes -= file_bytes(group);
    if (std::ranges::any_of(entry.files, [](uint64_t file) { return file != 0; })) return;
    leaves_.erase({entry.used, path});
    const PathId parent = entry.parent;
    entries_.erase(at);
    const auto siblings = children_.find(parent);
    if (--siblings->second > 0) return;
    children_.erase(siblings);
    if (const auto before = entries_.find(parent); before != entries_.end())
        leaves_.emplace(before->second.used, parent);
}

PathId PageStore::root(std::string_view space) {
    const PathId path = root_path(secret_, space);
    const std::scoped_lock lock(mutex_);
    roots_.insert(path);
    return path;
}

// So that so many bytes more are within the limit: pages of other identities go first.
bool PageStore::make_room(uint64_t bytes, std::vector<std::string>& files, const PathId& own, const PathId& before) {
    const size_t kept = files.size();
    while (status_.bytes + other_bytes_ + bytes > limit_ && !others_.empty()) {
        const OtherFile other = *others_.begin();
        others_.erase(others_.begin());
        other_bytes_ -= other.bytes;
        files.push_back(other.name);
    }
    bool some = true;
    while (status_.bytes + other_bytes_ + bytes > limit_ && some) {
        const auto oldest = std::ranges::find_if(
            leaves_, [&](const auto& leaf) { return leaf.second != own && leaf.second != before; });
        some = oldest != leaves_.end();
        if (some) drop_all(PathId(oldest->second), files);
    }
    status_.forgotten_pages += files.size() - kept;
    return some;
}

void PageStore::drop_all(const PathId& path, std::vector<std::string>& files) {
    const Entry entry = entries_.at(path);
    for (uint32_t group = 0; group < entry.files.size(); ++group) {
        if (entry.files[group] == 0) continue;
        files.push_back(own_ + "/" + file_name(path, entry.parent, group));
        drop(path, group);
    }
}

bool PageStore::forget(const PathId& path, std::vector<std::string>& files) {
    const std::scoped_lock lock(mutex_);
    if (!is_leaf(path)) return false;
    if (const auto left = left_.extract(path)) files.insert(files.end(), left.mapped().begin(), left.mapped().end());
    if (!entries_.contains(path)) return true;
    const size_t kept = files.size();
    drop_all(path, files);
    status_.forgotten_pages += files.size() - kept;
    return true;
}

void PageStore::remove(std::span<const std::string> files) {
    int error = 0;
    const std::string* first = nullptr;
    for (const std::string& file : files) {
        if (unlinkat(whole_.get(), file.c_str(), 0) == 0 || errno == ENOENT) continue;
        if (!first) error = errno;
        if (!first) first = &file;
        const auto page = file.starts_with(own_) ? parse_file_name(file.substr(own_.size() + 1)) : std::nullopt;
        const std::scoped_lock lock(mutex_);
        if (page) left_[page->path].insert(file);
    }
    if (first) fail_system(error, path_.parent_path() / *first, "remove this file");
}

void PageStore::failed(std::string_view what) {
    ++status_.failures;
    waits_until_ = std::chrono::steady_clock::now() + kWait;
    if (!std::exchange(failing_, true)) log().warn("pages of the cache are not kept for now: {}", what);
}

bool PageStore::has(const PathId& path, uint32_t group) const {
    const std::scoped_lock lock(mutex_);
    return file_of(path, group) != 0;
}

bool PageStore::waits() const {
    const std::scoped_lock lock(mutex_);
    return failing_ && std::chrono::steady_clock::now() < waits_until_;
}

PageStore::Found PageStore::read_file(const std::string& name, const PageRecord& expected, std::span<std::byte> out,
                                      std::string& why) {
    const Handle file(openat(folder_.get(), name.c_str(), O_RDONLY | kOpen));
    if (file.get() < 0) {
        why = std::strerror(errno);
        return errno == ENOENT ? Found::kNone : Found::kFailed;
    }
    struct stat info {};
    if (fstat(file.get(), &info) != 0 || !is_own_file(info)) {
        why = "it is no file of this user";
        return Found::kFailed;
    }
    std::array<std::byte, kRecordBytes> record;
    int error = read_all_of(file.get(), record, 0);
    if (error == 0) error = read_all_of(file.get(), out, kRecordBytes);
    if (error > 0) {
        why = std::strerror(error);
        return Found::kFailed;
    }
    try {
        if (error < 0 || static_cast<uint64_t>(info.st_size) != kRecordBytes + out.size())
            fail(TSR_CORRUPT_DATA, "it has {} bytes, expected {}", info.st_size, kRecordBytes + out.size());
        PageRecord found = parse_record(record);
        const uint32_t checksum = std::exchange(found.checksum, 0);
        if (found != expected) fail(TSR_CORRUPT_DATA, "it is another page than its name says");
        if (const uint32_t own = checksum_of(out); own != checksum)
            fail(TSR_CORRUPT_DATA, "the checksum is {:08x}, expected {:08x}", own, checksum);
    } catch (const Error& fault) {
        why = fault.what();
        return Found::kDamaged;
    }
    futimens(file.get(), nullptr);  // for later processes; if it fails the page is forgotten earlier
    return Found::kWhole;
}

namespace {

PageRecord record_of(const Digest& identity, const PathId& parent, std::span<const int32_t> tokens, uint32_t group,
                     uint64_t bytes) {
    if (tokens.empty() || tokens.size() > TSR_PAGE_TOKENS)
        fail(TSR_INTERNAL, "a page of {} tokens cannot be kept", tokens.size());
    PageRecord record;
    record.identity = identity;
    record.parent = parent;
    record.group = group;
    record.count = static_cast<uint32_t>(tokens.size());
    std::ranges::copy(tokens, record.tokens.begin());
    record.bytes = bytes;
    return record;
}

}  // namespace

bool PageStore::read(const PathId& parent, std::span<const int32_t> tokens, uint32_t group, std::span<std::byte> out) {
    const PageRecord expected = record_of(identity_, parent, tokens, group, page_bytes(group));
    const PathId path = expected.path();
    if (out.size() != expected.bytes) fail(TSR_INTERNAL, "a page of {} bytes, not {}", expected.bytes, out.size());
    uint64_t file;
    {
        const std::scoped_lock lock(mutex_);
        file = file_of(path, group);
    }
    if (file == 0) return false;
    const std::string name = file_name(path, parent, group), place = own_ + "/" + name;
    std::string why;
    const Found found = read_file(name, expected, out, why);
    {
        const std::scoped_lock lock(mutex_);
        if (found == Found::kWhole) {
            ++status_.read_pages;
            status_.read_bytes += kRecordBytes + out.size();
            if (const auto at = entries_.find(path); at != entries_.end()) use(at);
            return true;
        }
        // Forgotten meanwhile, and written anew perhaps: that file is another one.
        if (file_of(path, group) != file) return false;
        drop(path, group);
        if (found != Found::kNone) left_[path].insert(place);
        if (found == Found::kDamaged) ++status_.damaged_pages;
        if (found == Found::kFailed) ++status_.failures;
    }
    if (found == Found::kFailed) log().warn("{}: it could not be read: {}", (path_ / name).string(), why);
    if (found != Found::kDamaged) return false;
    log().warn("{}: dropped as damaged: {}", (path_ / name).string(), why);
    // Should one have been written in its place by now, that it has gone is found when it is read.
    if (unlinkat(folder_.get(), name.c_str(), 0) == 0) {
        const std::scoped_lock lock(mutex_);
        not_left(path, place);
    }
    return false;
}

bool PageStore::write(const PathId& parent, std::span<const int32_t> tokens, uint32_t group,
                      std::span<const std::byte> bytes) {
    PageRecord record = record_of(identity_, parent, tokens, group, page_bytes(group));
    const PathId path = record.path();
    if (bytes.size() != record.bytes) fail(TSR_INTERNAL, "a page of {} bytes, not {}", record.bytes, bytes.size());
    std::vector<std::string> files;
    bool room = false;
    {
        const std::scoped_lock lock(mutex_);
        if (!roots_.contains(parent) && !entries_.contains(parent)) return false;  // nobody could find it
        room = make_room(file_bytes(group), files, path, parent);
    }
    try {
        remove(files);
        if (!room) return false;
        record.checksum = checksum_of(bytes);
        write_file(file_name(path, parent, group), write_record(record), bytes);
    } catch (const Error& error) {
        const std::scoped_lock lock(mutex_);
        failed(error.what());
        return false;
    }
    const std::scoped_lock lock(mutex_);
    if (std::exchange(failing_, false)) log().warn("pages of the cache are kept again");
    ++status_.written_pages;
    status_.written_bytes += file_bytes(group);
    add(path, parent, group);
    return true;
}

void PageStore::touch(std::span<const PathId> path) {
    const std::scoped_lock lock(mutex_);
    for (size_t i = path.size(); i-- > 0;) {
        if (const auto at = entries_.find(path[i]); at != entries_.end()) use(at);
    }
}

// In the order of use, so that the times of the files are, too.
void PageStore::keep_times(const std::function<bool()>& go_on) {
    std::vector<std::pair<uint64_t, std::string>> touched;
    {
        const std::scoped_lock lock(mutex_);
        for (auto& [path, entry] : entries_) {
            if (!std::exchange(entry.touched, false)) continue;
            for (uint32_t group = 0; group < entry.files.size(); ++group)
                if (entry.files[group] != 0) touched.emplace_back(entry.used, file_name(path, entry.parent, group));
        }
    }
    std::ranges::sort(touched);
    // The system's own clock gives many of them the same time.
    timespec times[2]{};
    clock_gettime(CLOCK_REALTIME, &times[1]);
    times[0].tv_nsec = UTIME_OMIT;
    for (const auto& [used, name] : touched) {
        if (!go_on()) return;
        if (++times[1].tv_nsec == 1'000'000'000) times[1] = {times[1].tv_sec + 1, 0};
        utimensat(folder_.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW);
    }
}

PageStoreStatus PageStore::status() const {
    const std::scoped_lock lock(mutex_);
    return status_;
}

}  // namespace tessera::session
