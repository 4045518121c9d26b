// The processor, from the kernel's files in /sys and /proc.
#include "core/hardware/cpu_flags.hpp"
#include "core/hardware/probe.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <set>
#include <utility>

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string model_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.rfind("model name", 0) != 0) continue;
        const size_t value = line.find(": ");
        if (value != std::string::npos) return line.substr(value + 2);
    }
    return "unknown processor";
}

fs::path cpu_folder(uint32_t cpu) {
    return "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
}

uint32_t count_cores(const std::vector<uint32_t>& cpus) {
    std::set<std::pair<std::string, std::string>> cores;
    for (const uint32_t cpu : cpus) {
        const std::string core = read_line(cpu_folder(cpu) / "topology/core_id");
        if (core.empty()) return static_cast<uint32_t>(cpus.size());
        cores.emplace(read_line(cpu_folder(cpu) / "topology/physical_package_id"), core);
    }
    return static_cast<uint32_t>(cores.size());
}

uint32_t count_sockets(const std::vector<uint32_t>& cpus) {
    std::set<std::string> sockets;
    for (const uint32_t cpu : cpus) sockets.insert(read_line(cpu_folder(cpu) / "topology/physical_package_id"));
    return static_cast<uint32_t>(sockets.size());
}

// "32768K"
uint64_t cache_size(const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value > (1u << 30)) return 0;
    if (*end == 'K') return value << 10;
    return *end == 'M' ? value << 20 : value;
}

void read_caches(const std::vector<uint32_t>& cpus, DeviceDescription& device) {
    std::set<std::string> counted;  // caches that several CPUs share, each counted once, by who shares it
    for (const uint32_t cpu : cpus) {
        for (int i = 0; i < 8; ++i) {
            const fs::path folder = cpu_folder(cpu) / "cache" / ("index" + std::to_string(i));
            const std::string level = read_line(folder / "level");
            const std::string type = read_line(folder / "type");
            if (level.empty() || type == "Instruction") continue;
            const uint64_t bytes = cache_size(read_line(folder / "size"));
            if (level == "1") device.l1_bytes = bytes;
            if (level == "2") device.l2_bytes = bytes;
            if (level == "3" && counted.insert(read_line(folder / "shared_cpu_list")).second) device.l3_bytes += bytes;
        }
    }
}

}  // namespace

std::vector<uint32_t> parse_cpu_list(const std::string& text) {
    constexpr uint32_t kMaximumCpus = 1 << 16;
    std::vector<uint32_t> cpus;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
        uint32_t first = 0;
        auto parsed = std::from_chars(at, end, first);
        if (parsed.ec != std::errc()) break;
        uint32_t last = first;
        if (parsed.ptr < end && *parsed.ptr == '-') {
            parsed = std::from_chars(parsed.ptr + 1, end, last);
            if (parsed.ec != std::errc()) break;
        }
        if (last < first || last >= kMaximumCpus) break;
        for (uint32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
        if (parsed.ptr < end && *parsed.ptr != ',') break;
        at = parsed.ptr + 1;
    }
    return cpus;
}

DeviceDescription probe_cpu(std::span<const NumaNode> nodes) {
    const std::vector<uint32_t> cpus = allowed_cpus();
    const HostMemory memory = probe_host_memory();
    DeviceDescription device;
    device.kind = "cpu";
    device.id = "CPU";
    device.name = model_name();
    device.memory_bytes = memory.total_bytes;
    device.free_memory_bytes = memory.free_bytes;
    device.cpu_flags = host_cpu_flags();
    device.threads = std::max(1u, std::min(count_cores(cpus), probe_cpu_quota().value_or(UINT32_MAX)));
    device.processors = count_cores(cpus);
    device.sockets = count_sockets(cpus);
    device.numa_nodes = static_cast<uint32_t>(nodes.size());
    read_caches(cpus, device);
    return device;
}

}  // namespace tessera
