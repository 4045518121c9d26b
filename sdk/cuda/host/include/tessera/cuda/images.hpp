// Modules of compiled kernels, as tessera-cuda-compile embeds them into a plugin, and which image a card runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::cuda {

// Compute capabilities are 100 * major + 10 * minor.
struct Image {
    uint32_t capability;  // that it was compiled for; of PTX: the least that it can be compiled for
    bool ptx;
    const unsigned char *begin, *end;  // compressed, in zlib's format (RFC 1950)
    size_t bytes = 0;                  // as the driver takes it
    uint32_t instructions = 0;  // the capability of the virtual architecture that it was made from; 0: as `capability`
    bool overlaps = false;      // its kernels wait for the grids that they were launched behind: griddepcontrol.wait
};

struct Module {
    const char* name;  // "cuda_ampere__matmul"
    const Image* images;
    size_t count;
};

// The image for a card: machine code for its capability or the nearest lower one of the same major version, else PTX
// for an older one, which the driver compiles; nullptr if there is none. Pure. [any]
const Image* find_image(const Module& module, uint32_t capability) noexcept;

// The capability whose instructions a card finds in a module: code for 9.0 that was made from compute_61 (90@61) has
// those of 6.1. 0: there is no image. Pure. [any]
uint32_t instructions_for(const Module& module, uint32_t capability) noexcept;

// The image as the driver takes it. Throws sdk::Failure(TSR_INTERNAL) if it is not what its description says.
std::vector<unsigned char> decompressed(const Image& image);

// "6.1"
std::string capability_text(uint32_t capability);

// Why a card cannot run a module for which find_image gives nullptr.
std::string missing_image(const Module& module, uint32_t capability);

}  // namespace tessera::cuda

// Declares the module that tessera_cuda_module(PLUGIN NAME ...) embeds as tessera_cuda_module_PLUGIN__NAME.
#define TESSERA_CUDA_MODULE(module) extern const tessera::cuda::Module tessera_cuda_module_##module
