// What placement options say of devices, in terms of those that can be used.
#pragma once

#include "core/hardware/hardware.hpp"
#include "core/plan/options.hpp"

#include <string>
#include <vector>

namespace tessera {

// A device that no plugin owns.
struct UnusableDevice {
    std::string id, name, why;
};

// The options with devices of rules as the hardware writes their ids, and with one share for each usable device but the
// CPU. Shares are given in the order of the hardware's
// devices, all but the CPU: the numbering of `tessera devices`. Throws Error: TSR_INVALID_ARGUMENT for more shares than
// devices, for a share above 0 of one that cannot be used, and where no share is left; TSR_NOT_FOUND for a rule that
// names a device that cannot be used. Shares where there is no device but the CPU have no effect.
PlacementOptions of_usable(PlacementOptions asked, const Hardware& hardware,
                           const std::vector<UnusableDevice>& unusable);

}  // namespace tessera
