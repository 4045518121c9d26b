// A simulated GPU, and the provider that opens them.
#pragma once

#include "address_space.hpp"
#include "failures.hpp"

#include <tessera/device.h>

#include <memory>
#include <string>

namespace tessera::simulated {

// What the two CUDA plugins divide the world by: 100 * major + 10 * minor.
inline constexpr uint32_t kLeastCapability = 600;
inline constexpr uint32_t kAmpere = 800;

// Of its devices and kernels: addresses are those of AddressSpace.
inline constexpr char kInterop[] = "tessera-simulated/1";

class Device : public tsr_device {
  public:
    explicit Device(const tsr_device_info& device);

    std::string id() const { return info->id ? info->id : "?"; }
    AddressSpace& memory() noexcept { return memory_; }
    Failures& failures() noexcept { return *failures_; }

    // Where `bytes` at a device address are. Throws sdk::Failure(TSR_INVALID_ARGUMENT) that says whether the address is
    // a foreign one or the bytes go past the end of an allocation; `what` makes the name of what was asked for, then
    // only.
    template <class What>
    char* resolve(const void* address, uint64_t bytes, What&& what) const {
        char* found = memory_.resolve(address, bytes);
        if (!found) refuse_address(address, bytes, what());
        return found;
    }

    // Throws if a host pointer is in truth one of the device's addresses.
    void require_host(const void* pointer, const char* what) const;

    // A mistake in a function that returns no status; told by the next one that does.
    void remember(const std::string& mistake);
    void tell_mistake();

  private:
    [[noreturn]] void refuse_address(const void* address, uint64_t bytes, const std::string& what) const;

    AddressSpace memory_;
    std::shared_ptr<Failures> failures_;
    std::mutex mutex_;
    std::string mistake_;
};

extern const tsr_device_provider kProvider;

}  // namespace tessera::simulated
