// GPUs through the CUDA driver and NVML, both opened at run time. The few functions and constants declared here are
// those of the CUDA Driver API and NVML reference manuals; no header of either is needed.
#include "core/hardware/probe.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A library that stays mapped: drivers do not like to be unloaded.
class SharedLibrary {
  public:
    explicit SharedLibrary(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
    explicit operator bool() const { return handle_ != nullptr; }
    template <typename Function>
    bool get(const char* name, Function*& function) const {
        function = reinterpret_cast<Function*>(dlsym(handle_, name));
        return function != nullptr;
    }

  private:
    void* handle_;
};

struct CudaDriver {
    // CUresult and CUdevice are ints; CUDA_SUCCESS is 0.
    int (*init)(unsigned flags);
    int (*device_count)(int* count);
    int (*device)(int* device, int ordinal);
    int (*name)(char* name, int capacity, int device);
    int (*attribute)(int* value, int attribute, int device);
    int (*total_memory)(size_t* bytes, int device);
    int (*pci_id)(char* id, int capacity, int device);
    int (*uuid)(unsigned char* bytes, int device);  // 16 bytes; optional

    bool load() {
        const SharedLibrary library("libcuda.so.1");
        if (library && !library.get("cuDeviceGetUuid_v2", uuid)) library.get("cuDeviceGetUuid", uuid);
        return library && library.get("cuInit", init) && library.get("cuDeviceGetCount", device_count) &&
               library.get("cuDeviceGet", device) && library.get("cuDeviceGetName", name) &&
               library.get("cuDeviceGetAttribute", attribute) && library.get("cuDeviceTotalMem_v2", total_memory) &&
               library.get("cuDeviceGetPCIBusId", pci_id);
    }
};

// CUdevice_attribute
constexpr int kClockKilohertz = 13;
constexpr int kProcessors = 16;
constexpr int kIntegrated = 18;
constexpr int kMemoryClockKilohertz = 36;
constexpr int kMemoryBusBits = 37;
constexpr int kL2Bytes = 38;
constexpr int kComputeMajor = 75;
constexpr int kComputeMinor = 76;
constexpr int kSharedBytes = 81;       // of a multiprocessor
constexpr int kSharedBlockBytes = 97;  // of a block that opts in

// What the driver does not say without a context, which would itself take memory on every GPU: free memory, and the
// link.
class Nvml {
  public:
    Nvml() {
        const SharedLibrary library("libnvidia-ml.so.1");
        ready_ = library && library.get("nvmlInit_v2", init_) && library.get("nvmlShutdown", shutdown_) &&
                 library.get("nvmlDeviceGetHandleByPciBusId_v2", by_pci_) &&
                 library.get("nvmlDeviceGetMemoryInfo", memory_) && init_() == 0;
        if (!ready_) return;
        library.get("nvmlDeviceGetMaxPcieLinkGeneration", link_generation_);
        library.get("nvmlDeviceGetMaxPcieLinkWidth", link_lanes_);
    }
    ~Nvml() {
        if (ready_) shutdown_();
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    std::optional<uint64_t> free_bytes(const std::string& pci_id) const {
        struct {
            unsigned long long total, free, used;
        } memory{};  // nvmlMemory_t
        void* device = nullptr;
        if (!ready_ || by_pci_(pci_id.c_str(), &device) != 0 || memory_(device, &memory) != 0) return std::nullopt;
        return memory.free;
    }

    // "pcie4x16": what card and slot can make together; empty if it does not say. The current link is no measure: cards
    // at rest train down.
    std::string link(const std::string& pci_id) const {
        void* device = nullptr;
        unsigned generation = 0, lanes = 0;
        if (!ready_ || !link_generation_ || !link_lanes_ || by_pci_(pci_id.c_str(), &device) != 0 ||
            link_generation_(device, &generation) != 0 || link_lanes_(device, &lanes) != 0 || generation == 0 ||
            lanes == 0)
            return {};
        return "pcie" + std::to_string(generation) + "x" + std::to_string(lanes);
    }

  private:
    int (*init_)() = nullptr;
    int (*shutdown_)() = nullptr;
    int (*by_pci_)(const char* id, void** device) = nullptr;
    int (*memory_)(void* device, void* memory) = nullptr;
    int (*link_generation_)(void* device, unsigned* generation) = nullptr;  // optional, as the next
    int (*link_lanes_)(void* device, unsigned* lanes) = nullptr;
    bool ready_ = false;
};

// The same by the system, where NVML does not say: the fastest link that the card can make, whatever its slot is.
std::string pcie_link(std::string pci_id) {
    std::transform(pci_id.begin(), pci_id.end(), pci_id.begin(), [](unsigned char c) { return std::tolower(c); });
    const fs::path folder = fs::path("/sys/bus/pci/devices") / pci_id;
    const std::string width = read_line(folder / "max_link_width");
    double rate = 0;  // "16.0 GT/s PCIe"
    std::istringstream(read_line(folder / "max_link_speed")) >> rate;
    if (width.empty() || rate <= 0) return {};
    int generation = 1;
    for (double top = 2.5; rate > top && generation < 7; ++generation)
        top = generation == 1 ? 5 : generation == 2 ? 8 : top * 2;
    return "pcie" + std::to_string(generation) + "x" + width;
}

// -1 where the system does not say.
int numa_node(std::string pci_id) {
    std::transform(pci_id.begin(), pci_id.end(), pci_id.begin(), [](unsigned char c) { return std::tolower(c); });
    int node = -1;
    std::istringstream(read_line(fs::path("/sys/bus/pci/devices") / pci_id / "numa_node")) >> node;
    return std::max(node, -1);
}

// "GPU-8a5e1c3f-...", as the driver's tools write it; empty if it does not say.
std::string uuid_of(const CudaDriver& driver, int device) {
    unsigned char bytes[16] = {};
    if (!driver.uuid || driver.uuid(bytes, device) != 0) return {};
    std::string text = "GPU";
    for (int i = 0; i < 16; ++i) {
        constexpr char kDigits[] = "0123456789abcdef";
        if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += kDigits[bytes[i] >> 4];
        text += kDigits[bytes[i] & 15];
    }
    return text;
}

int attribute(const CudaDriver& driver, int which, int device) {
    int value = 0;
    return driver.attribute(&value, which, device) == 0 ? value : 0;
}

}  // namespace

std::vector<std::optional<uint64_t>> free_gpu_memory(std::span<const tsr_device_info* const> devices) {
    std::vector<std::optional<uint64_t>> free(devices.size());
    std::optional<Nvml> nvml;  // opened once, for a machine that has cards
    for (size_t i = 0; i < devices.size(); ++i) {
        if (std::string_view(devices[i]->kind) != "cuda" || !devices[i]->pci_id) continue;
        if (!nvml) nvml.emplace();
        free[i] = nvml->free_bytes(devices[i]->pci_id);
    }
    return free;
}

ProbedGpus probe_gpus() {
    ProbedGpus found;
    CudaDriver driver{};
    int count = 0;
    if (!driver.load() || driver.init(0) != 0 || driver.device_count(&count) != 0) return found;
    found.driver = read_line("/sys/module/nvidia/version");
    const Nvml nvml;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        int device = 0;
        char name[256] = "", pci_id[32] = "";
        size_t memory = 0;
        if (driver.device(&device, ordinal) != 0 || driver.total_memory(&memory, device) != 0) continue;
        driver.name(name, sizeof name - 1, device);
        driver.pci_id(pci_id, sizeof pci_id - 1, device);
        DeviceDescription gpu;
        gpu.kind = "cuda";
        gpu.id = "CUDA" + std::to_string(ordinal);
        gpu.name = name;
        gpu.pci_id = pci_id;
        gpu.uuid = uuid_of(driver, device);
        gpu.compute_capability = static_cast<uint32_t>(100 * attribute(driver, kComputeMajor, device) +
                                                       10 * attribute(driver, kComputeMinor, device));
        gpu.memory_bytes = memory;
        gpu.free_memory_bytes = nvml.free_bytes(gpu.pci_id).value_or(memory);
        // Two transfers a clock, as in the driver's own sample programs.
        gpu.memory_bandwidth =
            2e3 * attribute(driver, kMemoryClockKilohertz, device) * attribute(driver, kMemoryBusBits, device) / 8;
        const auto positive = [&](int which) { return std::max(attribute(driver, which, device), 0); };
        gpu.processors = static_cast<uint32_t>(positive(kProcessors));
        gpu.clock_hz = 1e3 * positive(kClockKilohertz);
        gpu.l2_bytes = static_cast<uint64_t>(positive(kL2Bytes));
        gpu.shared_memory_bytes = static_cast<uint64_t>(positive(kSharedBytes));
        gpu.shared_memory_block_bytes = static_cast<uint64_t>(positive(kSharedBlockBytes));
        gpu.unified_memory = positive(kIntegrated) != 0;
        gpu.link = nvml.link(gpu.pci_id);
        if (gpu.link.empty()) gpu.link = pcie_link(gpu.pci_id);
        gpu.numa_node = numa_node(gpu.pci_id);
        found.devices.push_back(std::move(gpu));
    }
    return found;
}

}  // namespace tessera
