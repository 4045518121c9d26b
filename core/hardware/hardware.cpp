#include "core/hardware/hardware.hpp"

#include "core/base/error.hpp"
#include "core/hardware/cpu_flags.hpp"
#include "core/hardware/probe.hpp"
#include "core/hardware/speeds.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>
#include <utility>

namespace tessera {
namespace {

bool same_id(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

struct Hardware::Owned {
    explicit Owned(DeviceDescription d, uint32_t index) : description(std::move(d)) {
        const bool is_cpu = description.kind == "cpu";
        if (is_cpu) {
            for (const std::string& flag : description.cpu_flags) flags.push_back(flag.c_str());
            flags.push_back(nullptr);
        }
        info = {};
        info.struct_size = sizeof info;
        info.kind = description.kind.c_str();
        info.id = description.id.c_str();
        info.name = description.name.c_str();
        info.index = index;
        info.compute_capability = description.compute_capability;
        info.memory_bytes = description.memory_bytes;
        info.free_memory_bytes = std::min(description.free_memory_bytes, description.memory_bytes);
        info.largest_allocation_bytes =
            description.largest_allocation_bytes ? description.largest_allocation_bytes : description.memory_bytes;
        info.allocation_alignment = description.allocation_alignment ? description.allocation_alignment : 256;
        info.link = description.link.c_str();
        info.pci_id = description.pci_id.c_str();
        info.uuid = description.uuid.c_str();
        info.cpu_flags = is_cpu ? flags.data() : nullptr;
        info.numa_node = description.numa_node;
        info.unified_memory = description.unified_memory ? 1 : 0;
        info.shared_memory_bytes = description.shared_memory_bytes;
        info.shared_memory_block_bytes = description.shared_memory_block_bytes;
        info.link_bandwidth = description.link_bandwidth;
        describe();
    }

    // What changes after the device was added: with the threads of the team, or when it is measured.
    void describe() noexcept {
        info.processors = description.processors;
        info.threads = description.threads;
        info.numa_nodes = description.numa_nodes;
        info.l1_bytes = description.l1_bytes;
        info.l2_bytes = description.l2_bytes;
        info.l3_bytes = description.l3_bytes;
        info.clock_hz = description.clock_hz;
        info.memory_bandwidth =
            description.kind == "cpu" ? team_bandwidth(description, description.threads) : description.memory_bandwidth;
    }

    DeviceDescription description;
    std::vector<const char*> flags;
    tsr_device_info info;
};

Hardware Hardware::detect() {
    std::vector<NumaNode> nodes = probe_numa_nodes(allowed_cpus());
    std::vector<DeviceDescription> devices{probe_cpu(nodes)};
    ProbedGpus gpus = probe_gpus();
    std::move(gpus.devices.begin(), gpus.devices.end(), std::back_inserter(devices));
    Hardware hardware(std::move(devices));
    hardware.gpu_driver_ = std::move(gpus.driver);
    hardware.numa_nodes_ = std::move(nodes);
    hardware.start_cpu_ = current_cpu();
    if (!withheld_cpu_flags().empty()) hardware.add_note(withheld_cpu_flags());
    return hardware;
}

Hardware::Hardware(std::vector<DeviceDescription> devices) {
    if (devices.empty() || devices.front().kind != "cpu") {
        fail(TSR_INVALID_ARGUMENT, "a machine's devices begin with its CPU: found {}",
             devices.empty() ? "none" : devices.front().kind);
    }
    for (DeviceDescription& device : devices) add(std::move(device));
}

Hardware::Hardware(Hardware&&) noexcept = default;
Hardware& Hardware::operator=(Hardware&&) noexcept = default;
Hardware::~Hardware() = default;

void Hardware::add(DeviceDescription device) {
    if (device.kind.empty() || device.id.empty()) {
        fail(TSR_INVALID_ARGUMENT, "a device needs a kind and an id: found '{}' and '{}'", device.kind, device.id);
    }
    if (device.kind == "cpu" && !infos_.empty()) {
        fail(TSR_INVALID_ARGUMENT, "device '{}': a machine has one device of kind cpu", device.id);
    }
    if (find(device.id)) fail(TSR_INVALID_ARGUMENT, "two devices have the id '{}'", device.id);
    const auto index = std::count_if(infos_.begin(), infos_.end(),
                                     [&](const tsr_device_info* info) { return device.kind == info->kind; });
    if (std::string line = fill_speeds(device); !line.empty()) notes_.push_back(std::move(line));
    infos_.reserve(infos_.size() + 1);
    owned_.push_back(std::make_unique<Owned>(std::move(device), static_cast<uint32_t>(index)));
    infos_.push_back(&owned_.back()->info);
}

namespace {

std::string ids_of(std::span<const tsr_device_info* const> devices) {
    std::string ids;
    for (const tsr_device_info* info : devices) ids += (ids.empty() ? "" : ", ") + std::string(info->id);
    return ids.empty() ? "none" : ids;
}

}  // namespace

void Hardware::limit_memory(std::string_view id, uint64_t bytes) {
    const tsr_device_info* found = find(id);
    if (!found) fail(TSR_NOT_FOUND, "no device '{}' here; there are: {}", id, ids_of(infos_));
    for (const auto& owned : owned_) {
        if (&owned->info != found) continue;
        owned->info.memory_bytes = std::min(owned->info.memory_bytes, bytes);
        owned->info.free_memory_bytes = std::min(owned->info.free_memory_bytes, bytes);
    }
}

namespace {

// Memory of each part of a GPU that has `total` bytes.
std::vector<uint64_t> share_memory(std::span<const uint64_t> parts, uint64_t total, std::string_view id) {
    constexpr uint64_t kWhole = 1 << 20;
    uint64_t left = total, open = 0;
    for (const uint64_t part : parts) {
        if (part > left) fail(TSR_INVALID_ARGUMENT, "{} has {} bytes of memory; its parts ask for more", id, total);
        left -= part;
        open += part == 0;
    }
    const uint64_t share = open ? left / open / kWhole * kWhole : 0;
    if (open && share == 0)
        fail(TSR_INVALID_ARGUMENT, "{} has {} bytes of memory, and its parts leave nothing for those without a size",
             id, total);
    std::vector<uint64_t> bytes(parts.begin(), parts.end());
    std::ranges::replace(bytes, uint64_t{0}, share);
    return bytes;
}

}  // namespace

void Hardware::split_gpu(std::string_view id, std::span<const uint64_t> parts) {
    const tsr_device_info* found = find(id);
    if (!found) fail(TSR_NOT_FOUND, "no device '{}' here; there are: {}", id, ids_of(infos_));
    const auto place = std::ranges::find(infos_, found);
    if (place == infos_.begin() || parts.empty())
        fail(TSR_INVALID_ARGUMENT, "{}: expected a GPU and the memory of its parts", found->id);
    const std::vector<uint64_t> bytes = share_memory(parts, found->memory_bytes, found->id);
    const uint64_t all = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
    const double free = std::min(1.0, static_cast<double>(found->free_memory_bytes) / static_cast<double>(all));
    const auto owner = std::ranges::find_if(owned_, [&](const auto& owned) { return &owned->info == found; });
    std::vector<const tsr_device_info*> infos;
    std::vector<std::unique_ptr<Owned>> owned;
    for (size_t i = 0; i < bytes.size(); ++i) {
        DeviceDescription part = (*owner)->description;
        part.id = fmt::format("{}.{}", found->id, i);
        if (find(part.id)) fail(TSR_INVALID_ARGUMENT, "two devices have the id '{}'", part.id);
        part.memory_bytes = bytes[i];
        part.free_memory_bytes = static_cast<uint64_t>(free * static_cast<double>(bytes[i]));
        part.largest_allocation_bytes = std::min(found->largest_allocation_bytes, bytes[i]);
        owned.push_back(std::make_unique<Owned>(std::move(part), found->index));
        infos.push_back(&owned.back()->info);
    }
    std::ranges::move(owned, std::back_inserter(owned_));
    infos_.insert(infos_.erase(place), infos.begin(), infos.end());
}

void Hardware::keep_gpus(std::span<const std::string> ids) {
    std::vector<const tsr_device_info*> kept{infos_.front()};
    for (const std::string& id : ids) {
        const tsr_device_info* found = find(id);
        if (!found || found == infos_.front())
            fail(TSR_NOT_FOUND, "no GPU '{}' here; there are: {}", id, ids_of(std::span(infos_).subspan(1)));
        if (std::ranges::find(kept, found) == kept.end()) kept.push_back(found);
    }
    infos_ = std::move(kept);
}

void Hardware::set_threads(uint32_t threads) noexcept {
    owned_.front()->description.threads = threads;
    owned_.front()->describe();
}

void Hardware::isolate_node() noexcept {
    Owned& cpu = *owned_.front();
    DeviceDescription& d = cpu.description;
    if (d.numa_nodes < 2) return;
    const uint32_t nodes = d.numa_nodes;
    d.processors = std::max(d.processors / nodes, 1u);
    d.threads = std::min(std::max(d.threads, 1u), d.processors);
    d.l3_bytes /= nodes;
    d.memory_bandwidth /= nodes;
    d.numa_nodes = d.sockets = 1;
    cpu.info.memory_bytes /= nodes;
    cpu.info.free_memory_bytes /= nodes;
    cpu.describe();
}

void Hardware::set_speed(double clock_hz, double thread_bandwidth, double memory_bandwidth) noexcept {
    DeviceDescription& d = owned_.front()->description;
    d.clock_hz = clock_hz;
    d.thread_bandwidth = thread_bandwidth;
    d.memory_bandwidth = memory_bandwidth;
    d.measured = true;
    owned_.front()->describe();
}

void Hardware::add_note(std::string line) {
    notes_.push_back(std::move(line));
}

const DeviceDescription& Hardware::cpu_description() const noexcept {
    return owned_.front()->description;
}

const tsr_device_info* Hardware::find(std::string_view id) const noexcept {
    for (const tsr_device_info* info : infos_) {
        if (same_id(info->id, id)) return info;
    }
    return nullptr;
}

}  // namespace tessera
