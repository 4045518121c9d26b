// What a machine has: its processor and its GPUs, found here or read from a rig file. Plugins are handed this list;
// they match against it and do not probe.
#pragma once

#include "core/hardware/numa.hpp"

#include <tessera/device.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// What is free of the card of each device now, all processes counted, without making a context there. Nothing for a
// device whose driver does not say.
std::vector<std::optional<uint64_t>> free_gpu_memory(std::span<const tsr_device_info* const> devices);

// Kinds of devices that are found; plugins may be made for others, too.
inline constexpr std::array<std::string_view, 2> kDeviceKinds = {"cpu", "cuda"};

// A device in owned strings; the fields are those of tsr_device_info. `index` is given by Hardware.
struct DeviceDescription {
    std::string kind;  // "cpu", "cuda"
    std::string id;    // as users write it: "CPU", "CUDA0"
    std::string name;
    uint32_t compute_capability = 0;  // 100 * major + 10 * minor
    uint64_t memory_bytes = 0;
    uint64_t free_memory_bytes = 0;
    uint64_t largest_allocation_bytes = 0;
    uint64_t allocation_alignment = 0;
    std::string link;
    std::string pci_id;
    std::string uuid;
    std::vector<std::string> cpu_flags;  // of a "cpu" only
    uint32_t processors = 0;
    uint32_t threads = 0;
    uint32_t sockets = 0;  // of a "cpu"
    uint32_t numa_nodes = 0;
    int32_t numa_node = -1;
    bool unified_memory = false;
    uint64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
    uint64_t shared_memory_bytes = 0, shared_memory_block_bytes = 0;
    double clock_hz = 0;
    double memory_bandwidth = 0;  // of the whole device, bytes/s; a CPU's team may get less: see team_bandwidth
    double thread_bandwidth = 0;  // of a "cpu": what one thread can ask for
    bool measured = false;        // of a "cpu": its bandwidths are what a team read here
    double link_bandwidth = 0;
};

// The devices of one machine, the CPU first. Every tsr_device_info stays at its address, with its strings, as long as
// the Hardware lives, also when that is moved or grows. Not to be changed while another thread reads it.
class Hardware {
  public:
    // This machine. What cannot be found out is 0 or empty; a machine without a GPU driver has no GPUs. Throws nothing
    // but std::bad_alloc.
    static Hardware detect();

    // A machine described by a file; its GPUs have the ids that real ones would have ("CUDA0"), and are of kind
    // `gpus`. Throws what File throws, or Error(TSR_CORRUPT_DATA) naming file, line and key.
    static Hardware from_rig(const std::filesystem::path& file, const std::string& gpus = "cuda");

    // `devices` begin with the one CPU and have ids that differ; throws Error(TSR_INVALID_ARGUMENT) otherwise.
    explicit Hardware(std::vector<DeviceDescription> devices);
    Hardware(Hardware&&) noexcept;
    Hardware& operator=(Hardware&&) noexcept;
    ~Hardware();

    // Appends a device, whose index is the number of those of its kind before it. Throws as the constructor does.
    void add(DeviceDescription device);

    // Lowers what a device offers to `bytes`. Throws Error(TSR_NOT_FOUND) for an unknown id, listing those that are
    // here.
    void limit_memory(std::string_view id, uint64_t bytes);

    // Offers a GPU as logical devices in its place, "CUDA0.0", "CUDA0.1" and so on, each with the memory that `parts`
    // says, bytes; 0: an equal share of what the others leave. What is free of the GPU is shared in proportion if it is
    // less than they have together. All else is as of the GPU, its index too. Throws Error: TSR_NOT_FOUND as
    // limit_memory does, TSR_INVALID_ARGUMENT for the CPU, for no parts and for more memory than there is.
    void split_gpu(std::string_view id, std::span<const uint64_t> parts);

    // Drops all GPUs but these. The others keep their ids and indices. Throws Error(TSR_NOT_FOUND) as limit_memory
    // does, with nothing changed.
    void keep_gpus(std::span<const std::string> ids);

    // Workers of the team that the CPU offers; at least 1. Its memory_bandwidth is what they can read together.
    void set_threads(uint32_t threads) noexcept;
    // As if one node of host memory were all: its cores, its share of memory, caches and bandwidth. Nothing on a
    // machine of one node.
    void isolate_node() noexcept;
    // Of the CPU, measured here: clock, and what one thread and all threads read from memory.
    void set_speed(double clock_hz, double thread_bandwidth, double memory_bandwidth) noexcept;
    // The CPU as it was found, in full.
    const DeviceDescription& cpu_description() const noexcept;

    std::span<const tsr_device_info* const> devices() const noexcept { return infos_; }
    const tsr_device_info& cpu() const noexcept { return *infos_.front(); }
    // Letter case of the id does not matter. nullptr if there is none.
    const tsr_device_info* find(std::string_view id) const noexcept;

    // A rig: planned for, never run on.
    bool is_rig() const noexcept { return rig_; }
    // Nodes of memory of this machine and the CPU that the process was found on; none if the machine is not this one.
    std::span<const NumaNode> numa_nodes() const noexcept { return numa_nodes_; }
    uint32_t start_cpu() const noexcept { return start_cpu_; }
    // For people: devices whose speed is not known and was assumed.
    std::span<const std::string> notes() const noexcept { return notes_; }
    void add_note(std::string line);
    // The NVIDIA driver's version, "580.65.06"; empty if there is none, or if this is a rig.
    const std::string& gpu_driver() const noexcept { return gpu_driver_; }

  private:
    struct Owned;
    std::vector<std::unique_ptr<Owned>> owned_;
    std::vector<const tsr_device_info*> infos_;
    std::string gpu_driver_;
    std::vector<std::string> notes_;
    std::vector<NumaNode> numa_nodes_;
    uint32_t start_cpu_ = 0;
    bool rig_ = false;
};

}  // namespace tessera
