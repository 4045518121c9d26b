// Measures the speed of this machine's processor and memory. speed_file.hpp keeps it.
#pragma once

#include "core/hardware/hardware.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

struct MachineSpeed {
    double clock_hz = 0;          // of one core, as an addition that waits for the one before sees it
    double thread_bandwidth = 0;  // bytes/s that one thread reads from memory
    double memory_bandwidth = 0;  // bytes/s that `cpu.threads` threads read together
    bool is_disturbed = false;    // other processes took processors from the measurement: the machine is faster
};

// Takes some 50 ms, in which as many threads run as `cpu` has; the best of several rounds counts. On a machine that
// does other work at the same time it goes on for up to 400 ms, and says if it found no quiet moment.
MachineSpeed measure_speed(const DeviceDescription& cpu);

// Bytes/s that `threads` threads together read from memory, each of them its own `bytes_each`, in each of `rounds`
// rounds. Nothing if there is not so much memory.
std::vector<double> measure_reads(uint32_t threads, size_t bytes_each, uint32_t rounds);

}  // namespace tessera
