// Kernels of embedded modules on a device of interop "cuda-driver/1", whichever plugin owns the device.
#pragma once

#include <tessera/cuda/driver.hpp>
#include <tessera/cuda/images.hpp>
#include <tessera/cuda/provider.hpp>
#include <tessera/device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace tessera::cuda {

struct Grid {
    uint32_t x = 1, y = 1, z = 1;
};

// A module that is loaded into a context; shared by all who load it there, unloaded by the last.
class ModuleOnDevice;

// A function of a module, ready to be launched. Made by a kernel's prepare: loading is refused while recording.
class Kernel {
  public:
    // `module` lives until the process ends; `device` outlives this. dynamic_shared_bytes: the maximum that a launch
    // will give. Throws sdk::Failure: TSR_UNSUPPORTED without an image for the device.
    Kernel(tsr_device& device, const Module& module, const char* function, uint32_t dynamic_shared_bytes = 0);

    // Puts a launch on the queue: `threads` a block, one argument by value. A grid with an extent of 0 launches
    // nothing. Throws sdk::Failure that names kernel and device.
    template <class Arguments>
    void launch(tsr_queue queue, const Grid& grid, uint32_t threads, const Arguments& arguments,
                uint32_t dynamic_shared_bytes = 0) const {
        static_assert(std::is_trivially_copyable_v<Arguments>);
        Arguments copy = arguments;
        void* pointers[] = {&copy};
        launch_with(queue, grid, threads, dynamic_shared_bytes, pointers);
    }

  private:
    void launch_with(tsr_queue queue, const Grid& grid, uint32_t threads, uint32_t shared_bytes,
                     void** arguments) const;

    tsr_device* device_;
    std::shared_ptr<const ModuleOnDevice> module_;
    Function function_ = nullptr;
    bool overlaps_ = false;  // it may start before what was launched before it has ended
    std::string name_;
};

}  // namespace tessera::cuda
