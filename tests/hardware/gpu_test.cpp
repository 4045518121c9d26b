// GPUs as reported by a driver: CTest makes this program load a fake one.
#include "core/hardware/hardware.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Gpus, AreThoseOfTheDriver) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(driver, nullptr) << "run by CTest, which puts the folder of the fake driver into LD_LIBRARY_PATH";
    const Hardware hardware = Hardware::detect();
    ASSERT_EQ(hardware.devices().size(), 3u);
    const tsr_device_info& ampere = *hardware.find("CUDA0");
    EXPECT_STREQ(ampere.kind, "cuda");
    EXPECT_STREQ(ampere.name, "NVIDIA GeForce RTX 3090");
    EXPECT_STREQ(ampere.pci_id, "0000:64:00.0");
    EXPECT_EQ(ampere.index, 0u);
    EXPECT_EQ(ampere.compute_capability, 860u);
    EXPECT_EQ(ampere.memory_bytes, 25438126080u);
    EXPECT_EQ(ampere.free_memory_bytes, 20000000000u);
    EXPECT_NEAR(ampere.memory_bandwidth, 936e9, 1e9);
    EXPECT_STREQ(ampere.link, "pcie4x8");
    EXPECT_NEAR(ampere.link_bandwidth, 13.4e9, 0.1e9);
    const tsr_device_info& pascal = *hardware.find("CUDA1");
    EXPECT_EQ(pascal.compute_capability, 610u);
    EXPECT_EQ(pascal.index, 1u);
    EXPECT_EQ(pascal.free_memory_bytes, pascal.memory_bytes);  // NVML does not know it
    EXPECT_STREQ(pascal.link, "");
    EXPECT_NEAR(pascal.link_bandwidth, 13.4e9, 0.1e9);  // pcie3x16, as slots have at least
    EXPECT_EQ(pascal.cpu_flags, nullptr);
}

TEST(Gpus, FreeMemoryIsAskedInOneSession) {
    void* const nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(nvml, nullptr);
    const auto sessions = reinterpret_cast<int (*)()>(dlsym(nvml, "fake_sessions"));
    ASSERT_NE(sessions, nullptr);
    const Hardware hardware = Hardware::detect();
    const int before = sessions();
    const auto free = free_gpu_memory(hardware.devices());
    EXPECT_EQ(sessions(), before + 1);
    ASSERT_EQ(free.size(), 3u);
    EXPECT_FALSE(free[0]);
    EXPECT_EQ(free[1], 20000000000u);
    EXPECT_FALSE(free[2]);  // NVML does not know it
    free_gpu_memory(hardware.devices().first(1));
    EXPECT_EQ(sessions(), before + 1) << "a machine without cards";
}

}  // namespace
}  // namespace tessera
