// The arenas of a plan, allocated: exactly the bytes that it counted.
#pragma once

#include "core/plan/plan.hpp"
#include "core/run/host_memory.hpp"

#include <tessera/device.h>

#include <memory>
#include <vector>

namespace tessera {

// An opened device with a queue. Closes both.
class OpenDevice {
  public:
    OpenDevice(const tsr_device_provider& provider, const tsr_device_info& info);
    ~OpenDevice();
    OpenDevice(const OpenDevice&) = delete;
    OpenDevice& operator=(const OpenDevice&) = delete;

    // Zero bytes give nullptr. Released with the device.
    void* allocate(uint64_t bytes);
    void upload(void* to, const void* from_host, uint64_t bytes);
    void download(void* to_host, const void* from, uint64_t bytes);
    void copy(void* to, const void* from, uint64_t bytes);
    void wait();

    void* queue() const noexcept { return queue_; }
    tsr_device* abi() const noexcept { return device_; }
    const tsr_device_info& info() const noexcept { return *info_; }

  private:
    void check(const tsr_status* status, const char* what) const;

    const tsr_device_info* info_;
    tsr_device* device_ = nullptr;
    void* queue_ = nullptr;
    std::vector<void*> blocks_;
};

class PlanMemory {
  public:
    // Throws Error(TSR_DOES_NOT_FIT) naming device and bytes.
    PlanMemory(const Plan& plan, const Registry& registry);

    // Start of an instance; an address of its device. Instances in loading memory and in mapped files have none here.
    void* address(const Instance& instance, tsr_role role) const;
    void* workspace(DeviceIndex device) const { return arenas_[device].workspace; }
    std::byte* staging() const { return host_staging_.data(); }
    // nullptr for the CPU.
    OpenDevice* device(DeviceIndex device) const { return devices_[device].get(); }

    // Writes to every page of the host's arenas, so that the system has given them before the first step.
    void touch_host();
    // Locks the host's arenas in memory. False if the system allows only part of it.
    bool lock_host() const;

  private:
    struct Arenas {
        void* weights = nullptr;
        void* cache = nullptr;
        void* activations = nullptr;
        void* workspace = nullptr;
    };

    std::vector<std::unique_ptr<OpenDevice>> devices_;
    std::vector<Arenas> arenas_;
    HostBlock host_weights_, host_cache_, host_activations_, host_workspace_, host_staging_;
};

}  // namespace tessera
