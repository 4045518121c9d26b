// A library of emulated kernels, launched without a driver.
#pragma once

#include "emulator.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::cuda::emulator {

// Memory of card 0, as a driver would give it out: apart from each other, and unwritten.
class CardMemory {
  public:
    ~CardMemory() {
        for (const auto& [address, bytes] : mapped_) munmap(address, bytes);
    }
    template <class T>
    T* allocate(size_t count, int device = 0) {
        const uint64_t bytes = count * sizeof(T), mapped = (bytes + 3 * 4096) / 4096 * 4096;
        auto* const base =
            static_cast<char*>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mapped_.emplace_back(base, mapped);
        std::memset(base, 0xFF, mapped);
        memory.add(reinterpret_cast<uintptr_t>(base + 4096), bytes, device);
        return reinterpret_cast<T*>(base + 4096);
    }
    template <class T>
    T* upload(const std::vector<T>& values, int device = 0) {
        T* const at = allocate<T>(values.size(), device);
        std::memcpy(static_cast<void*>(at), values.data(), values.size() * sizeof(T));
        range_before(*memory.ranges(), reinterpret_cast<uintptr_t>(at))->written->mark(0, values.size() * sizeof(T));
        return at;
    }

    Memory memory;

  private:
    std::vector<std::pair<void*, size_t>> mapped_;
};

class EmulatedModule {
  public:
    explicit EmulatedModule(const std::filesystem::path& library) {
        handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle_) throw std::runtime_error(dlerror());
        std::string reason;
        module_ = attach(handle_, reason);
        if (!module_) throw std::runtime_error(reason);
    }

    template <class... Arguments>
    Outcome run(const std::string& name, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                const CardMemory& card, const Options& options, uint32_t dynamic_shared, Arguments... arguments) const {
        Launch launch;
        for (uint32_t i = 0; i < module_->kernel_count; ++i) {
            if (name == module_->kernels[i].name) launch.kernel = &module_->kernels[i];
        }
        if (!launch.kernel) throw std::runtime_error("no kernel " + name);
        if (launch.kernel->parameter_count != sizeof...(Arguments)) throw std::runtime_error("arguments of " + name);
        void* parameters[] = {&arguments...};
        std::copy(grid.begin(), grid.end(), launch.grid);
        std::copy(block.begin(), block.end(), launch.block);
        launch.dynamic_shared = dynamic_shared;
        launch.parameters = parameters;
        launch.memory = card.memory.ranges();
        return emulator::run(launch, options);
    }

  private:
    void* handle_ = nullptr;
    const simt::emulated::Module* module_ = nullptr;
};

}  // namespace tessera::cuda::emulator
