// The parts of Hardware::detect. Inside this folder only.
#pragma once

#include "core/hardware/hardware.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera {

// The processor, its caches and cores, with the memory that this process may use. `nodes`: those of this machine.
DeviceDescription probe_cpu(std::span<const NumaNode> nodes);

struct ProbedGpus {
    std::vector<DeviceDescription> devices;  // in the driver's order
    std::string driver;                      // "580.65.06"
};

// GPUs that the CUDA driver knows; none if there is no driver or it does not start.
ProbedGpus probe_gpus();

struct HostMemory {
    uint64_t total_bytes = 0;
    uint64_t free_bytes = 0;
};

// What this process may use: the machine's memory, or less where control groups (v1 or v2) limit it. `root` is the root
// of the file system, other than "/" in tests.
HostMemory probe_host_memory(const std::filesystem::path& root = "/");

// Processor time that control groups grant, in whole CPUs, rounded up; nothing if there is no limit.
std::optional<uint32_t> probe_cpu_quota(const std::filesystem::path& root = "/");

// First line of a small system file, without the blanks at its ends; empty if it cannot be read.
std::string read_line(const std::filesystem::path& file);

// "0-3,8,10-11" as the kernel writes lists of CPUs; what is not so written ends the list.
std::vector<uint32_t> parse_cpu_list(const std::string& text);

}  // namespace tessera
