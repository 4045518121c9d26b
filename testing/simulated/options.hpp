// What a simulated device is: its policy, seed and what it does without.
#pragma once

#include "simulated_failures.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::simulated {

struct Options {
    tsr_simulated_policy policy = TSR_SIMULATED_RANDOM;
    uint64_t seed = 1;
    uint32_t without = 0;            // bits TSR_SIMULATED_NO_*
    std::vector<std::string> lacks;  // ops and element types

    bool lacking(std::string_view name) const noexcept;
};

// Throws sdk::Failure(TSR_INVALID_ARGUMENT) that names what is malformed.
Options options_from(const tsr_simulated_options& given);

}  // namespace tessera::simulated
