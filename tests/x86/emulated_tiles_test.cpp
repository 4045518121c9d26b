// The emulation of tile registers: that it multiplies as a processor does, and faults where one would.
#include <tessera/cpu/isa/amx_instructions.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace tessera::tests::emulated {
namespace {

namespace amx = cpu::isa::amx;

struct Configuration {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 32, 64};
    uint8_t rows[16] = {16, 16, 8};
};

class EmulatedTiles : public testing::Test {
  protected:
    EmulatedTiles() { EXPECT_TRUE(amx::request_permission()); }
    ~EmulatedTiles() override { amx::release(); }
    static void configure(const Configuration& configuration) { amx::load_configuration(&configuration); }
};

TEST_F(EmulatedTiles, MultipliesSignedBytes) {
    configure({});
    std::mt19937 random(3);
    int8_t rows[16][40], lanes[8][64];
    int32_t sums[16][20];
    for (auto& row : rows) {
        for (auto& v : row) v = static_cast<int8_t>(random());
    }
    for (auto& step : lanes) {
        for (auto& v : step) v = static_cast<int8_t>(random());
    }
    for (auto& row : sums) {
        for (auto& v : row) v = static_cast<int32_t>(random());
    }
    const std::vector<int32_t> before(&sums[0][0], &sums[0][0] + 320);
    amx::load<0>(sums, sizeof sums[0]);
    amx::load<1>(rows, sizeof rows[0]);
    amx::load<2>(lanes, sizeof lanes[0]);
    amx::add_byte_products<0, 1, 2>();
    amx::store<0>(sums, sizeof sums[0]);
    for (int m = 0; m < 16; ++m) {
        for (int n = 0; n < 20; ++n) {
            int64_t wanted = before[m * 20 + n];
            for (int k = 0; n < 16 && k < 32; ++k) wanted += rows[m][k] * lanes[k / 4][4 * n + k % 4];
            EXPECT_EQ(sums[m][n], static_cast<int32_t>(static_cast<uint32_t>(wanted))) << m << ", " << n;
        }
    }
    amx::zero<0>();
    amx::store<0>(sums, sizeof sums[0]);
    EXPECT_EQ(sums[15][15], 0);
    EXPECT_EQ(sums[15][16], before[15 * 20 + 16]);
}

TEST_F(EmulatedTiles, FaultsOnBadConfigurations) {
    const std::vector<std::function<void(Configuration&)>> faults = {
        [](Configuration& c) { c.palette = 2; },       [](Configuration& c) { c.start_row = 1; },
        [](Configuration& c) { c.reserved[13] = 1; },  [](Configuration& c) { c.rows[0] = 17; },
        [](Configuration& c) { c.row_bytes[0] = 65; }, [](Configuration& c) { c.rows[0] = 0; },
        [](Configuration& c) { c.row_bytes[7] = 64; }, [](Configuration& c) { c.rows[8] = c.row_bytes[8] = 4; },
    };
    for (const auto& fault : faults) {
        Configuration configuration;
        fault(configuration);
        EXPECT_THROW(configure(configuration), TileFault);
    }
}

TEST_F(EmulatedTiles, FaultsWithoutAConfiguration) {
    alignas(64) char memory[1024] = {};
    const auto all_fault = [&] {
        EXPECT_THROW(amx::load<0>(memory, 64), TileFault);
        EXPECT_THROW(amx::store<0>(memory, 64), TileFault);
        EXPECT_THROW(amx::zero<0>(), TileFault);
        EXPECT_THROW((amx::add_byte_products<0, 1, 2>()), TileFault);
    };
    all_fault();
    configure({});
    amx::zero<0>();
    EXPECT_THROW(amx::zero<3>(), TileFault);
    // Each thread has its own.
    std::thread(all_fault).join();
    Configuration now;
    amx::store_configuration(&now);
    EXPECT_EQ(now.rows[2], 8);
    amx::release();
    amx::store_configuration(&now);
    EXPECT_EQ(now.palette, 0);
    all_fault();
}

TEST_F(EmulatedTiles, FaultsOnSizesThatDoNotMatch) {
    const std::vector<std::function<void(Configuration&)>> faults = {
        [](Configuration& c) { c.rows[0] = 15; },  // sums of fewer rows
        [](Configuration& c) { c.row_bytes[0] = 60; },  // of fewer lanes
        [](Configuration& c) { c.row_bytes[1] = 64; },  // rows of more codes than lanes have
        [](Configuration& c) { c.rows[2] = 16; },      [](Configuration& c) { c.row_bytes[1] = 30; },
    };
    configure({});
    amx::add_byte_products<0, 1, 2>();
    EXPECT_THROW((amx::add_byte_products<0, 0, 2>()), TileFault);
    for (const auto& fault : faults) {
        Configuration configuration;
        fault(configuration);
        configure(configuration);
        EXPECT_THROW((amx::add_byte_products<0, 1, 2>()), TileFault);
    }
}

TEST_F(EmulatedTiles, CountsThreadsThatKeepThem) {
    const int64_t before = tile_system().in_use;
    configure({});
    configure({});
    EXPECT_EQ(tile_system().in_use, before + 1);
    amx::release();
    amx::release();
    EXPECT_EQ(tile_system().in_use, before);
    std::thread([] { configure({}); }).join();
    EXPECT_EQ(tile_system().in_use, before + 1);
    --tile_system().in_use;
}

TEST_F(EmulatedTiles, FaultsWithoutPermission) {
    configure({});
    tile_system().permitted = false;
    EXPECT_THROW(amx::zero<0>(), TileFault);
    tile_system().refuses = true;
    EXPECT_FALSE(amx::request_permission());
    EXPECT_THROW(amx::zero<0>(), TileFault);
    tile_system().refuses = false;
    EXPECT_TRUE(amx::request_permission());
    amx::zero<0>();
}

}  // namespace
}  // namespace tessera::tests::emulated
