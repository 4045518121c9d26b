#include "apps/structure/shared_memory.hpp"

#include "core/base/error.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tessera::structure {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

SharedMemory::SharedMemory(const char* name, size_t bytes)
    : file_(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (!file_ || ftruncate(file_.number(), static_cast<off_t>(bytes)) != 0 ||
        fcntl(file_.number(), F_ADD_SEALS, kSeals) != 0)
        fail(TSR_DOES_NOT_FIT, "the system gave no memory that processes share: {}", std::strerror(errno));
    map(bytes);
}

SharedMemory SharedMemory::opened(OpenFile file, size_t bytes, bool exactly) {
    SharedMemory made;
    made.file_ = std::move(file);
    struct stat status {};
    const int number = made.file_.number();
    const bool is_fixed = made.file_ && (fcntl(number, F_GET_SEALS) & kSeals) == kSeals && fstat(number, &status) == 0;
    if (!is_fixed || status.st_size < 0 || static_cast<size_t>(status.st_size) > bytes ||
        (exactly && static_cast<size_t>(status.st_size) != bytes))
        fail(TSR_CORRUPT_DATA, "memory that another process shares is not what was expected");
    made.map(static_cast<size_t>(status.st_size));
    return made;
}

void SharedMemory::map(size_t bytes) {
    if (bytes == 0) return;
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
    if (at == MAP_FAILED) fail(TSR_DOES_NOT_FIT, "cannot map shared memory: {}", std::strerror(errno));
    bytes_ = {static_cast<std::byte*>(at), bytes};
}

SharedMemory::~SharedMemory() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

}  // namespace tessera::structure
