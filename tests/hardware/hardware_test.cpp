#include "core/hardware/hardware.hpp"

#include "core/base/error.hpp"
#include "core/hardware/cpu_flags.hpp"
#include "core/hardware/probe.hpp"
#include "core/hardware/speeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace tessera {
namespace {

using testing::ElementsAre;

DeviceDescription device(const char* kind, const char* id) {
    DeviceDescription d;
    d.kind = kind;
    d.id = id;
    return d;
}

TEST(Hardware, InfosStayWhereTheyAre) {
    Hardware hardware({device("cpu", "CPU"), device("cuda", "CUDA0")});
    const tsr_device_info* cpu = &hardware.cpu();
    const char* const id = cpu->id;
    for (int i = 0; i < 100; ++i) hardware.add(device("example", ("SIM" + std::to_string(i)).c_str()));
    const Hardware moved = std::move(hardware);
    EXPECT_EQ(&moved.cpu(), cpu);
    EXPECT_EQ(cpu->id, id);
    EXPECT_STREQ(cpu->id, "CPU");
    EXPECT_EQ(cpu->struct_size, sizeof(tsr_device_info));
    EXPECT_EQ(moved.find("sim99")->index, 99u);
    EXPECT_EQ(moved.find("cuda0")->index, 0u);
    EXPECT_EQ(moved.find("CUDA1"), nullptr);
    EXPECT_EQ(moved.devices().size(), 102u);
    EXPECT_EQ(moved.find("SIM5")->cpu_flags, nullptr);
    ASSERT_NE(cpu->cpu_flags, nullptr);
    EXPECT_EQ(cpu->cpu_flags[0], nullptr);
}

TEST(Hardware, RefusesWhatIsNoMachine) {
    EXPECT_THROW(Hardware({}), Error);
    EXPECT_THROW(Hardware({device("cuda", "CUDA0")}), Error);
    EXPECT_THROW(Hardware({device("cpu", "CPU"), device("cpu", "CPU1")}), Error);
    EXPECT_THROW(Hardware({device("cpu", "CPU"), device("cuda", "cpu")}), Error);
    EXPECT_THROW(Hardware({device("cpu", "")}), Error);
    Hardware hardware({device("cpu", "CPU")});
    EXPECT_THROW(hardware.limit_memory("CUDA0", 1), Error);
}

TEST(Hardware, AGpuIsSplitIntoLogicalDevices) {
    constexpr uint64_t kGiB = 1 << 30;
    DeviceDescription gpu = device("cuda", "CUDA1");
    gpu.memory_bytes = 24 * kGiB;
    gpu.free_memory_bytes = 20 * kGiB;
    gpu.pci_id = "0000:01:00.0";
    gpu.compute_capability = 860;
    Hardware hardware({device("cpu", "CPU"), device("cuda", "CUDA0"), gpu, device("cuda", "CUDA2")});
    hardware.split_gpu("cuda1", std::vector<uint64_t>{6 * kGiB, 0, 0});
    ASSERT_EQ(hardware.devices().size(), 6u);
    EXPECT_EQ(hardware.find("CUDA1"), nullptr);
    for (size_t i = 0; i < 3; ++i) {
        const tsr_device_info& part = *hardware.devices()[2 + i];
        EXPECT_EQ(part.id, "CUDA1." + std::to_string(i));
        EXPECT_EQ(part.index, 1u) << "it is on that card";
        EXPECT_STREQ(part.pci_id, "0000:01:00.0");
        EXPECT_EQ(part.compute_capability, 860u);
        EXPECT_EQ(part.memory_bytes, (i == 0 ? 6 : 9) * kGiB);
        EXPECT_EQ(part.free_memory_bytes, part.memory_bytes / 6 * 5);
        EXPECT_EQ(part.largest_allocation_bytes, part.memory_bytes);
    }
    EXPECT_STREQ(hardware.devices()[5]->id, "CUDA2");
    EXPECT_EQ(hardware.devices()[5]->index, 2u);

    // Parts that leave memory unused get all that they ask for.
    hardware.limit_memory("CUDA1.0", 6 * kGiB);
    hardware.split_gpu("CUDA1.1", std::vector<uint64_t>{2 * kGiB});
    EXPECT_EQ(hardware.find("CUDA1.1.0")->free_memory_bytes, 2 * kGiB);

    const size_t before = hardware.devices().size();
    EXPECT_THROW(hardware.split_gpu("CUDA1.2", std::vector<uint64_t>{5 * kGiB, 5 * kGiB}), Error);
    EXPECT_THROW(hardware.split_gpu("CUDA1.2", std::vector<uint64_t>{9 * kGiB, 0}), Error);
    EXPECT_THROW(hardware.split_gpu("CUDA1.2", {}), Error);
    EXPECT_THROW(hardware.split_gpu("CUDA1", std::vector<uint64_t>{0, 0}), Error);
    EXPECT_THROW(hardware.split_gpu("CPU", std::vector<uint64_t>{0, 0}), Error);
    EXPECT_EQ(hardware.devices().size(), before);
}

TEST(Hardware, DetectsThisMachine) {
    const Hardware hardware = Hardware::detect();
    const tsr_device_info& cpu = hardware.cpu();
    EXPECT_STREQ(cpu.kind, "cpu");
    EXPECT_STRNE(cpu.name, "");
    EXPECT_GE(cpu.threads, 1u);
    EXPECT_GE(cpu.numa_nodes, 1u);
    EXPECT_GT(cpu.memory_bytes, uint64_t{1} << 28);
    EXPECT_GT(cpu.free_memory_bytes, 0u);
    EXPECT_LE(cpu.free_memory_bytes, cpu.memory_bytes);
    EXPECT_FALSE(hardware.is_rig());
    for (const tsr_device_info* info : hardware.devices().subspan(1)) {
        EXPECT_STREQ(info->kind, "cuda");
        EXPECT_GE(info->compute_capability, 300u);
        EXPECT_GT(info->memory_bytes, 0u);
    }
}

// The kernel leaves out what it does not enable, as we do; of the flags that we know, both must find the same.
TEST(CpuFlags, AreThoseOfTheKernel) {
    std::ifstream in("/proc/cpuinfo");
    std::set<std::string> kernel;
    for (std::string line; std::getline(in, line);) {
        if (line.rfind("flags", 0) != 0) continue;
        std::istringstream words(line.substr(line.find(':') + 1));
        for (std::string word; words >> word;) kernel.insert(word);
        break;
    }
    ASSERT_FALSE(kernel.empty());
    const std::vector<std::string>& flags = host_cpu_flags();
    EXPECT_TRUE(std::is_sorted(flags.begin(), flags.end()));
    for (const std::string& flag : flags) EXPECT_TRUE(kernel.contains(flag)) << flag;
    for (const char* flag : {"sse2", "ssse3", "fma", "f16c", "avx", "avx2", "bmi2", "avx512f", "avx512bw", "avx512vl",
                             "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "avx_vnni"}) {
        // Which the system may yet refuse.
        if (std::string_view(flag).starts_with("amx") && !withheld_cpu_flags().empty()) continue;
        EXPECT_EQ(kernel.contains(flag), std::binary_search(flags.begin(), flags.end(), flag)) << flag;
    }
    EXPECT_TRUE(kernel.contains("amx_tile") || withheld_cpu_flags().empty()) << withheld_cpu_flags();
}

TEST(CpuList, IsParsed) {
    EXPECT_THAT(parse_cpu_list("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
    EXPECT_THAT(parse_cpu_list("5"), ElementsAre(5));
    EXPECT_THAT(parse_cpu_list(""), ElementsAre());
    EXPECT_THAT(parse_cpu_list("x"), ElementsAre());
    EXPECT_THAT(parse_cpu_list("1,3-2"), ElementsAre(1));
    EXPECT_THAT(parse_cpu_list("0-4294967295"), ElementsAre());
}

}  // namespace
}  // namespace tessera
