// Modules of the emulated driver: PTX, what is loaded when, and the memory that code takes.
#include "emulated_cards.hpp"

#include <gmock/gmock.h>

namespace tessera::cuda::emulated {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

int load(const std::vector<char>& image, void*& module) {
    return call("cuModuleLoadData", &module, static_cast<const void*>(image.data()));
}

std::vector<char> ptx_for(const char* target, const char* version = "8.8") {
    return make_emulation_ptx(version, target, "test__driver", 800, test_kernels());
}

size_t free_bytes() {
    size_t free = 0, total = 0;
    EXPECT_EQ(call("cuMemGetInfo_v2", &free, &total), 0);
    return free;
}

// A card with its context current, and nothing else.
class BareCard {
  public:
    explicit BareCard(int ordinal) : number_(ordinal) {
        start_driver();
        void* context = nullptr;
        EXPECT_EQ(call("cuDevicePrimaryCtxRetain", &context, number_), 0);
        EXPECT_EQ(call("cuCtxPushCurrent_v2", context), 0);
    }
    ~BareCard() {
        void* popped = nullptr;
        call("cuCtxPopCurrent_v2", &popped);
        call("cuDevicePrimaryCtxRelease_v2", number_);
    }
    BareCard(const BareCard&) = delete;
    BareCard& operator=(const BareCard&) = delete;

  private:
    int number_;
};

TEST(EmulatedModules, PtxRunsOnItsCapabilityAndLaterOnes) {
    for (const auto& [number, capability] : {std::pair(0, 86), std::pair(kHopper, 90), std::pair(kUnknown, 130)}) {
        SCOPED_TRACE(capability);
        BareCard card(number);
        void *module = nullptr, *function = nullptr, *stream = nullptr;
        ASSERT_EQ(load(ptx_for("sm_80"), module), 0) << report();
        ASSERT_EQ(call("cuStreamCreate", &stream, 1u), 0);
        Address out = 0;
        ASSERT_EQ(call("cuMemAlloc_v2", &out, size_t{256}), 0);
        ASSERT_EQ(call("cuModuleGetFunction", &function, module, "architecture"), 0) << report();
        void* parameters[] = {&out};
        EXPECT_EQ(call("cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, static_cast<void**>(parameters),
                       static_cast<void**>(nullptr)),
                  0);
        int value = 0;
        EXPECT_EQ(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(&value), out, sizeof value, stream), 0);
        EXPECT_EQ(value, 800);
        const auto attribute = [&](const char* name, int which) {
            EXPECT_EQ(call("cuModuleGetFunction", &function, module, name), 0) << report();
            EXPECT_EQ(call("cuFuncGetAttribute", &value, which, function), 0);
            return value;
        };
        // What a driver knows once it has compiled it. Registers: the most that the launch bounds leave.
        EXPECT_EQ(attribute("scale", 6), capability);
        EXPECT_EQ(attribute("scale", 5), 80);
        EXPECT_EQ(attribute("scale", 1), capability >= 90 ? 512 + 1024 : 512);
        EXPECT_EQ(attribute("fill", 4), 255);
        EXPECT_EQ(attribute("at_offset", 4), 64);
        EXPECT_EQ(attribute("fill", 0), 256);
        EXPECT_EQ(call("cuStreamDestroy_v2", stream), 0);
    }
}

TEST(EmulatedModules, PtxOfALaterCapabilityIsRefused) {
    void* module = nullptr;
    {
        BareCard card(0);
        EXPECT_EQ(load(ptx_for("sm_90"), module), 218);
        EXPECT_THAT(report(), HasSubstr("PTX for 9.0 or later on a card of 8.6"));
        EXPECT_EQ(load(ptx_for("sm_86"), module), 0);
    }
    {
        BareCard card(1);
        EXPECT_EQ(load(ptx_for("sm_80"), module), 218);
        EXPECT_EQ(load(make_emulation_ptx("8.8", "sm_61", "test__driver", 610, test_kernels()), module), 0);
    }
    // What is written for one capability alone runs on no later one either.
    {
        BareCard card(kHopper);
        EXPECT_EQ(load(ptx_for("sm_90a"), module), 0) << report();
    }
    {
        BareCard card(kUnknown);
        EXPECT_EQ(load(ptx_for("sm_90a"), module), 218);
        EXPECT_THAT(report(), HasSubstr("PTX for 9.0 alone on a card of 13.0"));
        EXPECT_EQ(load(make_emulation_image(120, "test__driver", 800, test_kernels()), module), 209);
    }
}

