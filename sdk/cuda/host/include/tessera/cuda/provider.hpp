// Devices of kind "cuda" over the driver, with the whole interface of tessera/device.h, for a plugin to offer.
#pragma once

#include <tessera/cuda/driver.hpp>
#include <tessera/device.h>

#include <cstdint>

namespace tessera::cuda {

inline constexpr const char* kKind = "cuda";
inline constexpr const char* kInterop = "cuda-driver/1";

// The cards that a provider owns; both bounds are included. Compute capabilities are 100 * major + 10 * minor.
struct CardRange {
    uint32_t minimum, maximum;
    uint32_t trial = 0;  // cards of this major version from here on, too: what a build has code for to try it there

    constexpr bool contains(uint32_t capability) const noexcept {
        return (capability >= minimum && capability <= maximum) ||
               (trial != 0 && capability >= trial && capability / 100 == trial / 100);
    }
};

// A provider of the cards of `range`, which lives as long as the provider. Its match is pure; its open fails, with a
// status that says why, where there is no driver.
tsr_device_provider make_provider(const CardRange& range) noexcept;

}  // namespace tessera::cuda
