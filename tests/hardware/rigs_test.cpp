// The rigs of people that the project plans for.
#include "core/hardware/cpu_flags.hpp"
#include "core/hardware/hardware.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

namespace tessera {
namespace {

TEST(SharedRigs, AllAreRead) {
    const std::map<std::string, size_t> gpus = {
        {"a6000-threadripper", 1}, {"ampere-and-pascal", 4}, {"dual-xeon-6980p", 0}, {"fifteen-3090", 15},
        {"four-gpu-desktop", 4},   {"lite-4080", 1},         {"old-dual-xeon", 0}};
    for (const auto& [name, count] : gpus) {
        const Hardware rig =
            Hardware::from_rig(std::filesystem::path(TSR_SOURCE_DIR) / "testing/rigs" / (name + ".toml"));
        EXPECT_EQ(rig.devices().size(), count + 1) << name;
        EXPECT_TRUE(has_cpu_flag(rig.cpu(), "avx2")) << name;
    }
    const Hardware big =
        Hardware::from_rig(std::filesystem::path(TSR_SOURCE_DIR) / "testing/rigs/dual-xeon-6980p.toml");
    EXPECT_TRUE(has_cpu_flag(big.cpu(), "amx_int8"));
    EXPECT_TRUE(has_cpu_flag(big.cpu(), "avx512_vnni"));
}

}  // namespace
}  // namespace tessera
