#include "core/base/file.hpp"

#include "core/base/error.hpp"
#include "core/base/system_error.hpp"
#include "core/base/text.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

namespace tessera {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;

// The kernel takes at most what off_t holds; ranges here are clipped to the mapping or file by their callers' sizes.
off_t as_offset(uint64_t value) noexcept {
    return static_cast<off_t>(std::min<uint64_t>(value, std::numeric_limits<off_t>::max()));
}

uint64_t page_bytes() noexcept {
    static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

}  // namespace

void fail_system(int error, const std::filesystem::path& path, std::string_view what) {
    const tsr_code code = error == ENOENT || error == ENOTDIR ? TSR_NOT_FOUND : TSR_IO_ERROR;
    fail(code, "{}: cannot {}: {}", printable(path.native(), 4096), what, std::generic_category().message(error));
}

File::File(std::filesystem::path path) : path_(std::move(path)) {
    // O_NONBLOCK: opening a pipe without a writer must fail below, not wait. It has no effect on regular files.
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) fail_system(errno, path_, "open");
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0) {
        const int error = errno;
        ::close(descriptor_);
        fail_system(error, path_, "examine");
    }
    if (!S_ISREG(info.st_mode)) {
        ::close(descriptor_);
        fail(TSR_INVALID_ARGUMENT, "{}: expected a regular file, found {}", printable(path_.native()),
             S_ISDIR(info.st_mode) ? "a folder" : "a device, pipe or socket");
    }
    size_ = static_cast<uint64_t>(info.st_size);
}

File::~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(size_, other.size_);
    return *this;
}

void File::pread_exact(uint64_t offset, std::span<std::byte> out) const {
    if (offset > size_ || out.size() > size_ - offset) {
        fail(TSR_IO_ERROR, "{}: cannot read {} bytes at {}: the file has {}", printable(path_.native()), out.size(),
             offset, size_);
    }
    while (!out.empty()) {
        const ssize_t got = ::pread(descriptor_, out.data(), std::min(out.size(), kTransferBytes), as_offset(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_system(errno, path_, "read");
        if (got == 0) fail(TSR_IO_ERROR, "{}: was shortened while it was read", printable(path_.native()));
        offset += static_cast<uint64_t>(got);
        out = out.subspan(static_cast<size_t>(got));
    }
}

void File::advise_will_need(uint64_t offset, uint64_t bytes) const noexcept {
    ::posix_fadvise(descriptor_, as_offset(offset), as_offset(bytes), POSIX_FADV_WILLNEED);
}

void File::drop_cached(uint64_t offset, uint64_t bytes) const noexcept {
    if (bytes == 0) return;  // to the system, 0 would mean: to the end of the file
    ::posix_fadvise(descriptor_, as_offset(offset), as_offset(bytes), POSIX_FADV_DONTNEED);
}

MappedFile::MappedFile(const File& file) : size_(file.size()) {
    if (size_ == 0) return;  // the system refuses to map 0 bytes
    // Where large pages of the page cache can be mapped as such.
    constexpr uint64_t kLargePage = uint64_t{2} << 20;
    void* const room =
        ::mmap(nullptr, size_ + kLargePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) fail_system(errno, file.path(), "map");
    const uint64_t skipped = -reinterpret_cast<uintptr_t>(room) % kLargePage;
    std::byte* const begin = static_cast<std::byte*>(room) + skipped;
    void* const at = ::mmap(begin, size_, PROT_READ, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, file.descriptor(), 0);
    if (at == MAP_FAILED) {
        const int error = errno;
        ::munmap(room, size_ + kLargePage);
        fail_system(error, file.path(), "map");
    }
    data_ = begin;
    const uint64_t end = (size_ + page_bytes() - 1) / page_bytes() * page_bytes();
    if (skipped > 0) ::munmap(room, skipped);
    ::munmap(begin + end, size_ + kLargePage - skipped - end);
}

MappedFile::~MappedFile() {
    if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

bool MappedFile::read_in(uint64_t offset, uint64_t bytes, std::string_view name) const {
    if (offset > size_ || bytes > size_ - offset) {
        fail(TSR_IO_ERROR, "{}: cannot read {} bytes at {}: the file has {}", printable(name, 4096), bytes, offset,
             size_);
    }
#ifdef MADV_POPULATE_READ
    const uint64_t begin = offset / page_bytes() * page_bytes();
    while (::madvise(const_cast<std::byte*>(data_) + begin, offset + bytes - begin, MADV_POPULATE_READ) != 0) {
        if (errno == EINTR || errno == EAGAIN) continue;
        if (errno == EINVAL || errno == ENOSYS) return false;  // a system before Linux 5.14
        fail(TSR_IO_ERROR, "{}: cannot read {} bytes at {}: {}", printable(name, 4096), bytes, offset,
             std::generic_category().message(errno == EFAULT ? EIO : errno));
    }
    return true;
#else
    return false;
#endif
}

void MappedFile::will_need(uint64_t offset, uint64_t bytes) const noexcept {
    if (offset >= size_) return;
    const uint64_t end = offset + std::min<uint64_t>(bytes, size_ - offset);
    const uint64_t begin = offset / page_bytes() * page_bytes();
    ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_WILLNEED);
}

void MappedFile::drop_pages(uint64_t offset, uint64_t bytes) const noexcept {
    if (offset >= size_) return;
    const uint64_t page = page_bytes();
    uint64_t end = offset + std::min<uint64_t>(bytes, size_ - offset);
    if (end < size_) end = end / page * page;  // the last page of a file holds nothing else
    const uint64_t begin = (offset + page - 1) / page * page;
    if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

std::string read_all(const std::filesystem::path& path, uint64_t limit) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0) fail_system(errno, path, "open");
    const std::unique_ptr<const int, void (*)(const int*)> owner(&descriptor, [](const int* open) { ::close(*open); });
    std::string text;
    for (size_t size = 0;;) {
        text.resize(size + kReadBytes);
        const ssize_t got = ::read(descriptor, text.data() + size, kReadBytes);
        if (got < 0 && errno == EINTR) fail(TSR_CANCELLED, "{}: stopped while reading", printable(path.native(), 4096));
        if (got < 0) fail_system(errno, path, "read");
        size += static_cast<size_t>(got);
        if (size > limit) {
            fail(TSR_DOES_NOT_FIT, "{}: expected at most {} bytes, found more", printable(path.native(), 4096), limit);
        }
        if (got == 0) {
            text.resize(size);
            return text;
        }
    }
}

}  // namespace tessera
