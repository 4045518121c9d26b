#include "device.hpp"

namespace tessera::cuda {
namespace {

using sdk::Failure;

constexpr unsigned kPortable = 1;    // CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTREGISTER_PORTABLE: on every device
constexpr int kMemoryType = 2;       // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned kHostMemory = 1;  // CU_MEMORYTYPE_HOST

Address address_of(const void* pointer) noexcept {
    return reinterpret_cast<Address>(pointer);
}

std::string bytes_text(const char* doing, uint64_t bytes) {
    return std::string(doing) + " " + std::to_string(bytes) + " bytes";
}

}  // namespace

void* Device::allocate(uint64_t bytes) {
    Address address = 0;
    if (const Result result = driver_.allocate(&address, bytes > 0 ? bytes : 1); result != kSuccess) {
        size_t free = 0, total = 0;
        std::string what = bytes_text("allocating", bytes);
        if (driver_.memory_info(&free, &total) == kSuccess)
            what += ", of " + std::to_string(total) + " are free " + std::to_string(free);
        check(result, "cuMemAlloc", what);
    }
    return reinterpret_cast<void*>(address);
}

void Device::release(void* address) {
    check(driver_.free(address_of(address)), "cuMemFree", "releasing memory");
}

void Device::memory_info(uint64_t& free, uint64_t& total) {
    size_t free_bytes = 0, total_bytes = 0;
    check(driver_.memory_info(&free_bytes, &total_bytes), "cuMemGetInfo", "asking for its memory");
    free = free_bytes;
    total = total_bytes;
}

void* Device::allocate_pinned(uint64_t bytes) {
    void* address = nullptr;
    check(driver_.host_allocate(&address, bytes > 0 ? bytes : 1, kPortable), "cuMemHostAlloc",
          bytes_text("allocating page-locked memory,", bytes));
    return address;
}

void Device::release_pinned(void* address) {
    check(driver_.host_free(address), "cuMemFreeHost", "releasing page-locked memory");
}

void Device::register_host(void* address, uint64_t bytes) {
    check(driver_.host_register(address, bytes, kPortable), "cuMemHostRegister",
          bytes_text("page-locking host memory,", bytes));
}

void Device::unregister_host(void* address) {
    check(driver_.host_unregister(address), "cuMemHostUnregister", "releasing page-locked memory");
}

void Device::require_page_locked(const void* host, const char* what) const {
    if (!recorded_queue_) return;
    unsigned type = 0;
    if (driver_.pointer_attribute(&type, kMemoryType, address_of(host)) == kSuccess && type == kHostMemory) return;
    throw Failure(
        TSR_INVALID_ARGUMENT,
        id_ + ": " + what + " while a recording is made: expected page-locked host memory; found other memory");
}

void Device::upload(tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    require_queue(queue);
    require_page_locked(from, "an upload");
    if (bytes == 0) return;
    check(driver_.upload(address_of(to), from, bytes, queue), "cuMemcpyHtoDAsync", bytes_text("uploading", bytes));
}

void Device::download(tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    require_queue(queue);
    require_page_locked(to, "a download");
    if (bytes == 0) return;
    check(driver_.download(to, address_of(from), bytes, queue), "cuMemcpyDtoHAsync", bytes_text("downloading", bytes));
}

void Device::copy(tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    require_queue(queue);
    if (bytes == 0) return;
    check(driver_.copy(address_of(to), address_of(from), bytes, queue), "cuMemcpyDtoDAsync",
          bytes_text("copying", bytes));
}

}  // namespace tessera::cuda