TEST(EmulatedModules, PtxThatIsNewerThanTheDriverIsRefused) {
    BareCard card(kOldCompiler);
    void* module = nullptr;
    EXPECT_EQ(load(ptx_for("sm_80", "8.5"), module), 222);
    EXPECT_THAT(report(), HasSubstr("PTX of version 8.5 for a driver that reads up to 8.4"));
    EXPECT_EQ(load(ptx_for("sm_80", "8.4"), module), 0);
    const char* name = nullptr;
    EXPECT_EQ(call("cuGetErrorName", 222, &name), 0);
    EXPECT_STREQ(name, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
}

TEST(EmulatedModules, PtxMustSayWhatItIs) {
    BareCard card(0);
    void* module = nullptr;
    const auto text = [&](const char* ptx) { return call("cuModuleLoadData", &module, static_cast<const void*>(ptx)); };
    EXPECT_EQ(text(".version 8.0\n.address_size 64\n"), 218);
    EXPECT_THAT(report(), HasSubstr("no .target"));
    EXPECT_EQ(text("// nothing\n"), 218);
    EXPECT_EQ(text("/* .version 8.0 */"), 200);
    EXPECT_EQ(text(".version 8.0\n.target sm_80\n.visible .entry k() { ret; }"), 200);
    EXPECT_THAT(report(), HasSubstr("no symbol tessera_module_NAME"));
    EXPECT_EQ(text(".version 8.0\n.target sm_80\n.visible .entry k("), 200);  // cut off
    EXPECT_EQ(load(make_emulation_ptx("8.0", "sm_80", "test__driver", 800, {{"fill", {8, 8, 4}}}), module), 0);
    void* function = nullptr;
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "fill"), 200);
    EXPECT_THAT(report(), HasSubstr("the parameters of fill differ"));
}

// Lazy loading: the code of a kernel takes memory of the card from its first use on.
TEST(EmulatedModules, CodeTakesMemoryWhenAFunctionIsAskedFor) {
    BareCard card(22);
    constexpr uint32_t kCode = 5 << 20;
    const size_t before = free_bytes();
    void *module = nullptr, *function = nullptr;
    ImageOfKernel fill{"fill", {8, 4, 4}}, add_one{"add_one", {8, 4}};
    fill.code_bytes = kCode;
    const std::vector<char> image = make_emulation_image(86, "test__driver", 800, {fill, add_one});
    ASSERT_EQ(load(image, module), 0);
    const size_t loaded = free_bytes();
    EXPECT_EQ(before - loaded, 512u);  // its variables
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "fill"), 0);
    EXPECT_EQ(loaded - free_bytes(), kCode);
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "fill"), 0);
    EXPECT_EQ(loaded - free_bytes(), kCode);
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "add_one"), 0);
    EXPECT_EQ(loaded - free_bytes(), kCode + 512);  // the smallest one shows
    EXPECT_EQ(call("cuModuleUnload", module), 0);
    EXPECT_EQ(free_bytes(), before);

    // A card that is full has no room for it.
    ASSERT_EQ(load(image, module), 0);
    Address most = 0;
    ASSERT_EQ(call("cuMemAlloc_v2", &most, free_bytes() / (2 << 20) * (2 << 20)), 0);
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "fill"), 2);
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "add_one"), 0);
    EXPECT_EQ(call("cuMemFree_v2", most), 0);
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "fill"), 0);
}

// Local memory of all threads that can be resident is taken when a kernel first needs it, and kept.
TEST(EmulatedModules, LocalMemoryIsTakenWhenAKernelNeedsIt) {
    BareCard card(24);
    constexpr uint32_t kThreads = 82 * 1536;
    void *module = nullptr, *stream = nullptr;
    ImageOfKernel fill{"fill", {8, 4, 4}}, add_one{"add_one", {8, 4}}, race{"race", {8}};
    fill.local = 1024;
    race.local = 8192;
    ASSERT_EQ(load(make_emulation_image(86, "test__driver", 800, {fill, add_one, race}), module), 0);
    ASSERT_EQ(call("cuStreamCreate", &stream, 1u), 0);
    Address out = 0;
    ASSERT_EQ(call("cuMemAlloc_v2", &out, size_t{256}), 0);
    const auto launch = [&](const char* name) {
        void* function = nullptr;
        EXPECT_EQ(call("cuModuleGetFunction", &function, module, name), 0);
        int n = 1, value = 3;
        void* parameters[] = {&out, &n, &value};
        return call("cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, static_cast<void**>(parameters),
                    static_cast<void**>(nullptr));
    };
    for (const char* name : {"fill", "add_one", "race"}) {
        void* function = nullptr;
        EXPECT_EQ(call("cuModuleGetFunction", &function, module, name), 0);
    }
    const size_t before = free_bytes();
    // A graph takes it when it is instantiated, so that its launches need nothing.
    void *graph = nullptr, *executable = nullptr;
    ASSERT_EQ(call("cuStreamBeginCapture_v2", stream, 1), 0);
    EXPECT_EQ(launch("fill"), 0);
    EXPECT_EQ(call("cuStreamEndCapture", stream, &graph), 0);
    EXPECT_EQ(free_bytes(), before);
    EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
    const size_t taken = before - free_bytes();
    EXPECT_GE(taken, size_t{1024} * kThreads);
    EXPECT_LT(taken, size_t{1024} * kThreads + (2 << 20));
    EXPECT_EQ(call("cuGraphLaunch", executable, stream), 0);
    EXPECT_EQ(launch("add_one"), 0);
    EXPECT_EQ(launch("fill"), 0);
    EXPECT_EQ(before - free_bytes(), taken);
    // 1 GiB more is not there. The card goes on.
    EXPECT_EQ(launch("race"), 2);
    EXPECT_EQ(launch("fill"), 0);
    EXPECT_EQ(call("cuStreamSynchronize", stream), 0);
    EXPECT_EQ(before - free_bytes(), taken);
    EXPECT_EQ(call("cuGraphExecDestroy", executable), 0);
    EXPECT_EQ(call("cuGraphDestroy", graph), 0);
    EXPECT_EQ(call("cuStreamDestroy_v2", stream), 0);
}

