// The speed of this machine's processor and memory, measured once and kept in a file.
#pragma once

#include "core/hardware/hardware.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
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

// "speed-....toml" in the user's cache folder ($XDG_CACHE_HOME/tessera, else ~/.cache/tessera), by processor and number
// of threads. Nothing if there is no such folder to be had.
std::optional<std::filesystem::path> default_speed_file(const DeviceDescription& cpu);

// What the file has for this processor and number of threads; nothing if it is missing, damaged or of another machine.
std::optional<MachineSpeed> read_speed(const std::filesystem::path& file, const DeviceDescription& cpu);
// Replaces the file as a whole. A folder that cannot be written to is no error: it is measured again next time.
void write_speed(const std::filesystem::path& file, const DeviceDescription& cpu, const MachineSpeed& speed) noexcept;

// Gives `hardware`, this machine, the speed that the file has or, without one, is measured now and kept there. What was
// disturbed is noted, and measured again when it is older than ten minutes. Nothing for a rig.
void apply_speed(Hardware& hardware, const std::optional<std::filesystem::path>& file);

}  // namespace tessera
