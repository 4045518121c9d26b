// Modules, functions and launches.
#include "../ptx/executor.hpp"
#include "modules.hpp"
#include "state.hpp"

#include <algorithm>
#include <cstring>

namespace tessera::cuda::emulated {
namespace {

constexpr uint32_t kSharedWithoutAsking = 48 << 10;
constexpr uint32_t kRegisterUnit = 256;  // registers are given to warps in such units

uint32_t rounded(uint32_t value, uint32_t unit) {
    return (value + unit - 1) / unit * unit;
}

uint32_t registers_of_block(const ImageKernel& kernel, uint32_t threads) {
    return (threads + 31) / 32 * rounded(std::max(kernel.registers, 1u) * 32, kRegisterUnit);
}

// The most threads that a block of the kernel can have on the card.
uint32_t maximum_threads(const ImageKernel& kernel, const Limits& limits) {
    uint32_t threads = std::min(kernel.maximum_threads, 1024u);
    while (threads > 32 && registers_of_block(kernel, threads) > limits.registers_per_block) threads -= 32;
    return threads;
}

// Parameters of one launch, as bytes.
struct Parameters {
    std::vector<uint64_t> storage;  // aligned as any parameter needs it
    std::vector<void*> pointers;
    uint64_t bytes = 0;

    Parameters(const std::vector<uint32_t>& sizes, void* const* from) {
        std::vector<uint64_t> offsets;
        for (const uint32_t size : sizes) {
            bytes = (bytes + 15) / 16 * 16;
            offsets.push_back(bytes);
            bytes += size;
        }
        storage.resize(bytes / 8 + 3);
        auto* const begin = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(storage.data()) + 15) / 16 * 16);
        for (size_t i = 0; i < sizes.size(); ++i) {
            pointers.push_back(begin + offsets[i]);
            std::memcpy(pointers.back(), from[i], sizes[i]);
        }
    }
};

struct Extents {
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
};

Work work_of(std::shared_ptr<Function> function, const Extents& extents, std::shared_ptr<Parameters> parameters) {
    return [=](const Execution& execution) -> Ended {
        Driver& d = driver();
        Stream& stream = *execution.stream;
        const Card& card = *stream.context.card;
        emulator::Launch launch;
        launch.kernel = function->kernel;
        std::copy_n(extents.grid, 3, launch.grid);
        std::copy_n(extents.block, 3, launch.block);
        launch.dynamic_shared = extents.dynamic_shared;
        launch.shared_limit = std::max(kSharedWithoutAsking, card.description.limits.shared_per_block);
        launch.arch = card.description.capability;
        launch.parameters = parameters->pointers.data();
        launch.parameter_bytes_total = parameters->pointers.empty() ? 0 : parameters->bytes;
        launch.memory = d.memory.ranges();
        launch.library_begin = function->module->library_begin;
        launch.library_end = function->module->library_end;
        emulator::Options options;
        {
            const std::lock_guard lock(d.mutex);
            launch.devices = card.reach;
            options = d.options;
            options.collect = d.check_streams && options.check_races;
            options.seed = d.seed * 0x9E3779B97F4A7C15 + card.number * 1000003 + ++stream.launches;
        }
        const emulator::Outcome outcome = function->program
                                              ? ptx::run(*function->module->ptx, *function->program, launch, options)
                                              : emulator::run(launch, options);
        {
            const std::lock_guard lock(d.mutex);
            const Image& image = function->module->image;
            d.counters[{image.module + "." + function->image->name, image.virtual_arch / 10}].add(outcome.counters);
        }
        switch (outcome.fault) {
            case emulator::Fault::kNone:
                return note_accesses(execution, function->what, outcome.touched);
            case emulator::Fault::kTimeout:
                return {CUDA_ERROR_LAUNCH_TIMEOUT, outcome.report};
            case emulator::Fault::kIllegalAddress:
                return {CUDA_ERROR_ILLEGAL_ADDRESS, outcome.report};
            case emulator::Fault::kMisaligned:
                return {CUDA_ERROR_MISALIGNED_ADDRESS, outcome.report};
            case emulator::Fault::kLaunchFailed:
                break;
        }
        return {CUDA_ERROR_LAUNCH_FAILED, outcome.report};
    };
}

std::shared_ptr<Function> find_function(Driver& d, void* handle) {
    const auto found = d.functions.find(static_cast<Function*>(handle));
    return found == d.functions.end() ? nullptr : found->second;
}

}  // namespace
}  // namespace tessera::cuda::emulated

