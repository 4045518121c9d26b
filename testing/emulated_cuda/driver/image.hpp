// What a driver reads of a module: a cubin, an ELF file whose sections say for each kernel what it takes, or PTX, whose
// directives do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::cuda::emulated {

struct ImageKernel {
    std::string name;
    uint32_t registers = 0;      // a thread
    uint32_t static_shared = 0;  // bytes
    uint32_t local = 0;          // bytes a thread
    uint32_t maximum_threads = 1024;
    uint32_t parameter_bytes = 0;
    uint64_t code_bytes = 0;
    std::vector<uint32_t> parameters;  // bytes of each, in order
};

struct Image {
    uint32_t capability = 0;  // 860: made for 8.6; of PTX, the least one
    bool ptx = false;
    uint32_t ptx_version = 0;      // 84: of PTX ISA 8.4
    bool this_card_alone = false;  // PTX for sm_90a: for no later capability
    std::string module;            // NAME of the symbol tessera_module_NAME
    uint32_t virtual_arch = 0;     // value of that symbol: 610
    uint64_t data_bytes = 0;       // variables and constants
    std::vector<ImageKernel> kernels;
};

// Reads the image at `data`, whose size its own headers tell, as for cuModuleLoadData. False and a reason if it is no
// cubin.
bool read_image(const void* data, Image& image, std::string& reason);
// The same of PTX, which a zero byte ends. Registers are not in it: the most that launch bounds allow are assumed.
bool read_ptx(const void* data, Image& image, std::string& reason);
bool is_ptx(const void* data);

}  // namespace tessera::cuda::emulated
