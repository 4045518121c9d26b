// From images to kernels. A cubin is read for what the real driver reads of it. Its kernels are those of the emulated
// library of the same module, or, if PTX is to be run, those of the PTX that it was made from, which the build puts
// beside such libraries.
#include "modules.hpp"

#include "../ptx/module.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace tessera::cuda::emulated {
namespace {

constexpr uint32_t kReservedOnHopper = 1024;

// What else a failed load has to say; shown by cuGetErrorString.
Result refuse(Driver& d, Result result, const std::string& why) {
    d.report = why;
    return result;
}

// Where the library lies in memory.
void find_extent(void* library, Module& module) {
    link_map* map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map) return;
    struct Found {
        uintptr_t base;
        Module& module;
    } found{map->l_addr, module};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
            auto& wanted = *static_cast<Found*>(data);
            if (info->dlpi_addr != wanted.base) return 0;
            uintptr_t begin = UINTPTR_MAX, end = 0;
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
                begin = std::min<uintptr_t>(begin, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
                end =
                    std::max<uintptr_t>(end, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
            }
            wanted.module.library_begin = begin;
            wanted.module.library_end = end;
            return 1;
        },
        &found);
}

std::string version(uint32_t capability) {
    return std::to_string(capability / 100) + "." + std::to_string(capability / 10 % 10);
}

// Makes of PTX what the real driver's compiler would make of it, as far as it shows: an image for the card.
Result compile(Driver& d, const CardDescription& card, Image& image) {
    if (image.ptx_version > card.ptx_version)
        return refuse(d, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                      "PTX of version " + version(image.ptx_version * 10) + " for a driver that reads up to " +
                          version(card.ptx_version * 10));
    const bool runs = image.this_card_alone ? image.capability == card.capability : image.capability <= card.capability;
    if (!runs)
        return refuse(d, CUDA_ERROR_INVALID_PTX,
                      "PTX for " + version(image.capability) + (image.this_card_alone ? " alone" : " or later") +
                          " on a card of " + version(card.capability));
    image.capability = card.capability;
    // The compiler takes some of each block for the system on these cards.
    for (ImageKernel& kernel : image.kernels) kernel.static_shared += card.capability >= 900 ? kReservedOnHopper : 0;
    return CUDA_SUCCESS;
}

// The file of that name in the first folder that has it; empty if none does.
std::string find_file(const Driver& d, const std::string& name) {
    for (const std::string& folder : d.kernel_folders) {
        const std::string path = folder + "/" + name;
        if (access(path.c_str(), R_OK) == 0) return path;
    }
    return {};
}

Result not_found(Driver& d, const std::string& what) {
    std::string tried;
    for (const std::string& folder : d.kernel_folders) tried += (tried.empty() ? "" : ", ") + folder;
    return refuse(d, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
                  "expected " + what + " in a folder of TESSERA_EMULATED_KERNELS; it is not in " +
                      (tried.empty() ? "any, since none is named" : tried));
}

Result open_library(Driver& d, Module& module) {
    const Image& image = module.image;
    const uint32_t virtual_arch = image.virtual_arch >= 800 ? 80 : image.virtual_arch >= 610 ? 61 : 60;
    const std::string name = image.module + "." + std::to_string(virtual_arch) + ".emulated.so";
    const std::string path = find_file(d, name);
    if (path.empty()) return not_found(d, "the emulated kernels " + name);
    module.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module.library) return refuse(d, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, dlerror());
    std::string reason;
    module.kernels = emulator::attach(module.library, reason);
    if (!module.kernels) return refuse(d, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, path + ": " + reason);
    find_extent(module.library, module);
    return CUDA_SUCCESS;
}

Result read_program(Driver& d, const void* data, Module& module) {
    const Image& image = module.image;
    std::string text;
    if (image.ptx) {
        text = static_cast<const char*>(data);
    } else {
        const std::string name = image.module + "." + std::to_string(image.virtual_arch / 10) + ".ptx";
        const std::string path = find_file(d, name);
        if (path.empty()) return not_found(d, "the PTX " + name + " that the cubin was made from");
        std::ifstream file(path, std::ios::binary);
        text.assign(std::istreambuf_iterator<char>(file), {});
        if (!file) return refuse(d, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "cannot read " + path);
    }
    try {
        module.ptx = std::make_unique<ptx::Module>(std::move(text));
    } catch (const ptx::Error& error) {
        return refuse(d, CUDA_ERROR_INVALID_PTX, image.module + ": " + error.what());
    }
    return CUDA_SUCCESS;
}

}  // namespace

Result load_module(Driver& d, Context& context, const void* data, std::shared_ptr<Module>& loaded) {
    auto module = std::make_shared<Module>();
    module->context = &context;
    std::string reason;
    if (is_ptx(data)) {
        if (!read_ptx(data, module->image, reason)) return refuse(d, CUDA_ERROR_INVALID_PTX, reason);
        if (const Result result = compile(d, context.card->description, module->image); result != CUDA_SUCCESS)
            return result;
    } else if (!read_image(data, module->image, reason)) {
        return refuse(d, CUDA_ERROR_INVALID_IMAGE, reason);
    }
    const Image& image = module->image;
    const uint32_t capability = context.card->description.capability;
    if (image.capability / 100 != capability / 100 || image.capability > capability)
        return refuse(d, CUDA_ERROR_NO_BINARY_FOR_GPU,
                      "a cubin for " + version(image.capability) + " on a card of " + version(capability));
    if (image.module.empty())
        return refuse(d, CUDA_ERROR_INVALID_IMAGE,
                      "the image has no symbol tessera_module_NAME: not made with simt.hpp");
    const Result opened = d.run_ptx ? read_program(d, data, *module) : open_library(d, *module);
    if (opened != CUDA_SUCCESS) return opened;
    if (const Result result = take_for_code(*context.card, *module, image.data_bytes); result != CUDA_SUCCESS)
        return result;
    loaded = std::move(module);
    return CUDA_SUCCESS;
}

Result find_kernel(Driver& d, Module& module, const ImageKernel& image, const simt::emulated::Kernel*& kernel,
                   const ptx::Program*& program) {
    std::vector<uint32_t> sizes;
    if (module.ptx) {
        try {
            program = module.ptx->kernel(image.name);
        } catch (const ptx::Error& error) {
            return refuse(d, CUDA_ERROR_INVALID_PTX,
                          module.image.module + ", kernel " + image.name + ": " + error.what());
        }
        if (program) {
            for (const ptx::Extent& parameter : program->parameters)
                sizes.push_back(static_cast<uint32_t>(parameter.bytes));
        }
    } else {
        const auto* const begin = module.kernels->kernels;
        const auto* const end = begin + module.kernels->kernel_count;
        const auto* const found = std::find_if(begin, end, [&](const auto& k) { return k.name == image.name; });
        if (found != end) {
            kernel = found;
            sizes.assign(kernel->parameter_bytes, kernel->parameter_bytes + kernel->parameter_count);
        }
    }
    const std::string other = (module.ptx ? "the PTX of " : "the emulated library of ") + module.image.module;
    if (!kernel && !program)
        return refuse(d, CUDA_ERROR_NOT_FOUND,
                      "the cubin has a kernel " + image.name + ", " + other + " has not: build it again");
    if (sizes != image.parameters)
        return refuse(d, CUDA_ERROR_INVALID_IMAGE,
                      "the parameters of " + image.name + " differ between the cubin and " + other +
                          ": the same types must have the same size on both sides");
    return CUDA_SUCCESS;
}

}  // namespace tessera::cuda::emulated
