// Keeps the measured speed of this machine in a file of the user's cache folder, and decides when to measure again.
#pragma once

#include "core/hardware/hardware.hpp"
#include "core/hardware/measure.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>

namespace tessera {

struct KeptSpeed {
    MachineSpeed speed;
    std::chrono::system_clock::time_point measured;  // whole seconds
    // A run was faster than these figures allow, so that they were measured in a bad moment.
    bool is_outrun = false;
    // Measuring again after such a run gave no more, so that faster runs no longer count.
    bool is_confirmed = false;
};

// "speed-....toml" in the user's cache folder ($XDG_CACHE_HOME/tessera, else ~/.cache/tessera), named by processor and
// number of threads. Nothing if no such folder exists.
std::optional<std::filesystem::path> default_speed_file(const DeviceDescription& cpu);

// Returns what the file has for this processor and number of threads; nothing if it is missing, damaged or of another
// machine.
std::optional<KeptSpeed> read_speed(const std::filesystem::path& file, const DeviceDescription& cpu);
// Replaces the file as a whole. A folder that cannot be written to is no error: the speed is measured again next time.
void write_speed(const std::filesystem::path& file, const DeviceDescription& cpu, const KeptSpeed& kept) noexcept;

// Replaced by tests.
struct SpeedSource {
    std::function<MachineSpeed(const DeviceDescription&)> measure = measure_speed;
    std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
};

// Gives `hardware`, if it is this machine, the speed that the file has. Measures, and writes the file, where it has
// none, where its figures are older than a day (ten minutes if the measurement was disturbed), or where a run outran
// them. A figure rises to what was measured, if that is at least 5 % more, and falls by at most 10 % a day, so that it
// follows a machine that has become slower but not one that was busy. Does nothing for a rig.
void apply_speed(Hardware& hardware, const std::optional<std::filesystem::path>& file, const SpeedSource& source = {});

// Notes in the file that a run reached `ratio` times the speed predicted from its figures. If that is clearly more than
// 1, the next apply_speed() measures again. A file that does not exist or cannot be written is no error.
void note_run_speed(const std::filesystem::path& file, const DeviceDescription& cpu, double ratio) noexcept;

}  // namespace tessera
