#include "core/hardware/numa.hpp"

#include "core/base/text.hpp"
#include "core/hardware/probe.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tessera {
namespace {

std::string shared(uint32_t threads, size_t nodes) {
    const uint64_t minimum = threads / nodes, maximum = (threads + nodes - 1) / nodes;
    return minimum == maximum ? std::to_string(minimum) : std::to_string(minimum) + " or " + std::to_string(maximum);
}

}  // namespace

std::vector<uint32_t> allowed_cpus() {
    constexpr int kMaximumCpus = 1 << 16;
    std::vector<uint32_t> allowed;
    for (int count = 1024; count <= kMaximumCpus; count *= 2) {
        cpu_set_t* set = CPU_ALLOC(count);
        if (!set) break;
        const size_t bytes = CPU_ALLOC_SIZE(count);
        CPU_ZERO_S(bytes, set);
        // The kernel refuses a set that is smaller than its own.
        const bool done = sched_getaffinity(0, bytes, set) == 0;
        for (int cpu = 0; done && cpu < count; ++cpu) {
            if (CPU_ISSET_S(cpu, bytes, set)) allowed.push_back(static_cast<uint32_t>(cpu));
        }
        CPU_FREE(set);
        if (done) break;
    }
    if (allowed.empty()) allowed.push_back(0);
    return allowed;
}

uint32_t current_cpu() noexcept {
    const int cpu = sched_getcpu();
    return cpu < 0 ? 0 : static_cast<uint32_t>(cpu);
}

std::vector<NumaNode> probe_numa_nodes(const std::vector<uint32_t>& allowed, const std::filesystem::path& root) {
    const std::filesystem::path folder = root / "sys/devices/system/node";
    std::vector<NumaNode> nodes;
    for (const uint32_t id : parse_cpu_list(read_line(folder / "online"))) {
        NumaNode node{id, {}};
        for (const uint32_t cpu : parse_cpu_list(read_line(folder / ("node" + std::to_string(id)) / "cpulist"))) {
            if (std::ranges::find(allowed, cpu) != allowed.end()) node.cpus.push_back(cpu);
        }
        if (!node.cpus.empty()) nodes.push_back(std::move(node));
    }
    if (nodes.empty()) nodes.push_back({0, allowed});
    return nodes;
}

std::optional<NumaMode> parse_numa_mode(std::string_view name) noexcept {
    constexpr std::array<std::pair<std::string_view, NumaMode>, 3> kModes = {
        {{"distribute", NumaMode::kDistribute}, {"isolate", NumaMode::kIsolate}, {"numactl", NumaMode::kNumactl}}};
    const auto at = std::ranges::find(kModes, name, &std::pair<std::string_view, NumaMode>::first);
    return at == kModes.end() ? std::nullopt : std::optional(at->second);
}

NumaPlacement place_on_nodes(NumaMode mode, std::span<const NumaNode> nodes, uint32_t here, uint32_t threads) {
    NumaPlacement placement;
    if (mode == NumaMode::kNumactl) return placement;
    if (nodes.size() < 2) {
        if (mode != NumaMode::kNone)
            placement.notice = Notice::on(Setting::kNuma, "", "this process runs on one node; nothing is bound");
        return placement;
    }
    if (mode == NumaMode::kNone) {
        placement.notice =
            Notice(fmt::format("this machine has {} NUMA nodes", nodes.size()), {{AdviceCode::kSpreadOverNodes, ""}});
        return placement;
    }
    if (mode == NumaMode::kIsolate) {
        const auto on = [&](const NumaNode& node) { return std::ranges::find(node.cpus, here) != node.cpus.end(); };
        const auto found = std::ranges::find_if(nodes, on);
        const NumaNode& node = found == nodes.end() ? nodes.front() : *found;
        placement.cpus.assign(threads, node.cpus);
        placement.memory_nodes = {node.id};
        std::string text = fmt::format("NUMA: all threads and all memory on node {}", node.id);
        if (threads > node.cpus.size())
            text += fmt::format(", which has {} CPUs for {} threads", node.cpus.size(), threads);
        placement.notice = Notice(std::move(text));
        return placement;
    }
    // Neighbours share a node: their work is neighbouring, too.
    for (uint32_t worker = 0; worker < threads; ++worker)
        placement.cpus.push_back(nodes[uint64_t{worker} * nodes.size() / threads].cpus);
    for (const NumaNode& node : nodes) placement.memory_nodes.push_back(node.id);
    placement.notice = Notice(fmt::format("NUMA: {} threads on each of {} nodes, pages of memory in turn on each",
                                          shared(threads, nodes.size()), nodes.size()));
    return placement;
}

}  // namespace tessera
