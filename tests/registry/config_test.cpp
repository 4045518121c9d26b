#include "core/registry/config.hpp"

#include "core/base/error.hpp"
#include "tests/registry/plugin_folder.hpp"

#include <gmock/gmock.h>

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Config, ReadsEverything) {
    const Config config = parse_config(R"(
        threads = 6
        keep_speeds = false
        [plugins]
        default_folder = false
        folders = ["/opt/plugins", "beside", "../up"]
        prefer = ["cpu_avx2"]
        off = ["mla"]
        allowed_sha256 = ["00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff"]
        [devices.CUDA0]
        plugin = "cuda_legacy"
        memory = "20GiB"
        [[devices.CUDA1.logical]]
        plugin = "cuda_ampere"
        memory = "16GiB"
        [[devices.CUDA1.logical]]
        [devices.CPU]
        memory = 4096
        [[placement]]
        tensors = "blk\\.[0-9]+\\.ffn_.*_exps"
        device = "CPU"
        [[placement]]
        tensors = ".*"
        device = "CUDA0"
    )",
                                       "/etc/tessera/config.toml");
    EXPECT_EQ(config.threads, 6u);
    EXPECT_FALSE(config.keep_speeds);
    EXPECT_FALSE(config.default_plugin_folder);
    EXPECT_THAT(config.plugin_folders, ElementsAre("/opt/plugins", "/etc/tessera/beside", "/etc/up"));
    EXPECT_THAT(config.prefer, ElementsAre("cpu_avx2"));
    EXPECT_THAT(config.off, ElementsAre("mla"));
    EXPECT_THAT(*config.allowed_sha256,
                ElementsAre("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"));
    EXPECT_EQ(config.devices.at("CUDA0").plugin, "cuda_legacy");
    EXPECT_EQ(config.devices.at("CUDA0").memory_bytes, uint64_t{20} << 30);
    EXPECT_EQ(config.devices.at("CPU").memory_bytes, uint64_t{4} << 30);
    ASSERT_EQ(config.devices.at("CUDA1").logical.size(), 2u);
    EXPECT_EQ(config.devices.at("CUDA1").logical[0].plugin, "cuda_ampere");
    EXPECT_EQ(config.devices.at("CUDA1").logical[0].memory_bytes, uint64_t{16} << 30);
    EXPECT_FALSE(config.devices.at("CUDA1").logical[1].memory_bytes.has_value());
    ASSERT_EQ(config.placement.size(), 2u);
    EXPECT_EQ(config.placement[0].pattern, R"(blk\.[0-9]+\.ffn_.*_exps)");
    EXPECT_EQ(config.placement[1].device, "CUDA0");
}

TEST(Config, EmptyIsTheDefault) {
    const Config config = parse_config("", "/config.toml");
    EXPECT_TRUE(config.default_plugin_folder);
    EXPECT_FALSE(config.allowed_sha256.has_value());
    EXPECT_EQ(config.threads, 0u);
    EXPECT_TRUE(config.keep_speeds);
}

struct BadConfig {
    const char* text;
    const char* message;
};
class BadConfigs : public testing::TestWithParam<BadConfig> {};

TEST_P(BadConfigs, NamesLineAndKey) {
    try {
        parse_config(GetParam().text, "/c.toml");
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_CORRUPT_DATA);
        EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadConfigs,
    testing::Values(
        BadConfig{"\n\nthread = 3", "/c.toml:3: unknown key 'thread' (did you mean 'threads'?)"},
        BadConfig{"[plugins]\nprefers = []", "/c.toml:2: unknown key 'plugins.prefers' (did you mean 'prefer'?)"},
        BadConfig{"[devices.CUDA1]\nmem = 1", "/c.toml:2: unknown key 'devices.CUDA1.mem'"},
        BadConfig{"[[simulated]]\nspeed = 1", "/c.toml:1: unknown key 'simulated'"},
        BadConfig{"[[placement]]\ntensors = 'x'", "key 'placement[0].device': is missing"},
        BadConfig{"threads = -1", "/c.toml:1: key 'threads': expected 0 to 4096, found -1"},
        BadConfig{"threads = 99999999999999", "expected 0 to 4096"},
        BadConfig{"threads = 'all'", "expected an integer, found a string"},
        BadConfig{"threads = 1.5", "expected an integer, found a number with a fraction"},
        BadConfig{"threads = 9223372036854775808", "not valid TOML"},
        BadConfig{"plugins = 4", "key 'plugins': expected a table, found an integer"},
        BadConfig{"devices = [1]", "key 'devices': expected a table, found an array"},
        BadConfig{"[devices]\nCPU = 'x'", "key 'devices.CPU': expected a table, found a string"},
        BadConfig{"[devices.CPU]\nplugin = 'x'", "the CPU takes kernels from every plugin"},
        BadConfig{"[[devices.CPU.logical]]", "only a GPU can be offered as several devices"},
        BadConfig{"[devices.CUDA0]\nplugin = 'x'\n[[devices.CUDA0.logical]]", "name a plugin for each of them"},
        BadConfig{"[[devices.CUDA0.logical]]\nmem = 1", "unknown key 'devices.CUDA0.logical[0].mem'"},
        BadConfig{"[devices.CUDA0]\nmemory = '20GB'", "key 'devices.CUDA0.memory': expected a size"},
        BadConfig{"[devices.CUDA0]\nmemory = 0", "expected a size"},
        BadConfig{"[devices.CUDA0]\nmemory = '99999TiB'", "expected a size"},
        BadConfig{"[devices.CUDA0]\nmemory = 'nanGiB'", "expected a size"},
        BadConfig{"[devices.CUDA0]\nmemory = true", "expected a size (\"24GiB\", or a number of MiB), found a boolean"},
        BadConfig{"placement = {}", "expected an array of tables (written [[placement]]), found a table"},
        BadConfig{"placement = [3]", "found an integer in it"},
        BadConfig{"[plugins]\nprefer = ['a', 3]", "expected an array of strings, found an integer in it"},
        BadConfig{"[plugins]\nprefer = ['a']\noff = ['a']", "it cannot be both"},
        BadConfig{"[plugins]\nprefer = ['a', 'a']", "'a' occurs twice"},
        BadConfig{"[plugins]\nfolders = ['']", "holds an empty name"},
        BadConfig{"[plugins]\nfolders = [\"a\\u0000b\"]", "holds a control character"},
        BadConfig{"[plugins]\nallowed_sha256 = ['12']", "expected 64 hexadecimal digits, found '12'"},
        BadConfig{"[[placement]]\ntensors = '('\ndevice = 'CPU'",
                  "/c.toml:2: key 'placement[0].tensors': '(' is not a"},
        BadConfig{"[devices.CUDA0]\nplugin = ''", "/c.toml:2: key 'devices.CUDA0.plugin': expected the name"},
        BadConfig{"[devices.CPU]\n[devices.cpu]", "the device has a table already, as 'CPU'"},
        BadConfig{"threads = 1\nthreads = 2", "/c.toml:2: not valid TOML"},
        BadConfig{"[plugins]\n[plugins]", "not valid TOML"}, BadConfig{"x = [[[[", "not valid TOML"}));

