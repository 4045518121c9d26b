// What devices can do a second, where nobody measured it: by their names, else by their generation.
#pragma once

#include "core/hardware/hardware.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

// Bytes/s that copies over a link reach in one direction: "pcie4x16" (generations 1 to 6, 1 to 16 lanes) or
// "nvlink-c2c". Nothing for another name. Any thread.
std::optional<double> link_bandwidth(std::string_view link) noexcept;

// Fills in what the description leaves open (0) of processors, clock, memory bandwidth, caches and link bandwidth. For
// a device that the tables do not know it takes figures of its generation; the line returned says which. Empty
// otherwise.
std::string fill_speeds(DeviceDescription& device);

// Bytes/s that a team of `threads` reads from the host's memory: no more than the threads can ask for, less what
// crosses between sockets. `cpu` has its speeds.
double team_bandwidth(const DeviceDescription& cpu, uint32_t threads) noexcept;

}  // namespace tessera
