#include "core/hardware/speeds.hpp"

#include "core/base/error.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <string>

namespace tessera {
namespace {

constexpr double kGiga = 1e9;
constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;

// ---- GPUs ----

// Vendors' figures: multiprocessors, boost clock, memory bandwidth, second-level cache.
struct KnownGpu {
    const char* name;  // part of the device's name, as whole words
    uint32_t processors;
    double clock_ghz;
    double bandwidth_gb;
    double l2_mib;
};

constexpr KnownGpu kGpus[] = {
    {"P100", 56, 1.30, 732, 4},
    {"P40", 30, 1.53, 346, 3},
    {"P4", 20, 1.11, 192, 2},
    {"GTX 1070", 15, 1.68, 256, 2},
    {"GTX 1080", 20, 1.73, 320, 2},
    {"GTX 1080 Ti", 28, 1.58, 484, 2.75},
    {"TITAN Xp", 30, 1.58, 548, 3},
    {"V100", 80, 1.38, 900, 6},
    {"TITAN V", 80, 1.46, 653, 4.5},
    {"T4", 40, 1.59, 320, 4},
    {"RTX 2060", 30, 1.68, 336, 3},
    {"RTX 2070", 36, 1.62, 448, 4},
    {"RTX 2080", 46, 1.71, 448, 4},
    {"RTX 2080 Ti", 68, 1.545, 616, 5.5},
    {"TITAN RTX", 72, 1.77, 672, 6},
    {"Quadro RTX 6000", 72, 1.77, 672, 6},
    {"Quadro RTX 8000", 72, 1.77, 672, 6},
    {"A100", 108, 1.41, 1555, 40},
    {"A30", 56, 1.44, 933, 24},
    {"A2", 10, 1.77, 200, 2},
    {"A10", 72, 1.70, 600, 6},
    {"A16", 10, 1.70, 200, 2},
    {"A40", 84, 1.74, 696, 6},
    {"RTX A2000", 26, 1.20, 288, 3},
    {"RTX A4000", 48, 1.56, 448, 4},
    {"RTX A5000", 64, 1.70, 768, 6},
    {"RTX A6000", 84, 1.80, 768, 6},
    {"RTX 3060", 28, 1.78, 360, 3},
    {"RTX 3060 Ti", 38, 1.67, 448, 4},
    {"RTX 3070", 46, 1.73, 448, 4},
    {"RTX 3070 Ti", 48, 1.77, 608, 4},
    {"RTX 3080", 68, 1.71, 760, 5},
    {"RTX 3080 Ti", 80, 1.67, 912, 6},
    {"RTX 3090", 82, 1.695, 936, 6},
    {"RTX 3090 Ti", 84, 1.86, 1008, 6},
    {"L4", 58, 2.04, 300, 48},
    {"L40", 142, 2.49, 864, 96},
    {"L40S", 142, 2.52, 864, 96},
    {"RTX 6000 Ada", 142, 2.51, 960, 96},
    {"RTX 4060", 24, 2.46, 272, 24},
    {"RTX 4060 Ti", 34, 2.54, 288, 32},
    {"RTX 4070", 46, 2.48, 504, 36},
    {"RTX 4070 SUPER", 56, 2.48, 504, 48},
    {"RTX 4070 Ti", 60, 2.61, 504, 48},
    {"RTX 4070 Ti SUPER", 66, 2.61, 672, 48},
    {"RTX 4080", 76, 2.505, 717, 64},
    {"RTX 4080 SUPER", 80, 2.55, 736, 64},
    {"RTX 4090", 128, 2.52, 1008, 72},
    {"H100", 132, 1.98, 3350, 50},
    {"H100 PCIe", 114, 1.755, 2039, 50},
    {"H200", 132, 1.98, 4800, 50},
    {"GH200", 132, 1.98, 4000, 50},
    {"B200", 148, 1.98, 8000, 126},
    {"RTX 5060 Ti", 36, 2.57, 448, 32},
    {"RTX 5070", 48, 2.51, 672, 48},
    {"RTX 5070 Ti", 70, 2.45, 896, 48},
    {"RTX 5080", 84, 2.62, 960, 64},
    {"RTX 5090", 170, 2.41, 1792, 96},
    {"RTX PRO 6000", 188, 2.62, 1792, 128},
};

bool is_part(std::string_view name, std::string_view part) {
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
    const auto at = std::search(name.begin(), name.end(), part.begin(), part.end(), same);
    if (at == name.end()) return false;
    const auto end = at + static_cast<ptrdiff_t>(part.size());
    const auto in_word = [](unsigned char c) { return std::isalnum(c) != 0; };
    return (at == name.begin() || !in_word(at[-1])) && (end == name.end() || !in_word(*end));
}

// What a card of a generation that is not in the table has at least, by the median of those that are.
KnownGpu typical_gpu(uint32_t capability) {
    if (capability >= 1000) return {"of compute capability 10 or 12", 84, 2.5, 900, 64};
    if (capability >= 900) return {"of compute capability 9", 132, 1.9, 3000, 50};
    if (capability >= 890) return {"of compute capability 8.9", 60, 2.5, 500, 48};
    if (capability >= 800) return {"of compute capability 8", 68, 1.7, 700, 6};
    if (capability >= 700) return {"of compute capability 7", 46, 1.6, 450, 4};
    return {"of compute capability 6", 28, 1.5, 350, 3};
}

std::string fill_gpu(DeviceDescription& gpu) {
    const KnownGpu* known = nullptr;
    for (const KnownGpu& candidate : kGpus) {
        if (!is_part(gpu.name, candidate.name)) continue;
        if (!known || std::string_view(candidate.name).size() > std::string_view(known->name).size())
            known = &candidate;
    }
    std::string line;
    KnownGpu typical{};
    if (!known) {
        typical = typical_gpu(gpu.compute_capability);
        known = &typical;
        if (gpu.memory_bandwidth == 0) {
            line = fmt::format("{} ({}): no figures for this card, so its speed is taken for that of one {}", gpu.id,
                               gpu.name, typical.name);
        }
    }
    // Versions of 80 GB have faster memory than those of 40.
    const bool big_a100 = std::string_view(known->name) == "A100" && gpu.memory_bytes > (uint64_t{48} << 30);
    if (gpu.processors == 0) gpu.processors = known->processors;
    if (gpu.clock_hz == 0) gpu.clock_hz = known->clock_ghz * kGiga;
    if (gpu.memory_bandwidth == 0) gpu.memory_bandwidth = (big_a100 ? 2039 : known->bandwidth_gb) * kGiga;
    if (gpu.l2_bytes == 0) gpu.l2_bytes = static_cast<uint64_t>(known->l2_mib * kMiB);
    if (gpu.link_bandwidth == 0) {
        // What slots have at least.
        gpu.link_bandwidth = link_bandwidth(gpu.link).value_or(*link_bandwidth("pcie3x16"));
    }
    return line;
}

// ---- processors ----

// Of one socket: theoretical bandwidth of all memory channels; what one core can ask for; clock of all cores in vector
// code; caches.
struct KnownCpu {
    const char* pattern;  // of fnmatch, without regard to letter case
    double bandwidth_gb;
    double core_gb;
    double clock_ghz;
    double l2_mib;
    double l3_mib;
};

constexpr KnownCpu kCpus[] = {
    {"*Xeon*69[0-9][0-9]P*", 614, 12, 2.6, 2, 480},    // 12 channels of DDR5-6400
    {"*Xeon*67[0-9][0-9]*", 410, 12, 2.6, 2, 300},     // 8
    {"*Xeon*[58]5[0-9][0-9]*", 358, 12, 2.5, 2, 260},  // DDR5-5600
    {"*Xeon*65[0-9][0-9]*", 358, 12, 2.5, 2, 160},
    {"*Xeon*[68]4[0-9][0-9]*", 307, 11, 2.4, 2, 100},    // DDR5-4800
    {"*Xeon*[68]3[0-9][0-9]*", 205, 11, 2.3, 1.25, 54},  // 8 channels of DDR4-3200
    {"*Xeon*[68]2[0-9][0-9]*", 141, 11, 2.3, 1, 36},     // 6 of DDR4-2933
    {"*Xeon*[68]1[0-9][0-9]*", 128, 11, 2.2, 1, 36},
    {"*Xeon*E5*v4*", 77, 10, 2.4, 0.25, 35},  // 4 of DDR4-2400
    {"*Xeon*E5*v3*", 68, 10, 2.4, 0.25, 30},  // DDR4-2133
    {"*EPYC 9[0-9][0-9]5*", 576, 30, 3.3, 1, 384},
    {"*EPYC 9[0-9][0-9]4*", 461, 27, 3.1, 1, 384},
    {"*EPYC 7[0-9FJ][0-9]3*", 205, 20, 2.9, 0.5, 256},
    {"*EPYC 7[0-9FH][0-9]2*", 205, 18, 2.8, 0.5, 128},
    {"*EPYC 7[0-9][0-9]1*", 171, 14, 2.5, 0.5, 64},
    {"*EPYC*", 205, 18, 2.8, 0.5, 128},
    {"*Threadripper PRO 9*", 410, 40, 4.0, 1, 128},
    {"*Threadripper PRO 7*", 333, 40, 3.9, 1, 128},
    {"*Threadripper 7*", 166, 40, 3.9, 1, 128},
    {"*Threadripper PRO [35]*", 205, 25, 3.3, 0.5, 128},
    {"*Threadripper [35]*", 102, 25, 3.3, 0.5, 128},
    {"*Ryzen*9[0-9][0-9][0-9]*", 90, 55, 4.8, 1, 32},
    {"*Ryzen*7[0-9][0-9][0-9]*", 83, 50, 4.6, 1, 32},
    {"*Ryzen*[345][0-9][0-9][0-9]*", 51, 30, 4.0, 0.5, 32},
    {"*Core*1[234][0-9][0-9][0-9]*", 83, 40, 4.5, 1.25, 30},
    {"*Core*", 45, 20, 3.8, 0.5, 12},
    {"*Xeon*", 128, 11, 2.4, 1, 36},
};

constexpr KnownCpu kTypicalCpu = {"*", 45, 15, 3.0, 0.5, 16};  // two channels of DDR4-2933

// Long reads reach this share of what the channels could carry.
constexpr double kStreamShare = 0.8;
// A core reads from another socket's memory at this share of the speed of its own.
constexpr double kRemoteShare = 0.4;
// Nodes of one socket (sub-NUMA clusters, quadrants) are near each other.
constexpr double kNearNodesShare = 0.95;

// The number that ends right before `text`: "128" of "Xeon, 128 cores" and "cores".
uint32_t number_before(std::string_view name, std::string_view text) {
    const size_t at = name.find(text);
    if (at == std::string_view::npos) return 0;
    size_t begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
    uint32_t value = 0;
    std::from_chars(name.data() + begin, name.data() + at, value);
    return value;
}

std::string fill_cpu(DeviceDescription& cpu) {
    const auto* known = std::ranges::find_if(kCpus, [&](const KnownCpu& candidate) {
        return fnmatch(candidate.pattern, cpu.name.c_str(), FNM_CASEFOLD) == 0;
    });
    const bool found = known != std::end(kCpus);
    const KnownCpu& like = found ? *known : kTypicalCpu;
    if (cpu.sockets == 0) cpu.sockets = std::max(number_before(cpu.name, " x "), 1u);
    const double sockets = cpu.sockets;
    if (cpu.processors == 0) {
        const uint32_t cores = number_before(cpu.name, " cores");
        cpu.processors = cores && cores <= (1 << 16) ? cores * cpu.sockets : std::max(cpu.threads, 1u);
    }
    std::string line;
    if (!found && cpu.memory_bandwidth == 0) {
        line = fmt::format(
            "{} ({}): no figures for this processor, so its memory is taken for two channels of "
            "DDR4-2933; a rig file can say bandwidth_gb_s and clock_mhz",
            cpu.id, cpu.name);
    }
    if (cpu.clock_hz == 0) cpu.clock_hz = like.clock_ghz * kGiga;
    if (cpu.thread_bandwidth == 0) cpu.thread_bandwidth = like.core_gb * kGiga;
    if (cpu.memory_bandwidth == 0) cpu.memory_bandwidth = like.bandwidth_gb * kGiga * sockets * kStreamShare;
    if (cpu.l1_bytes == 0) cpu.l1_bytes = 32 * kKiB;
    if (cpu.l2_bytes == 0) cpu.l2_bytes = static_cast<uint64_t>(like.l2_mib * kMiB);
    if (cpu.l3_bytes == 0) cpu.l3_bytes = static_cast<uint64_t>(like.l3_mib * kMiB * sockets);
    return line;
}

}  // namespace

std::optional<double> link_bandwidth(std::string_view link) noexcept {
    if (link == "nvlink-c2c") return 400 * kGiga;
    // Of one lane, and what large copies reach of it.
    constexpr double kLane[] = {0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
    constexpr double kCopyShare = 0.85;
    if (!link.starts_with("pcie") || link.size() < 7 || link[5] != 'x') return std::nullopt;
    const unsigned generation = static_cast<unsigned>(link[4] - '0');
    unsigned lanes = 0;
    const auto [end, error] = std::from_chars(link.data() + 6, link.data() + link.size(), lanes);
    if (error != std::errc() || end != link.data() + link.size()) return std::nullopt;
    if (generation < 1 || generation > std::size(kLane) || lanes < 1 || lanes > 16) return std::nullopt;
    return kLane[generation - 1] * lanes * kCopyShare * kGiga;
}

std::string fill_speeds(DeviceDescription& device) {
    return device.kind == "cpu" ? fill_cpu(device) : fill_gpu(device);
}

double team_bandwidth(const DeviceDescription& cpu, uint32_t threads) noexcept {
    const double sockets = std::max(cpu.sockets, 1u);
    // Threads and pages lie over all sockets, so that 1 of `sockets` reads is near.
    const double near = 1 / sockets;
    double share = 1 / (near + (1 - near) / kRemoteShare);
    if (cpu.numa_nodes > cpu.sockets) share *= kNearNodesShare;
    if (cpu.measured) share = 1;  // by threads and pages that lay so
    return std::min(cpu.memory_bandwidth * share, cpu.thread_bandwidth * std::max(threads, 1u));
}

}  // namespace tessera
