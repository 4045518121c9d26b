// Nodes of memory with the CPUs that are near them, and where threads and pages go on a machine that has several.
#pragma once

#include "core/base/notice.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct NumaNode {
    uint32_t id = 0;             // the system's number of it
    std::vector<uint32_t> cpus;  // that this process may run on; rising
};

// Nodes on whose CPUs this process may run, by rising id. At least one. `root` is the root of the file system, other
// than "/" in tests; `allowed`: the CPUs of this process.
std::vector<NumaNode> probe_numa_nodes(const std::vector<uint32_t>& allowed, const std::filesystem::path& root = "/");
// CPUs that this process may run on: by its affinity, which is also how containers and batch systems limit it.
std::vector<uint32_t> allowed_cpus();
// The CPU that the calling thread runs on.
uint32_t current_cpu() noexcept;

enum class NumaMode {
    kNone,        // the system decides
    kDistribute,  // threads evenly over all nodes, pages of memory in turn on each of them
    kIsolate,     // all on the node where the process was started
    kNumactl,     // what numactl or a batch system set up is left as it is
};
// "distribute", "isolate", "numactl"; nothing for another name.
std::optional<NumaMode> parse_numa_mode(std::string_view name) noexcept;

// Where the workers of a team run and where the pages that they touch first are allocated.
struct NumaPlacement {
    std::vector<std::vector<uint32_t>> cpus;  // of each worker; empty: of none
    std::vector<uint32_t> memory_nodes;       // whose memory is taken, page by page in turn; empty: the system's choice
    std::optional<Notice> notice;             // if there is something to say
};

// `here`: the CPU that the process was started on. Pure.
NumaPlacement place_on_nodes(NumaMode mode, std::span<const NumaNode> nodes, uint32_t here, uint32_t threads);

}  // namespace tessera
