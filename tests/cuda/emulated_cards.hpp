// The emulated driver for tests: opened as a plugin opens a driver, each test on cards that no other test uses.
#pragma once

#include "emulation_image.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::cuda::emulated {

using Address = unsigned long long;

// Calls a function of the driver by name; its arguments have exactly the types of its declaration.
template <class... Arguments>
int call(const char* name, Arguments... arguments) {
    static void* const library = [] {
        void* const opened = dlopen(TSR_EMULATED_DRIVER_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!opened) throw std::runtime_error(dlerror());
        return opened;
    }();
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    if (!function) throw std::runtime_error(std::string("no function ") + name);
    return function(arguments...);
}

inline std::string report() {
    std::vector<char> text(4096);
    call("tesseraEmulatedReport", text.data(), text.size());
    return text.data();
}

// 64 cards: every even one 8.6, every odd one 6.1, of 1 GiB, but for these.
inline constexpr int kCards = 64;
inline constexpr int kHopper = 23, kUnknown = 25, kOldCompiler = 27, kShared = 29, kFull = 31;

inline void start_driver() {
    static const bool started = [] {
        std::string cards;
        for (int i = 0; i < kCards; ++i)
            cards += std::string(i ? ";" : "") +
                     (i == kHopper        ? "9.0:1GiB"
                      : i == kUnknown     ? "13.0:1GiB"
                      : i == kOldCompiler ? "8.6:1GiB:ptx=8.4"
                      : i == kShared      ? "8.6:1GiB:taken=128MiB"
                      : i == kFull        ? "8.6:1GiB:taken=800MiB"
                      : i % 2             ? "6.1:1GiB"
                                          : "8.6:1GiB") +
                     (i % 2 ? ":peers=none" : ":context=64");
        setenv("TESSERA_EMULATED_GPUS", cards.c_str(), 1);
        setenv("TESSERA_EMULATED_KERNELS", TSR_EMULATED_DIR, 1);
        setenv("TESSERA_EMULATED_PATIENCE", "1000000", 1);
        setenv("TESSERA_EMULATED_LOG", "/dev/null", 1);
        return call("cuInit", 0u) == 0;
    }();
    ASSERT_TRUE(started) << report();
}

inline const std::vector<ImageOfKernel>& test_kernels() {
    static const std::vector<ImageOfKernel> kernels{
        {"fill", {8, 4, 4}, 16, 0, 256},   {"add_one", {8, 4}, 16, 0, 256},     {"scale", {32}, 20, 512, 128},
        {"use_shared", {8, 4}, 24, 0, 32}, {"at_offset", {8, 8}, 255, 0, 1024}, {"race", {8}, 16, 0, 64},
        {"wait_for_flag", {8}, 16, 0, 32}, {"architecture", {8}, 16, 0, 32},
    };
    return kernels;
}

// A card with its context current in the calling thread, a module and a stream.
class TestCard {
  public:
    explicit TestCard(int ordinal, uint32_t capability = 0, uint32_t virtual_arch = 0) : number(ordinal) {
        start_driver();
        EXPECT_EQ(call("cuDevicePrimaryCtxRetain", &context, number), 0);
        EXPECT_EQ(call("cuCtxPushCurrent_v2", context), 0);
        image = make_emulation_image(capability   ? capability
                                     : number % 2 ? 61
                                                  : 86,
                                     "test__driver",
                                     virtual_arch ? virtual_arch
                                     : number % 2 ? 610
                                                  : 800,
                                     test_kernels());
        EXPECT_EQ(call("cuModuleLoadData", &module, static_cast<const void*>(image.data())), 0) << report();
        EXPECT_EQ(call("cuStreamCreate", &stream, 1u), 0);
    }
    ~TestCard() {
        for (const Address address : owned_) call("cuMemFree_v2", address);
        call("cuStreamDestroy_v2", stream);
        call("cuModuleUnload", module);
        void* popped = nullptr;
        call("cuCtxPopCurrent_v2", &popped);
        call("cuDevicePrimaryCtxRelease_v2", number);
    }
    TestCard(const TestCard&) = delete;
    TestCard& operator=(const TestCard&) = delete;

    Address allocate(size_t bytes) {
        Address address = 0;
        void* popped = nullptr;
        EXPECT_EQ(call("cuCtxPushCurrent_v2", context), 0);
        EXPECT_EQ(call("cuMemAlloc_v2", &address, bytes), 0);
        EXPECT_EQ(call("cuCtxPopCurrent_v2", &popped), 0);
        owned_.push_back(address);
        return address;
    }
    void* function(const char* name) {
        void* found = nullptr;
        EXPECT_EQ(call("cuModuleGetFunction", &found, module, name), 0) << name << ' ' << report();
        return found;
    }
    template <class... Arguments>
    int launch_on(void* on, const char* name, unsigned blocks, unsigned threads, unsigned shared,
                  Arguments... arguments) {
        void* parameters[] = {&arguments..., nullptr};
        return call("cuLaunchKernel", function(name), blocks, 1u, 1u, threads, 1u, 1u, shared, on,
                    static_cast<void**>(parameters), static_cast<void**>(nullptr));
    }
    template <class... Arguments>
    int launch(const char* name, unsigned blocks, unsigned threads, Arguments... arguments) {
        return launch_on(stream, name, blocks, threads, 0, arguments...);
    }
    int synchronize() { return call("cuStreamSynchronize", stream); }
    std::vector<int> download(Address from, size_t count) {
        std::vector<int> values(count);
        EXPECT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(values.data()), from, count * sizeof(int), stream),
                  0);
        return values;
    }
    void upload(Address to, const std::vector<int>& values) {
        EXPECT_EQ(call("cuMemcpyHtoDAsync_v2", to, static_cast<const void*>(values.data()), values.size() * sizeof(int),
                       stream),
                  0);
    }
    void* make_stream() {
        void* made = nullptr;
        EXPECT_EQ(call("cuStreamCreate", &made, 1u), 0);
        return made;
    }
    void* make_event(unsigned flags = 2) {
        void* made = nullptr;
        EXPECT_EQ(call("cuEventCreate", &made, flags), 0);
        return made;
    }

    int number;
    void *context = nullptr, *module = nullptr, *stream = nullptr;
    std::vector<char> image;

  private:
    std::vector<Address> owned_;
};

}  // namespace tessera::cuda::emulated
