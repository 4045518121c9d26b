#include "core/run/host_memory.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tessera {

HostBlock::HostBlock(uint64_t bytes, std::string_view what, bool huge) : size_(bytes) {
    if (bytes == 0) return;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        fail(TSR_DOES_NOT_FIT, "no host memory for {} ({}): {}", what, mebibytes(bytes), std::strerror(errno));
    }
    data_ = static_cast<std::byte*>(at);
    if (huge) madvise(at, bytes, MADV_HUGEPAGE);  // advice: a kernel without huge pages works as well
}

HostBlock::~HostBlock() {
    if (data_) munmap(data_, size_);
}

HostBlock::HostBlock(HostBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

HostBlock& HostBlock::operator=(HostBlock&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

bool HostBlock::lock() const noexcept {
    return size_ == 0 || mlock(data_, size_) == 0;
}

}  // namespace tessera
