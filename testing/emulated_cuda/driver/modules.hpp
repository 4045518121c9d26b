// Modules of the driver: from images to what is executed.
#pragma once

#include "state.hpp"

namespace tessera::cuda::emulated {

// Reads the image at `data` for the context's card. Else why not, in Driver::report too. With the mutex.
Result load_module(Driver& d, Context& context, const void* data, std::shared_ptr<Module>& loaded);
// What executes a kernel of the module's image: one of the two. With the mutex.
Result find_kernel(Driver& d, Module& module, const ImageKernel& image, const simt::emulated::Kernel*& kernel,
                   const ptx::Program*& program);

}  // namespace tessera::cuda::emulated
