#include <tessera/cuda/launch.hpp>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace tessera::cuda {

using sdk::Failure;

class ModuleOnDevice {
  public:
    ModuleOnDevice(Context context, LoadedModule handle, bool overlaps)
        : context_(context), handle_(handle), overlaps_(overlaps) {}
    ~ModuleOnDevice() {
        const Driver& driver = Driver::get();
        if (driver.push_context(context_) != kSuccess) return;  // the context is gone, and the module with it
        driver.unload_module(handle_);
        Context popped = nullptr;
        driver.pop_context(&popped);
    }
    ModuleOnDevice(const ModuleOnDevice&) = delete;
    ModuleOnDevice& operator=(const ModuleOnDevice&) = delete;
    LoadedModule handle() const noexcept { return handle_; }
    bool overlaps() const noexcept { return overlaps_; }

  private:
    Context context_;
    LoadedModule handle_;
    bool overlaps_;
};

namespace {

constexpr int kMaximumDynamicShared = 8;             // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int kProgrammaticStreamSerialization = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

std::string id_of(const tsr_device& device) {
    return device.info->id && *device.info->id ? device.info->id : "CUDA?";
}

// With `context` current.
std::shared_ptr<const ModuleOnDevice> load(const Driver& driver, const tsr_device& device, Context context,
                                           const Module& module) {
    static std::mutex mutex;
    static auto& loaded = *new std::map<std::pair<Context, const Module*>, std::weak_ptr<const ModuleOnDevice>>;
    const std::lock_guard lock(mutex);
    auto& known = loaded[{context, &module}];
    if (auto there = known.lock()) return there;
    const uint32_t capability = device.info->compute_capability;
    const Image* image = find_image(module, capability);
    if (!image) throw Failure(TSR_UNSUPPORTED, missing_image(module, capability));
    LoadedModule handle = nullptr;
    const std::vector<unsigned char> bytes = decompressed(*image);
    driver.check(driver.load_module(&handle, bytes.data()), "cuModuleLoadData",
                 id_of(device) + ": loading " + module.name + (image->ptx ? " (PTX)" : "") + " for " +
                     capability_text(image->capability) + ", " + std::to_string(bytes.size()) + " bytes");
    auto made = std::make_shared<const ModuleOnDevice>(context, handle, image->overlaps);
    known = made;
    return made;
}

}  // namespace

Kernel::Kernel(tsr_device& device, const Module& module, const char* function, uint32_t dynamic_shared_bytes)
    : device_(&device), name_(std::string(module.name) + "." + function) {
    if (!device.interop || std::strcmp(device.interop, kInterop) != 0 || !device.native_context || !device.native_queue)
        throw Failure(TSR_INVALID_ARGUMENT, name_ + ": expected a device of interop " + kInterop);
    const Driver& driver = Driver::get();
    const Context context = device.native_context(&device);
    const CurrentContext current(driver, context);
    module_ = load(driver, device, context, module);
    driver.check(driver.function(&function_, module_->handle(), function), "cuModuleGetFunction",
                 id_of(device) + ": " + name_);
    overlaps_ = module_->overlaps() && driver.launch_overlapping;
    // A block has 48 KiB without asking, for its static shared memory as well, which is not known here.
    if (dynamic_shared_bytes > 0) {
        driver.check(
            driver.set_function_attribute(function_, kMaximumDynamicShared, static_cast<int>(dynamic_shared_bytes)),
            "cuFuncSetAttribute",
            id_of(device) + ": " + name_ + ": " + std::to_string(dynamic_shared_bytes) + " bytes of shared memory");
    }
}

void Kernel::launch_with(tsr_queue queue, const Grid& grid, uint32_t threads, uint32_t shared_bytes,
                         void** arguments) const {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    const Driver& driver = Driver::get();
    const CurrentContext current(driver, device_->native_context(device_));
    const Stream stream = device_->native_queue(device_, queue);
    Result result = kSuccess;
    if (overlaps_) {
        LaunchAttribute attribute{};
        attribute.id = kProgrammaticStreamSerialization;
        attribute.value.allowed = 1;
        const LaunchConfig config{{grid.x, grid.y, grid.z}, {threads, 1, 1}, shared_bytes, stream, &attribute, 1};
        result = driver.launch_overlapping(&config, function_, arguments, nullptr);
    } else {
        result =
            driver.launch(function_, grid.x, grid.y, grid.z, threads, 1, 1, shared_bytes, stream, arguments, nullptr);
    }
    if (result == kSuccess) return;
    driver.check(result, overlaps_ ? "cuLaunchKernelEx" : "cuLaunchKernel",
                 id_of(*device_) + ": " + name_ + ": " + std::to_string(grid.x) + " x " + std::to_string(grid.y) +
                     " x " + std::to_string(grid.z) + " blocks of " + std::to_string(threads) + " threads, " +
                     std::to_string(shared_bytes) + " bytes of shared memory");
}

}  // namespace tessera::cuda
