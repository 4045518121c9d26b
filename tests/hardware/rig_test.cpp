#include "core/base/error.hpp"
#include "core/base/toml.hpp"
#include "core/hardware/cpu_flags.hpp"
#include "core/hardware/hardware.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

namespace tessera {
namespace {

using testing::HasSubstr;

const std::string kCpu =
    "[cpu]\nname = 'Two Xeons'\nflags = ['avx2', 'fma', 'avx512vnni']\nthreads = 48\nmemory = '384GiB'\n"
    "numa_nodes = 2\n";
const std::string kGpus =
    "[[gpu]]\nname = 'RTX 3090'\ncount = 2\ncompute_capability = '8.6'\nmemory = '24GiB'\nlink = 'pcie4x16'\n"
    "[[gpu]]\nname = 'P40'\ncompute_capability = '6.1'\nmemory = 24576\n[measured]\nanything = 1\n";

Hardware read(const std::string& text) {
    const test::TemporaryFolder folder;
    return Hardware::from_rig(folder.write("tessera-rig.toml", text));
}

TEST(Rig, DescribesAMachine) {
    const Hardware rig = read(kCpu + kGpus);
    EXPECT_TRUE(rig.is_rig());
    const tsr_device_info& cpu = rig.cpu();
    EXPECT_STREQ(cpu.name, "Two Xeons");
    EXPECT_EQ(cpu.threads, 48u);
    EXPECT_EQ(cpu.numa_nodes, 2u);
    EXPECT_EQ(cpu.memory_bytes, uint64_t{384} << 30);
    EXPECT_LT(cpu.free_memory_bytes, cpu.memory_bytes);
    EXPECT_GT(cpu.free_memory_bytes, uint64_t{380} << 30);
    for (const char* flag : {"avx2", "fma", "avx512_vnni", "avx", "sse2", "bmi2"})
        EXPECT_TRUE(has_cpu_flag(cpu, flag)) << flag;
    EXPECT_FALSE(has_cpu_flag(cpu, "f16c"));
    ASSERT_EQ(rig.devices().size(), 4u);
    const tsr_device_info& last = *rig.find("CUDA2");
    EXPECT_STREQ(last.kind, "cuda");
    EXPECT_STREQ(last.name, "P40");
    EXPECT_EQ(last.index, 2u);
    EXPECT_EQ(last.compute_capability, 610u);
    EXPECT_EQ(last.memory_bytes, uint64_t{24} << 30);
    EXPECT_STREQ(last.link, "");
    EXPECT_STREQ(rig.find("CUDA1")->link, "pcie4x16");
    EXPECT_STREQ(rig.find("CUDA1")->name, "RTX 3090");
}

// Flags that every processor with another one has need not be listed.
TEST(Rig, CompletesFlags) {
    const Hardware rig =
        read("[cpu]\nflags = ['avx2', 'avx512f', 'avx512bw', 'avx512vl']\nthreads = 2\nmemory = '4GiB'\n");
    for (const char* flag : {"avx512dq", "avx512cd", "bmi1"}) EXPECT_TRUE(has_cpu_flag(rig.cpu(), flag)) << flag;
    const Hardware knights = read("[cpu]\nflags = ['avx2', 'avx512f']\nthreads = 2\nmemory = '4GiB'\n");
    EXPECT_FALSE(has_cpu_flag(knights.cpu(), "avx512dq"));
}

TEST(Rig, SaysSpeedsOfItsOwn) {
    const Hardware rig = read(kCpu + "cores = 24\nsockets = 2\nbandwidth_gb_s = 100\nclock_mhz = 2500\n" + kGpus +
                              "[[gpu]]\nname = 'X'\ncompute_capability = '8.9'\nmemory = '8GiB'\nprocessors = 10\n"
                              "bandwidth_gb_s = 123\nclock_mhz = 1000\n");
    EXPECT_EQ(rig.cpu().processors, 24u);
    EXPECT_DOUBLE_EQ(rig.cpu().clock_hz, 2.5e9);
    EXPECT_LT(rig.cpu().memory_bandwidth, 100e9) << "reads cross sockets";
    EXPECT_DOUBLE_EQ(rig.find("CUDA3")->memory_bandwidth, 123e9);
    EXPECT_EQ(rig.find("CUDA3")->processors, 10u);
    EXPECT_DOUBLE_EQ(rig.find("CUDA0")->memory_bandwidth, 936e9) << "by its name";
}

struct BadRig {
    std::string text;
    const char* message;
};
class BadRigs : public testing::TestWithParam<BadRig> {};

TEST_P(BadRigs, NamesLineAndKey) {
    try {
        read(GetParam().text);
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_CORRUPT_DATA);
        EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRigs,
    testing::Values(
        BadRig{"", "key 'cpu': is missing"}, BadRig{kGpus, "key 'cpu': is missing"},
        BadRig{"[cpu]\nthreads = 1\nmemory = 1", "key 'cpu.flags': is missing"},
        BadRig{"[cpu]\nflags = []\nthreads = 0\nmemory = 1", ":3: key 'cpu.threads': expected 1 to 65536, found 0"},
        BadRig{"[cpu]\nflags = []\nthreads = 1\nmemory = -5", ":4: key 'cpu.memory': expected a size"},
        BadRig{"[cpu]\nflags = []\nthreads = 1\nmemory = '1e30GiB'", "expected a size"},
        BadRig{"[cpu]\nflags = []\nthreads = 1\nmemory = 9223372036854775807", "expected a size"},
        BadRig{"[cpu]\nflags = []\nthreads = 1\nmemory = 'lots'", "expected a size"},
        BadRig{kCpu + "shoes = 2\n", ":7: unknown key 'cpu.shoes'"},
        BadRig{"[cpu]\nflags = ['avx2', 'avx3']\nthreads = 1\nmemory = 1", ":2: key 'cpu.flags': 'avx3' is no flag"},
        BadRig{kCpu + "[[gpu]]\ncompute_capability = '8.6'\nmemory = 1\nlink = 'pcie9x16'\n",
               "key 'gpu[0].link': expected \"pcie1x1\" to \"pcie6x16\""},
        BadRig{kCpu + "clock_mhz = 3\n", "key 'cpu.clock_mhz': expected 100 to 10000, found 3"},
        BadRig{kCpu + "[gpu]\n", "expected an array of tables (written [[gpu]]), found a table"},
        BadRig{kCpu + "[[gpu]]\nmemory = 1\n", "key 'gpu[0].compute_capability': is missing"},
        BadRig{kCpu + "[[gpu]]\ncompute_capability = '8.6'\n", "key 'gpu[0].memory': is missing"},
        BadRig{kCpu + "[[gpu]]\ncompute_capability = 8.6\nmemory = 1\n",
               "expected a string, found a number with a fraction"},
        BadRig{kCpu + "[[gpu]]\ncompute_capability = '8.60'\nmemory = 1\n", "expected \"MAJOR.MINOR\""},
        BadRig{kCpu + "[[gpu]]\nkind = 'rocm'\ncompute_capability = '8.6'\nmemory = 1\n", "unknown key 'gpu[0].kind'"},
        BadRig{kCpu + "[[gpu]]\ncompute_capability = '0.1'\nmemory = 1\n", "expected \"MAJOR.MINOR\""},
        BadRig{kCpu + "[[gpu]]\ncompute_capability = '8.6'\nmemory = 1\ncount = 1000000000\n", "expected 1 to 256"},
        BadRig{kCpu +
                   "[[gpu]]\ncompute_capability = '8.6'\nmemory = 1\ncount = 200\n[[gpu]]\ncompute_capability = '8.6'\n"
                   "memory = 1\ncount = 200\n",
               "expected at most 256 GPUs"},
        BadRig{kCpu + "[[gpu]]\nname = \"a\\u001b[31m\"\ncompute_capability = '8.6'\nmemory = 1\n",
               "holds a control character"},
        BadRig{"cpu = 1", "expected a table, found an integer"}, BadRig{"\xff\xfe", "not valid TOML"},
        BadRig{std::string(2 << 20, ' '), "expected at most 1048576 bytes"}));

TEST(Rig, SurvivesDamage) {
    const std::string whole = kCpu + kGpus;
    std::mt19937 random(11);
    for (int i = 0; i < 2000; ++i) {
        std::string text = whole;
        for (int k = 0; k < 3; ++k) text[random() % text.size()] = static_cast<char>(random());
        try {
            read(text);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_CORRUPT_DATA) << error.what();
        }
    }
}

TEST(Rig, MissingFileSaysSo) {
    try {
        Hardware::from_rig("/proc/nonexistent/rig.toml");
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_NOT_FOUND);
        EXPECT_THAT(error.what(), HasSubstr("/proc/nonexistent/rig.toml"));
    }
}

TEST(Size, IsParsed) {
    EXPECT_EQ(parse_size("24GiB"), uint64_t{24} << 30);
    EXPECT_EQ(parse_size("1.5 GiB"), uint64_t{3} << 29);
    EXPECT_EQ(parse_size("512"), uint64_t{512} << 20);
    EXPECT_EQ(parse_size("4KiB"), 4096u);
    EXPECT_EQ(parse_size("1TiB"), uint64_t{1} << 40);
    for (const char* bad :
         {"", "GiB", "0", "-1", "1GB", "1 gib", "1GiBx", "nan", "inf", "1e3", "0x10", "1025TiB", " 1", "+1"}) {
        EXPECT_FALSE(parse_size(bad)) << bad;
    }
}

}  // namespace
}  // namespace tessera