struct Nvml {
    Nvml() {
        library = dlopen(TSR_EMULATED_DRIVER_DIR "/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        EXPECT_NE(library, nullptr) << dlerror();
        EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"))(), 0);
    }
    template <class... Arguments>
    int operator()(const char* name, Arguments... arguments) const {
        return reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name))(arguments...);
    }
    unsigned long long free(const char* pci_id) const {
        void* device = nullptr;
        unsigned long long memory[3] = {};
        EXPECT_EQ((*this)("nvmlDeviceGetHandleByPciBusId_v2", pci_id, &device), 0);
        EXPECT_EQ((*this)("nvmlDeviceGetMemoryInfo", device, static_cast<void*>(memory)), 0);
        EXPECT_EQ(memory[0], 1u << 30);
        EXPECT_EQ(memory[1] + memory[2], memory[0]);
        return memory[1];
    }
    void* library;
};

// What contexts and allocations of whatever handle leave, as cuMemGetInfo says it, without a context of one's own.
TEST(EmulatedModules, NvmlKnowsFreeMemory) {
    start_driver();
    const Nvml nvml;
    void* device = nullptr;
    EXPECT_EQ(nvml("nvmlDeviceGetHandleByPciBusId_v2", "EE00:99:00.0", &device), 6);
    EXPECT_EQ(nvml.free("ee00:1B:00.0"), 1u << 30);
    {
        TestCard card(26);
        card.allocate(100 << 20);
        EXPECT_EQ(nvml.free("ee00:1B:00.0"), (1u << 30) - (64u << 20) - (100u << 20) - 512);
        EXPECT_EQ(nvml.free("ee00:1B:00.0"), free_bytes());
    }
    EXPECT_EQ(nvml.free("ee00:1B:00.0"), 1u << 30);
}

TEST(EmulatedModules, WhatOtherProcessesHaveIsNotFree) {
    start_driver();
    const Nvml nvml;
    EXPECT_EQ(nvml.free("ee00:1E:00.0"), (1u << 30) - (128u << 20));
    BareCard card(kShared);
    const size_t free = free_bytes();
    EXPECT_EQ(free, (1u << 30) - (128u << 20) - (256u << 20));
    Address address = 0;
    EXPECT_EQ(call("cuMemAlloc_v2", &address, free + 1), 2);
    EXPECT_EQ(call("cuMemAlloc_v2", &address, free), 0);
    void* context = nullptr;
    EXPECT_EQ(call("cuDevicePrimaryCtxRetain", &context, kFull), 2);  // no room for a context
}

TEST(EmulatedModules, NvmlKnowsTheLink) {
    start_driver();
    const Nvml nvml;
    void* device = nullptr;
    unsigned generation = 0, lanes = 0;
    for (const auto& [pci_id, expected] : {std::pair("ee00:01:00.0", 4u), std::pair("ee00:02:00.0", 3u)}) {
        EXPECT_EQ(nvml("nvmlDeviceGetHandleByPciBusId_v2", pci_id, &device), 0);
        EXPECT_EQ(nvml("nvmlDeviceGetMaxPcieLinkGeneration", device, &generation), 0);
        EXPECT_EQ(nvml("nvmlDeviceGetMaxPcieLinkWidth", device, &lanes), 0);
        EXPECT_EQ(generation, expected);
        EXPECT_EQ(lanes, 16u);
    }
    EXPECT_EQ(nvml("nvmlDeviceGetMaxPcieLinkWidth", static_cast<void*>(nullptr), &lanes), 2);
}

}  // namespace
}  // namespace tessera::cuda::emulated