using namespace tessera::cuda::emulated;

TSR_EXPORT Result cuModuleLoadData(void** made, const void* image) {
    const Call call(Call::kWork | Call::kNoCapture);
    if (!call) return call.result;
    Driver& d = call.d;
    if (!made || !image) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Module> module;
    if (const Result result = load_module(d, *call.context, image, module); result != CUDA_SUCCESS) return result;
    *made = module.get();
    d.modules.emplace(module.get(), std::move(module));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuModuleUnload(void* handle) {
    Call call(Call::kNoCapture);
    if (!call) return call.result;
    Driver& d = call.d;
    auto found = d.modules.find(static_cast<Module*>(handle));
    if (found == d.modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    wait_for_all(d, call.lock);
    found = d.modules.find(static_cast<Module*>(handle));
    if (found == d.modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    found->second->context->card->code_bytes -= found->second->resident;
    std::erase_if(d.functions, [&](const auto& f) { return f.second->module.get() == handle; });
    d.modules.erase(found);
    return CUDA_SUCCESS;
}

// Loads the function's code, if it is the first time that it is asked for: not while capturing.
TSR_EXPORT Result cuModuleGetFunction(void** made, void* handle, const char* name) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    const auto found = d.modules.find(static_cast<Module*>(handle));
    if (found == d.modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    if (!made || !name) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Module>& module = found->second;
    for (const auto& [pointer, function] : d.functions) {
        if (function->module != module || function->image->name != name) continue;
        *made = pointer;
        return CUDA_SUCCESS;
    }
    if (const Result result = refuse_while_capturing(d); result != CUDA_SUCCESS) return result;
    const auto& images = module->image.kernels;
    const auto image = std::find_if(images.begin(), images.end(), [&](const ImageKernel& k) { return k.name == name; });
    if (image == images.end()) return CUDA_ERROR_NOT_FOUND;
    const simt::emulated::Kernel* kernel = nullptr;
    const tessera::cuda::ptx::Program* program = nullptr;
    if (const Result result = find_kernel(d, *module, *image, kernel, program); result != CUDA_SUCCESS) return result;
    if (const Result result = take_for_code(*module->context->card, *module, image->code_bytes); result != CUDA_SUCCESS)
        return result;
    const uint32_t shared = kSharedWithoutAsking - std::min(image->static_shared, kSharedWithoutAsking);
    auto function = std::make_shared<Function>(Function{
        module, &*image, kernel, program, shared, std::make_shared<const std::string>("kernel " + std::string(name))});
    *made = function.get();
    d.functions.emplace(function.get(), std::move(function));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuFuncGetAttribute(int* value, int which, void* handle) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    const auto function = find_function(d, handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    const ImageKernel& kernel = *function->image;
    const CardDescription& card = function->module->context->card->description;
    switch (which) {  // CUfunction_attribute
        case 0:
            *value = static_cast<int>(maximum_threads(kernel, card.limits));
            return CUDA_SUCCESS;
        case 1:
            *value = static_cast<int>(kernel.static_shared);
            return CUDA_SUCCESS;
        case 2:
            *value = 0;  // constant memory
            return CUDA_SUCCESS;
        case 3:
            *value = static_cast<int>(kernel.local);
            return CUDA_SUCCESS;
        case 4:
            *value = static_cast<int>(kernel.registers);
            return CUDA_SUCCESS;
        case 5:
            *value = static_cast<int>(function->module->image.virtual_arch / 10);
            return CUDA_SUCCESS;
        case 6:
            *value = static_cast<int>(function->module->image.capability / 10);
            return CUDA_SUCCESS;
        case 8:
            *value = static_cast<int>(function->maximum_dynamic_shared);
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

TSR_EXPORT Result cuFuncSetAttribute(void* handle, int which, int value) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    const auto function = find_function(d, handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    constexpr int kMaximumDynamicShared = 8, kCarveout = 9;
    if (which == kCarveout) return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (which != kMaximumDynamicShared || value < 0) return CUDA_ERROR_INVALID_VALUE;
    const Limits& limits = function->module->context->card->description.limits;
    if (function->image->static_shared + static_cast<uint64_t>(value) > limits.shared_per_block)
        return CUDA_ERROR_INVALID_VALUE;
    function->maximum_dynamic_shared = static_cast<uint32_t>(value);
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* handle, int threads,
                                                              size_t dynamic_shared) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    const auto function = find_function(d, handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    const ImageKernel& kernel = *function->image;
    const Limits& limits = function->module->context->card->description.limits;
    if (!blocks || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = 0;
    const auto wanted = static_cast<uint32_t>(threads);
    if (wanted > maximum_threads(kernel, limits) || dynamic_shared > limits.shared_per_block) return CUDA_SUCCESS;
    const uint64_t shared = kernel.static_shared + dynamic_shared + limits.shared_reserved;
    uint64_t most = std::min(limits.blocks_per_processor, limits.threads_per_processor / rounded(wanted, 32));
    most = std::min<uint64_t>(most, limits.registers_per_processor / registers_of_block(kernel, wanted));
    if (shared > 0) most = std::min<uint64_t>(most, limits.shared_per_processor / shared);
    *blocks = static_cast<int>(most);
    return CUDA_SUCCESS;
}

namespace {

Result launch(const Call& call, void* handle, const Extents& extents, void** parameters, void** extra) {
    if (!call) return call.result;
    Driver& d = call.d;
    const std::shared_ptr<Stream>& stream = call.stream;
    const auto function = find_function(d, handle);
    if (!function || function->module->context != &stream->context) return CUDA_ERROR_INVALID_HANDLE;
    if (extra) return CUDA_ERROR_NOT_SUPPORTED;
    Card& card = *stream->context.card;
    const ImageKernel& image = *function->image;
    const auto& [grid, block, dynamic_shared] = extents;
    const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > INT32_MAX || grid[1] > 65535 || grid[2] > 65535 ||
        block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads == 0 || threads > 1024 ||
        dynamic_shared > function->maximum_dynamic_shared)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > maximum_threads(image, card.description.limits)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (!image.parameters.empty() && !parameters) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < image.parameters.size(); ++i) {
        if (!parameters[i]) return CUDA_ERROR_INVALID_VALUE;
    }
    if (!stream->capture) {
        if (const Result result = take_for_local(card, image.local); result != CUDA_SUCCESS) return result;
    }
    const auto fault = card.faults.find("launch");
    const bool fails = fault != card.faults.end() && ++card.launches == fault->second;
    Work work = fails ? Work([](const Execution&) -> Ended {
        return {CUDA_ERROR_LAUNCH_FAILED, "a launch fails, as was asked for"};
    })
                      : work_of(function, extents, std::make_shared<Parameters>(image.parameters, parameters));
    Node node;
    node.kind = Node::kKernel;
    node.work = std::move(work);
    node.function = function;
    return submit(d, *stream, std::move(node));
}

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
    int id, padding;
    union {
        char bytes[64];
        int allowed;
    } value;
};
struct LaunchConfig {
    unsigned grid[3], block[3], dynamic_shared;
    void* stream;
    const LaunchAttribute* attributes;
    unsigned attribute_count;
};

}  // namespace

TSR_EXPORT Result cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned dynamic_shared, void* stream_handle,
                                 void** parameters, void** extra) {
    const Call call(Call::kWork, stream_handle);
    return launch(call, handle, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_shared}, parameters,
                  extra);
}

// Kernels that may overlap those before them are executed one after another all the same: the driver promises no more.
TSR_EXPORT Result cuLaunchKernelEx(const LaunchConfig* config, void* handle, void** parameters, void** extra) {
    if (!config || (config->attribute_count != 0 && !config->attributes)) return CUDA_ERROR_INVALID_VALUE;
    const Call call(Call::kWork, config->stream);
    if (!call) return call.result;
    constexpr int kIgnored = 0, kProgrammaticStreamSerialization = 6;  // CUlaunchAttributeID
    for (unsigned i = 0; i < config->attribute_count; ++i) {
        const LaunchAttribute& attribute = config->attributes[i];
        if (attribute.id == kIgnored) continue;
        if (attribute.id != kProgrammaticStreamSerialization) return CUDA_ERROR_NOT_SUPPORTED;
        if (attribute.value.allowed != 0 && call.context->card->description.capability < 900)
            return CUDA_ERROR_INVALID_VALUE;
    }
    Extents extents{{}, {}, config->dynamic_shared};
    std::copy_n(config->grid, 3, extents.grid);
    std::copy_n(config->block, 3, extents.block);
    return launch(call, handle, extents, parameters, extra);
}