TEST(Config, ChangesTheHardware) {
    Hardware hardware = small_machine({800, 610});
    const Config config = parse_config("threads = 1\n[devices.SIM1]\nmemory = '1GiB'\n", "/c.toml");
    apply(config, hardware);
    EXPECT_EQ(hardware.cpu().threads, 1u);
    ASSERT_NE(hardware.find("sim1"), nullptr);
    EXPECT_EQ(hardware.find("SIM1")->index, 1u);
    EXPECT_EQ(hardware.find("SIM1")->memory_bytes, uint64_t{1} << 30);
    EXPECT_EQ(hardware.find("SIM1")->free_memory_bytes, uint64_t{1} << 30);

    const Config wrong = parse_config("[devices.CUDA7]\nmemory = 1", "/c.toml");
    try {
        apply(wrong, hardware);
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "/c.toml: [devices.CUDA7] names a device that is not here; there are: CPU, SIM0, SIM1");
    }
}

TEST(Config, PlacementNamesDevicesThatAreHere) {
    Hardware hardware = small_machine({});
    apply(parse_config("[[placement]]\ntensors = 'x'\ndevice = 'cpu'", "/c.toml"), hardware);
    try {
        apply(parse_config("[[placement]]\ntensors = 'x'\ndevice = 'CUDA7'", "/c.toml"), hardware);
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "/c.toml: [[placement]] device = 'CUDA7' names a device that is not here; there are: CPU");
    }
}

TEST(Config, SplitsACard) {
    Hardware hardware = small_machine({800, 610});
    apply(parse_config("[[devices.SIM0.logical]]\nmemory = '3GiB'\n[[devices.SIM0.logical]]\n", "/c.toml"), hardware);
    std::vector<std::string> ids;
    for (const tsr_device_info* info : hardware.devices()) ids.emplace_back(info->id);
    EXPECT_THAT(ids, ElementsAre("CPU", "SIM0.0", "SIM0.1", "SIM1"));
    EXPECT_EQ(hardware.find("SIM0.1")->memory_bytes, uint64_t{1} << 30);
    try {
        apply(parse_config("[[devices.SIM1.logical]]\nmemory = '5GiB'\n", "/c.toml"), hardware);
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        EXPECT_STREQ(error.what(),
                     "/c.toml: [[devices.SIM1.logical]]: SIM1 has 4294967296 bytes of memory; its parts ask for more");
    }
}

TEST(Config, IsFoundWhereUsersKeepIt) {
    PluginFolder folder;
    fs::create_directories(folder.path() / ".config/tessera");
    fs::create_directories(folder.path() / "xdg/tessera");
    std::ofstream(folder.path() / ".config/tessera/config.toml") << "threads = 3\n";
    std::ofstream(folder.path() / "xdg/tessera/config.toml") << "threads = 4\n";
    setenv("HOME", folder.path().c_str(), 1);
    setenv("XDG_CONFIG_HOME", "relative", 1);
    EXPECT_EQ(read_config(*default_config_file()).threads, 3u);
    setenv("XDG_CONFIG_HOME", (folder.path() / "xdg").c_str(), 1);
    EXPECT_EQ(read_config(*default_config_file()).threads, 4u);
    try {
        read_config(folder.path() / "none.toml");
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_NOT_FOUND);
    }
}

}  // namespace
}  // namespace tessera::test
