// Memory under control groups, from trees of files like the kernel's.
#include "core/hardware/probe.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tessera {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMiB = 1 << 20;

class HostMemoryTest : public testing::Test {
  protected:
    HostMemoryTest() {
        write("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  1 kB\nMemAvailable:    6291456 kB\n");
    }

    void write(const fs::path& file, const std::string& text) { temporary_.write(file, text); }

    const test::TemporaryFolder temporary_;
    const fs::path& root_ = temporary_.path();
};

TEST_F(HostMemoryTest, WithoutGroupsItIsTheMachine) {
    const HostMemory memory = probe_host_memory(root_);
    EXPECT_EQ(memory.total_bytes, 8192 * kMiB);
    EXPECT_EQ(memory.free_bytes, 6144 * kMiB);
    EXPECT_FALSE(probe_cpu_quota(root_));
}

TEST_F(HostMemoryTest, Version2TheTightestOfAllFoldersCounts) {
    write("proc/self/cgroup", "0::/user/job\n");
    write("sys/fs/cgroup/user/job/memory.max", "max\n");
    write("sys/fs/cgroup/user/memory.max", std::to_string(2048 * kMiB) + "\n");
    write("sys/fs/cgroup/user/memory.current", std::to_string(1500 * kMiB) + "\n");
    write("sys/fs/cgroup/user/memory.stat",
          "anon 5\ninactive_file " + std::to_string(400 * kMiB) + "\nactive_file " + std::to_string(100 * kMiB) + "\n");
    write("sys/fs/cgroup/user/cpu.max", "150000 100000\n");
    write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
    const HostMemory memory = probe_host_memory(root_);
    EXPECT_EQ(memory.total_bytes, 2048 * kMiB);
    EXPECT_EQ(memory.free_bytes, 1048 * kMiB);
    EXPECT_EQ(probe_cpu_quota(root_), 2u);
}

TEST_F(HostMemoryTest, Version1BesideAnEmptyUnifiedHierarchy) {
    write("proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n");
    write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(1024 * kMiB) + "\n");
    write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(2000 * kMiB) + "\n");
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
    write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    const HostMemory memory = probe_host_memory(root_);
    EXPECT_EQ(memory.total_bytes, 1024 * kMiB);
    EXPECT_EQ(memory.free_bytes, 0u);
    EXPECT_FALSE(probe_cpu_quota(root_));
}

TEST_F(HostMemoryTest, InAContainerOnlyTheRootIsThere) {
    write("proc/self/cgroup", "0::/docker/1234\n");
    write("sys/fs/cgroup/memory.max", std::to_string(512 * kMiB) + "\n");
    write("sys/fs/cgroup/memory.current", std::to_string(112 * kMiB) + "\n");
    EXPECT_EQ(probe_host_memory(root_).free_bytes, 400 * kMiB);
}

TEST_F(HostMemoryTest, NonsenseSaysNothing) {
    write("proc/self/cgroup", "x\n1:memory\n0::/../../..\n:::\n");
    write("sys/fs/cgroup/memory.max", "12x\n");
    write("sys/fs/cgroup/cpu.max", "-5 0\n");
    EXPECT_EQ(probe_host_memory(root_).total_bytes, 8192 * kMiB);
    EXPECT_FALSE(probe_cpu_quota(root_));
    fs::remove(root_ / "proc/meminfo");
    EXPECT_EQ(probe_host_memory(root_).total_bytes, 0u);
}

}  // namespace
}  // namespace tessera
