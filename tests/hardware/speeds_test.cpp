// What devices do a second where nobody measured it, and what was measured here.
#include "core/hardware/speeds.hpp"

#include "core/hardware/speed_file.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

namespace tessera {
namespace {

DeviceDescription gpu(const char* name, uint32_t capability) {
    DeviceDescription d;
    d.kind = "cuda";
    d.id = "CUDA0";
    d.name = name;
    d.compute_capability = capability;
    return d;
}

DeviceDescription cpu(const char* name, uint32_t threads, uint32_t nodes = 1) {
    DeviceDescription d;
    d.kind = "cpu";
    d.id = "CPU";
    d.name = name;
    d.threads = threads;
    d.numa_nodes = nodes;
    return d;
}

TEST(Links, HaveABandwidth) {
    const double x16 = link_bandwidth("pcie4x16").value();
    EXPECT_NEAR(x16, 26.8e9, 1e9);
    EXPECT_DOUBLE_EQ(link_bandwidth("pcie4x8").value(), x16 / 2);
    EXPECT_NEAR(link_bandwidth("pcie5x16").value(), 2 * x16, 1e6);
    for (const char* bad : {"", "pcie", "pcie4", "pcie4x", "pcie4x0", "pcie4x17", "pcie0x16", "pcie7x16", "pcie4x16 ",
                            "PCIe4x16", "pcie44x16", "nvlink", "pciexx16"}) {
        EXPECT_FALSE(link_bandwidth(bad)) << bad;
    }
}

TEST(Speeds, OfCardsAreKnownByName) {
    struct Card {
        const char* name;
        double gigabytes;
    };
    // A longer name that is part of the device's own wins.
    for (const Card& card :
         {Card{"NVIDIA GeForce RTX 3090", 936}, Card{"NVIDIA GeForce RTX 3090 Ti", 1008},
          Card{"NVIDIA GeForce RTX 3080 Ti", 912}, Card{"NVIDIA RTX A6000", 768}, Card{"NVIDIA Tesla P40", 346},
          Card{"NVIDIA A100-SXM4-40GB", 1555}, Card{"NVIDIA GeForce RTX 5090", 1792}, Card{"NVIDIA A10", 600}}) {
        DeviceDescription d = gpu(card.name, 860);
        EXPECT_EQ(fill_speeds(d), "") << card.name;
        EXPECT_DOUBLE_EQ(d.memory_bandwidth, card.gigabytes * 1e9) << card.name;
        EXPECT_GT(d.processors, 0u);
        EXPECT_GT(d.clock_hz, 1e9);
        EXPECT_GT(d.link_bandwidth, 0);
    }
    DeviceDescription unknown = gpu("Some Card 9", 890);
    EXPECT_NE(fill_speeds(unknown).find("no figures for this card"), std::string::npos);
    EXPECT_GT(unknown.memory_bandwidth, 0);
}

TEST(Speeds, WhatTheDescriptionSaysStays) {
    DeviceDescription d = gpu("NVIDIA GeForce RTX 3090", 860);
    d.memory_bandwidth = 1e9;
    d.processors = 3;
    fill_speeds(d);
    EXPECT_DOUBLE_EQ(d.memory_bandwidth, 1e9);
    EXPECT_EQ(d.processors, 3u);
}

TEST(Speeds, OfProcessorsCountSocketsAndCores) {
    DeviceDescription one = cpu("Xeon 6980P, 128 cores", 128), two = cpu("2 x Xeon 6980P, 128 cores each", 256, 6);
    EXPECT_EQ(fill_speeds(one), "");
    EXPECT_EQ(fill_speeds(two), "");
    EXPECT_EQ(one.sockets, 1u);
    EXPECT_EQ(two.sockets, 2u);
    EXPECT_EQ(two.processors, 256u);
    EXPECT_DOUBLE_EQ(two.memory_bandwidth, 2 * one.memory_bandwidth);
    // Reads that cross sockets cost more than the second socket brings in proportion.
    EXPECT_GT(team_bandwidth(two, 256), team_bandwidth(one, 128));
    EXPECT_LT(team_bandwidth(two, 256), 1.5 * team_bandwidth(one, 128));
    // Hardware threads are no cores.
    DeviceDescription old = cpu("2 x Xeon E5-2690 v3, 12 cores each", 48, 2);
    fill_speeds(old);
    EXPECT_EQ(old.processors, 24u);
    EXPECT_NEAR(old.memory_bandwidth, 2 * 68e9 * 0.8, 1e9);
}

TEST(Speeds, FewThreadsReadLess) {
    DeviceDescription d = cpu("EPYC 7402, 24 cores", 24);
    fill_speeds(d);
    double last = 0;
    for (const uint32_t threads : {1u, 2u, 4u, 8u}) {
        EXPECT_GT(team_bandwidth(d, threads), last);
        last = team_bandwidth(d, threads);
    }
    EXPECT_DOUBLE_EQ(team_bandwidth(d, 24), team_bandwidth(d, 48));
}

TEST(Hardware, OneNodeHasItsShare) {
    Hardware hardware({cpu("2 x Xeon E5-2690 v3, 12 cores each", 24, 2)});
    const double all = hardware.cpu().memory_bandwidth;
    hardware.isolate_node();
    EXPECT_EQ(hardware.cpu().numa_nodes, 1u);
    EXPECT_EQ(hardware.cpu().threads, 12u);
    EXPECT_EQ(hardware.cpu().processors, 12u);
    EXPECT_LT(hardware.cpu().memory_bandwidth, all);
    EXPECT_GT(hardware.cpu().memory_bandwidth, all / 2) << "nothing crosses sockets";
    Hardware small({cpu("EPYC 7402, 24 cores", 24)});
    const double before = small.cpu().memory_bandwidth;
    small.isolate_node();
    EXPECT_DOUBLE_EQ(small.cpu().memory_bandwidth, before);
}

TEST(Measured, IsPlausibleAndKept) {
    const test::TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "new" / "speed.toml";
    Hardware hardware = Hardware::detect();
    hardware.set_threads(2);
    apply_speed(hardware, file);
    EXPECT_GT(hardware.cpu().clock_hz, 2e8);
    EXPECT_LT(hardware.cpu().clock_hz, 8e9) << "no processor is that fast";
    EXPECT_GT(hardware.cpu().memory_bandwidth, 1e8);
    ASSERT_TRUE(std::filesystem::exists(file));
    const auto kept = read_speed(file, hardware.cpu_description());
    ASSERT_TRUE(kept);
    EXPECT_NEAR(kept->speed.clock_hz, hardware.cpu().clock_hz, 2e6);

    Hardware other = Hardware::detect();
    other.set_threads(2);
    apply_speed(other, file);
    EXPECT_NEAR(other.cpu().clock_hz, kept->speed.clock_hz, 2e6) << "read, not measured";
    other.set_threads(3);
    EXPECT_FALSE(read_speed(file, other.cpu_description())) << "of another number of threads";
    std::ofstream(file) << "processor = 1\n";
    EXPECT_FALSE(read_speed(file, hardware.cpu_description())) << "damaged";
    // A folder that cannot be made is no error.
    write_speed("/proc/none/speed.toml", hardware.cpu_description(), {{1e9, 1e9, 1e9}, {}});
}

// Speeds that are measured one after another, at times of a clock that the test sets.
class Kept : public testing::Test {
  protected:
    // Starts a program: what it reads from memory, in GB/s, by the file or by measuring.
    double start(double measured_gb) {
        Hardware hardware = Hardware::detect();
        hardware.set_threads(1);
        SpeedSource source;
        source.measure = [&](const DeviceDescription&) {
            ++measurements_;
            return MachineSpeed{3e9, measured_gb * 1e9, measured_gb * 1e9, disturbed_};
        };
        source.now = [&] { return now_; };
        apply_speed(hardware, file_, source);
        return hardware.cpu().memory_bandwidth / 1e9;
    }
    void run_reaches(double ratio) {
        Hardware hardware = Hardware::detect();
        hardware.set_threads(1);
        note_run_speed(file_, hardware.cpu_description(), ratio);
    }

