#include <tessera/cpp/status.hpp>
#include <tessera/cuda/images.hpp>

#include <zlib.h>

namespace tessera::cuda {

const Image* find_image(const Module& module, uint32_t capability) noexcept {
    const Image* best = nullptr;
    for (size_t i = 0; i < module.count; ++i) {
        const Image& image = module.images[i];
        if (image.capability > capability) continue;
        if (!image.ptx && image.capability / 100 != capability / 100) continue;
        if (!best || (best->ptx && !image.ptx) || (best->ptx == image.ptx && image.capability > best->capability))
            best = &image;
    }
    return best;
}

uint32_t instructions_for(const Module& module, uint32_t capability) noexcept {
    const Image* const image = find_image(module, capability);
    if (!image) return 0;
    return image->instructions ? image->instructions : image->capability;
}

std::vector<unsigned char> decompressed(const Image& image) {
    std::vector<unsigned char> bytes(image.bytes);
    uLongf length = static_cast<uLongf>(bytes.size());
    const int status = uncompress(bytes.data(), &length, image.begin, static_cast<uLong>(image.end - image.begin));
    if (status != Z_OK || length != bytes.size()) {
        throw sdk::Failure(TSR_INTERNAL,
                           "an embedded image for compute capability " + capability_text(image.capability) +
                               " is damaged (zlib: " + std::to_string(status) + "): install the plugin again");
    }
    return bytes;
}

std::string capability_text(uint32_t capability) {
    return std::to_string(capability / 100) + "." + std::to_string(capability / 10 % 10);
}

std::string missing_image(const Module& module, uint32_t capability) {
    std::string built;
    for (size_t i = 0; i < module.count; ++i) {
        if (!module.images[i].ptx) built += (built.empty() ? "" : " ") + capability_text(module.images[i].capability);
    }
    return std::string(module.name) + " was built without kernels for compute capability " +
           capability_text(capability) + ", with those for " + (built.empty() ? "none" : built) +
           "; rebuild with -DTSR_CUDA_ARCHS=" + std::to_string(capability / 10);
}

}  // namespace tessera::cuda
