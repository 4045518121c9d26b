// Races between streams, and of the host with asynchronous copies.
#include "state.hpp"

#include <algorithm>
#include <cstring>

namespace tessera::cuda::emulated {
namespace {

constexpr char kPoison = static_cast<char>(0xEB);

std::string place(Driver& d, uintptr_t address) {
    const auto ranges = d.memory.ranges();
    const emulator::Range* const range = emulator::range_before(*ranges, address);
    return range ? emulator::describe(*range, address) : "released memory";
}

}  // namespace

std::shared_ptr<HostSide> watch_host(Driver& d, const Node& node) {
    if (!d.check_streams || node.host_bytes == 0) return nullptr;
    auto side = std::make_shared<HostSide>();
    const auto begin = reinterpret_cast<uintptr_t>(node.host), end = begin + node.host_bytes;
    if (!node.to_host) {
        side->content.assign(node.host, node.host + node.host_bytes);
    } else if (std::none_of(d.pending.begin(), d.pending.end(),
                            [&](const auto& p) { return p.first < end && begin < p.second; })) {
        // A host that reads before it has waited is to find this.
        std::memset(node.host, kPoison, node.host_bytes);
        side->poisoned = true;
    }
    d.pending.emplace(begin, end);
    return side;
}

namespace {

// Why the copy must not be done: the host has not left its memory alone since the call.
Ended check_host(Driver& d, const Node& node, const HostSide& host, const Execution& execution) {
    const auto begin = reinterpret_cast<uintptr_t>(node.host);
    for (uint64_t i = 0; i < node.host_bytes && (host.poisoned || !node.to_host); ++i) {
        if (!node.to_host && std::memcmp(node.host + i, host.content.data() + i, node.host_bytes - i) == 0) break;
        if (node.host[i] == (node.to_host ? kPoison : host.content[i])) continue;
        if (d.history.written_since(begin + i, *execution.host)) continue;
        return {CUDA_ERROR_LAUNCH_FAILED, std::string("race: the host has written ") + place(d, begin + i) +
                                              ", which a copy " + (node.to_host ? "writes" : "reads") + " (stream " +
                                              std::to_string(execution.moment.stream) +
                                              "), after the call and before it has waited for the copy"};
    }
    return {};
}

}  // namespace

Ended run_node(const Node& node, const HostSide* host, const Execution& execution) {
    if (!node.work) return {};
    if (!host) return node.work(execution);
    Driver& d = driver();
    std::unique_lock lock(d.mutex);
    Ended ended = check_host(d, node, *host, execution);
    if (ended.result == CUDA_SUCCESS) {
        // Pending until it is done: a later copy to the same memory must not poison what this one is reading.
        lock.unlock();
        ended = node.work(execution);
        lock.lock();
    }
    const auto begin = reinterpret_cast<uintptr_t>(node.host);
    const auto [first, last] = d.pending.equal_range(begin);
    const auto own = std::find_if(first, last, [&](const auto& p) { return p.second == begin + node.host_bytes; });
    if (own != last) d.pending.erase(own);
    return ended;
}

Ended note_accesses(const Execution& execution, const std::shared_ptr<const std::string>& what,
                    const std::vector<emulator::Touched>& touched) {
    Driver& d = driver();
    const std::lock_guard lock(d.mutex);
    if (!d.check_streams) return {};
    for (const auto& [begin, end, written] : touched) {
        const auto race = d.history.note(begin, end, written, execution, what);
        if (!race) continue;
        return {CUDA_ERROR_LAUNCH_FAILED, "race: " + describe({execution.moment, what}) +
                                              (written ? " writes " : " reads ") + place(d, race->address) +
                                              ", which " + describe(race->other) +
                                              (race->with_write ? " has written" : " has read") +
                                              "; no stream, event or wait of the host orders the two"};
    }
    return {};
}

}  // namespace tessera::cuda::emulated