    const test::TemporaryFolder folder_;
    const std::filesystem::path file_ = folder_.path() / "speed.toml";
    std::chrono::system_clock::time_point now_{std::chrono::hours(24 * 365 * 50)};
    int measurements_ = 0;
    bool disturbed_ = false;
};

TEST_F(Kept, AFasterRunHasTheSpeedMeasuredAgain) {
    EXPECT_EQ(start(3), 3);
    run_reaches(1.1);
    EXPECT_EQ(start(11), 3) << "predictions are that good";
    run_reaches(3.9);
    EXPECT_EQ(start(11), 11);
    EXPECT_EQ(start(2), 11);
    EXPECT_EQ(measurements_, 2);
}

TEST_F(Kept, ASpeedThatIsConfirmedIsNotMeasuredAtEachStart) {
    start(11);
    run_reaches(4);  // a model that lies in the cache
    EXPECT_EQ(start(10), 11) << "the faster figure counts";
    run_reaches(4);
    start(10);
    EXPECT_EQ(measurements_, 2);
    now_ += std::chrono::hours(25);
    start(11);
    EXPECT_EQ(measurements_, 3);
    run_reaches(4);
    start(11);
    EXPECT_EQ(measurements_, 4) << "a new day, a new chance";
}

TEST_F(Kept, AMeasurementOlderThanADayIsMadeAgain) {
    start(3);
    now_ += std::chrono::hours(23);
    EXPECT_EQ(start(11), 3);
    now_ += std::chrono::hours(2);
    EXPECT_EQ(start(11), 11);
    now_ += std::chrono::hours(25);
    EXPECT_NEAR(start(4), 9.9, 0.01) << "a machine that became slower is followed by a tenth a day";
    EXPECT_NEAR(start(4), 9.9, 0.01);
    EXPECT_EQ(measurements_, 3);
    now_ -= std::chrono::hours(1000);  // the clock was wrong
    start(4);
    EXPECT_EQ(measurements_, 4);
}

TEST_F(Kept, ADisturbedMeasurementIsMadeAgainAfterTenMinutes) {
    disturbed_ = true;
    start(3);
    start(5);
    EXPECT_EQ(measurements_, 1);
    now_ += std::chrono::minutes(11);
    disturbed_ = false;
    EXPECT_EQ(start(5), 5);
    now_ += std::chrono::minutes(11);
    EXPECT_EQ(start(9), 5);
}

TEST_F(Kept, FilesOfOlderVersionsAreMeasuredAgain) {
    start(3);
    std::ifstream in(file_);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const size_t at = text.find("measured_at");
    ASSERT_NE(at, std::string::npos);
    std::ofstream(file_) << text.substr(0, at);
    EXPECT_EQ(start(11), 11);
}

}  // namespace
}  // namespace tessera
