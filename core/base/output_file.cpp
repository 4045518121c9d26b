#include "core/base/output_file.hpp"

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/system_error.hpp"
#include "core/base/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;          // as the system has it
constexpr size_t kMaxNameBytes = 200;  // of 255, so that the suffix has room
constexpr int kAttempts = 100;

// Names of unfinished files, where a signal handler can read them.
struct Slot {
    enum State : int { kFree, kTaken, kArmed };
    std::atomic<int> state{kFree};
    std::array<char, PATH_MAX> path{};
};
static_assert(std::atomic<int>::is_always_lock_free, "read in signal handlers");
std::array<Slot, 16> g_unfinished;

// -1: no slot is free, or the path is too long for one.
int arm(const fs::path& path) noexcept {
    const std::string& text = path.native();
    if (text.size() >= PATH_MAX) return -1;
    for (size_t i = 0; i < g_unfinished.size(); ++i) {
        int free = Slot::kFree;
        if (!g_unfinished[i].state.compare_exchange_strong(free, Slot::kTaken)) continue;
        std::ranges::copy(text, g_unfinished[i].path.begin());
        g_unfinished[i].path[text.size()] = '\0';
        g_unfinished[i].state.store(Slot::kArmed);
        return static_cast<int>(i);
    }
    return -1;
}

void disarm(int slot) noexcept {
    if (slot >= 0) g_unfinished[static_cast<size_t>(slot)].state.store(Slot::kFree);
}

// "/dev/stdout", "/dev/fd/3", "/proc/self/fd/3": opening these again would lose the position in the file.
std::optional<int> descriptor_of(const fs::path& name) {
    const std::string& text = name.native();
    if (text == "/dev/stdout") return STDOUT_FILENO;
    if (text == "/dev/stderr") return STDERR_FILENO;
    for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
        if (!text.starts_with(folder)) continue;
        int number = -1;
        const char* const end = text.data() + text.size();
        const auto [at, error] = std::from_chars(text.data() + folder.size(), end, number);
        if (error == std::errc() && at == end && number >= 0) return number;
    }
    return std::nullopt;
}

fs::path follow_links(fs::path path) {
    for (int links = 0; links < kMaxLinks; ++links) {
        if (descriptor_of(path)) return path;
        std::error_code error;
        const fs::path target = fs::read_symlink(path, error);
        if (error) return path;
        path = path.parent_path() / target;  // a relative target is relative to the folder of the link
    }
    fail_system(ELOOP, path, "follow");
}

std::string random_suffix() {
    std::random_device device;
    return fmt::format(".{:08x}.part", device());
}

}  // namespace

OutputPlace output_place(const fs::path& name) {
    if (name.empty()) fail(TSR_INVALID_ARGUMENT, "expected the name of a file to write, found an empty one");
    const fs::path path = follow_links(fs::absolute(name));
    if (const auto descriptor = descriptor_of(path)) return {name, true, *descriptor};
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        if (errno != ENOENT) fail_system(errno, name, "examine");
        return {path};
    }
    if (S_ISREG(info.st_mode)) return {path};
    if (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode)) return {name, true};
    fail(TSR_INVALID_ARGUMENT, "{}: expected a file, a pipe or a character device to write to, found {}",
         printable(name.native(), 4096),
         S_ISDIR(info.st_mode)    ? "a folder"
         : S_ISSOCK(info.st_mode) ? "a socket"
                                  : "a disk");
}

OutputFile::OutputFile(const fs::path& name) : place_(output_place(name)) {
    if (!place_.stream) {
        create_part();
        return;
    }
    descriptor_ = place_.descriptor >= 0 ? ::fcntl(place_.descriptor, F_DUPFD_CLOEXEC, 0)
                                         : ::open(place_.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor_ >= 0) return;
    if (errno == EINTR) fail(TSR_CANCELLED, "stopped before anybody read {}", printable(name.native(), 4096));
    fail_system(errno, place_.path, "open");
}

void OutputFile::create_part() {
    std::string own = place_.path.filename();
    own.resize(std::min(own.size(), kMaxNameBytes));
    for (int attempt = 0; descriptor_ < 0 && attempt < kAttempts; ++attempt) {
        part_ = place_.path.parent_path() / (own + random_suffix());
        // Armed first: a signal between the two removes a file that does not exist yet.
        slot_ = arm(part_);
        descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        const int error = errno;
        if (descriptor_ >= 0) break;
        disarm(std::exchange(slot_, -1));
        if (error != EEXIST) fail_system(error, place_.path, "create");
    }
    if (descriptor_ < 0) fail_system(EEXIST, part_, "create");
    struct stat info {};
    if (::stat(place_.path.c_str(), &info) == 0) ::fchmod(descriptor_, info.st_mode & 07777);
}

OutputFile::~OutputFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    if (place_.stream) return;
    ::unlink(part_.c_str());
    disarm(slot_);
}

void OutputFile::append(std::span<const std::byte> data) {
    while (!data.empty()) {
        const ssize_t put = ::write(descriptor_, data.data(), std::min(data.size(), kTransferBytes));
        if (put < 0 && errno == EINTR) {
            if (place_.stream) fail(TSR_CANCELLED, "{}: stopped", printable(place_.path.native(), 4096));
            continue;
        }
        if (put < 0) fail_system(errno, place_.path, "write");
        size_ += static_cast<uint64_t>(put);
        data = data.subspan(static_cast<size_t>(put));
    }
}

void OutputFile::finish() {
    if (place_.stream) {
        if (::close(std::exchange(descriptor_, -1)) != 0) fail_system(errno, place_.path, "write");
        return;
    }
    if (::fsync(descriptor_) != 0) fail_system(errno, place_.path, "write");
    const int closed = ::close(std::exchange(descriptor_, -1));
    const bool renamed = closed == 0 && ::rename(part_.c_str(), place_.path.c_str()) == 0;
    const int error = errno;
    if (!renamed) ::unlink(part_.c_str());
    disarm(std::exchange(slot_, -1));
    if (!renamed) fail_system(error, place_.path, "finish");
}

void OutputFile::remove_unfinished() noexcept {
    const int error = errno;
    for (Slot& slot : g_unfinished) {
        if (slot.state.load() == Slot::kArmed) ::unlink(slot.path.data());
    }
    errno = error;
}

}  // namespace tessera
