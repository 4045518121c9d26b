// Weights to devices as their source has them: the team fills one half of the loading buffers while devices copy the
// other.
#pragma once

#include "core/plan/plan.hpp"
#include "core/run/loader.hpp"
#include "core/run/memory.hpp"
#include "core/run/team.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tessera {

// Bytes of a weight, and where on its device they go.
struct DeviceUpload {
    const std::string* weight;
    DeviceIndex device;  // not 0
    uint64_t offset;     // in the weight
    uint64_t bytes;      // at most those of one buffer
    void* to;
};

// One thread at a time, but for the source, which the team reads.
class DeviceUploads {
  public:
    // `buffers`: whole pages of host memory, which begin with `count` buffers of equal size, at least one; page-locked
    // as long as this lives, where devices can. All outlive this.
    DeviceUploads(PlanMemory& memory, const WeightSource& source, Team& team, std::span<std::byte> buffers,
                  uint32_t count);
    // Nothing is under way afterwards.
    ~DeviceUploads();
    DeviceUploads(const DeviceUploads&) = delete;
    DeviceUploads& operator=(const DeviceUploads&) = delete;

    // Returns when all is on its device. `done` is told the bytes as they are put under way. Throws what the source
    // throws, and Error naming weight and device.
    void run(std::span<const DeviceUpload> uploads, const std::function<void(uint64_t bytes)>& done);

  private:
    struct Target {
        OpenDevice* device;
        tsr_queue queue;
        tsr_event copied[2];              // of a half of the buffers, all that is for this device
        const std::string* under_way[2];  // of each half the weight that was put under way last; nullptr: none
    };

    Target& target(DeviceIndex device);
    void wait_for_half(uint32_t half);
    void wait_for_all();

    PlanMemory& memory_;
    const WeightSource& source_;
    Team& team_;
    std::span<std::byte> buffers_;
    uint64_t buffer_bytes_;
    uint32_t halves_, of_half_;  // buffers
    std::map<DeviceIndex, Target> targets_;
    std::vector<OpenDevice*> locked_;  // devices that page-locked the buffers
};

}  // namespace tessera
