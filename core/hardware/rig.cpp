// Rig files: machines that people have, described in TOML.
#include "core/base/error.hpp"
#include "core/base/toml.hpp"
#include "core/hardware/compute_capability.hpp"
#include "core/hardware/cpu_flags.hpp"
#include "core/hardware/hardware.hpp"
#include "core/hardware/speeds.hpp"

#include <algorithm>

namespace tessera {
namespace {

constexpr uint64_t kMaxGpus = 256;

// Rig files list the flags that matter for a choice. Those that every processor with AVX2 has come with it.
constexpr const char* kWithAvx2[] = {"avx", "bmi1", "bmi2",   "pni",    "popcnt",
                                     "sse", "sse2", "sse4_1", "sse4_2", "ssse3"};

// And those that every processor with AVX-512 for bytes has.
constexpr const char* kWithAvx512bw[] = {"avx512f", "avx512cd", "avx512dq", "avx512vl"};

// Both spellings are common; /proc/cpuinfo has the second.
constexpr const char* kSpellings[][2] = {{"avx512vnni", "avx512_vnni"}, {"avx512bf16", "avx512_bf16"},
                                         {"avx512fp16", "avx512_fp16"}, {"avx512vbmi2", "avx512_vbmi2"},
                                         {"avxvnni", "avx_vnni"},       {"sse3", "pni"}};

std::vector<std::string> complete_flags(std::vector<std::string> flags) {
    for (std::string& flag : flags) {
        for (const auto& [written, meant] : kSpellings) {
            if (flag == written) flag = meant;
        }
    }
    if (std::find(flags.begin(), flags.end(), "avx2") != flags.end()) {
        flags.insert(flags.end(), std::begin(kWithAvx2), std::end(kWithAvx2));
    }
    if (std::find(flags.begin(), flags.end(), "avx512bw") != flags.end()) {
        flags.insert(flags.end(), std::begin(kWithAvx512bw), std::end(kWithAvx512bw));
    }
    std::sort(flags.begin(), flags.end());
    flags.erase(std::unique(flags.begin(), flags.end()), flags.end());
    return flags;
}

// What a machine at rest has left: the system takes some 1 GiB of the host's memory; a driver takes a 64th of a card's.
uint64_t free_host_memory(uint64_t total) {
    return total - std::min(total / 4, std::max(total / 128, uint64_t{1} << 30));
}
uint64_t free_card_memory(uint64_t total) {
    return total - std::min(total / 4, std::max(total / 64, uint64_t{256} << 20));
}

// What the tables of this program would say otherwise.
void read_speeds(TomlFile::Table& table, DeviceDescription& device) {
    device.memory_bandwidth = 1e9 * static_cast<double>(table.integer("bandwidth_gb_s", 1, 100000).value_or(0));
    device.clock_hz = 1e6 * static_cast<double>(table.integer("clock_mhz", 100, 10000).value_or(0));
}

DeviceDescription read_cpu(TomlFile::Table table) {
    DeviceDescription cpu;
    cpu.kind = "cpu";
    cpu.id = "CPU";
    cpu.name = table.string("name").value_or("CPU");
    cpu.cpu_flags = complete_flags(table.need(table.strings("flags"), "flags"));
    for (const std::string& flag : cpu.cpu_flags) {
        if (!std::ranges::binary_search(known_cpu_flags(), std::string_view(flag)))
            table.reject(
                "flags",
                "'" + flag +
                    "' is no flag that this program knows; /proc/cpuinfo names them, as in \"avx2\", \"avx512_vnni\"");
    }
    cpu.threads = static_cast<uint32_t>(table.need(table.integer("threads", 1, 65536), "threads"));
    cpu.memory_bytes = table.need(table.size("memory"), "memory");
    cpu.free_memory_bytes = free_host_memory(cpu.memory_bytes);
    cpu.numa_nodes = static_cast<uint32_t>(table.integer("numa_nodes", 1, 1024).value_or(1));
    cpu.sockets = static_cast<uint32_t>(table.integer("sockets", 1, 64).value_or(0));
    cpu.processors = static_cast<uint32_t>(table.integer("cores", 1, 65536).value_or(0));
    read_speeds(table, cpu);
    table.finish();
    return cpu;
}

// Name, compute_capability, memory, link and speeds.
DeviceDescription read_gpu(TomlFile::Table& table) {
    DeviceDescription gpu;
    gpu.name = table.string("name").value_or("GPU");
    const std::string capability = table.need(table.string("compute_capability"), "compute_capability");
    const auto number = parse_compute_capability(capability);
    if (!number)
        table.reject("compute_capability", "expected \"MAJOR.MINOR\", as in \"8.6\", found \"" + capability + "\"");
    gpu.compute_capability = *number;
    gpu.memory_bytes = table.need(table.size("memory"), "memory");
    gpu.free_memory_bytes = free_card_memory(gpu.memory_bytes);
    gpu.link = table.string("link").value_or("");
    if (!gpu.link.empty()) {
        const auto bandwidth = link_bandwidth(gpu.link);
        if (!bandwidth)
            table.reject("link", "expected \"pcie1x1\" to \"pcie6x16\" or \"nvlink-c2c\", found \"" + gpu.link + '"');
        gpu.link_bandwidth = *bandwidth;
    }
    gpu.processors = static_cast<uint32_t>(table.integer("processors", 1, 1024).value_or(0));
    read_speeds(table, gpu);
    return gpu;
}

}  // namespace

Hardware Hardware::from_rig(const std::filesystem::path& path, const std::string& gpus) {
    const TomlFile toml = TomlFile::read(path);
    TomlFile::Table root = toml.root();
    std::vector<DeviceDescription> devices{read_cpu(root.need(root.table("cpu"), "cpu"))};
    root.ignore("measured");  // notes of what others needed on the machine
    for (TomlFile::Table& table : root.tables("gpu")) {
        DeviceDescription gpu = read_gpu(table);
        gpu.kind = gpus;
        const int64_t count = table.integer("count", 1, kMaxGpus).value_or(1);
        table.finish();
        for (int64_t i = 0; i < count; ++i) {
            if (devices.size() > kMaxGpus) {
                fail(TSR_CORRUPT_DATA, "{}: expected at most {} GPUs, found more", path.string(), kMaxGpus);
            }
            gpu.id = "CUDA" + std::to_string(devices.size() - 1);
            devices.push_back(gpu);
        }
    }
    root.finish();
    Hardware hardware(std::move(devices));
    hardware.rig_ = true;
    return hardware;
}

}  // namespace tessera
