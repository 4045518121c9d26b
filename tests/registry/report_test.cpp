#include "core/registry/report.hpp"

#include "tests/registry/plugin_folder.hpp"

#include <gmock/gmock.h>

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Report, TellsDevicesAndTheirOwners) {
    PluginFolder folder;
    folder.add("good");
    folder.add("owner60");
    const Hardware hardware = small_machine({860, 520});
    const std::string text = devices_report(hardware, Registry::load(folder.config(), hardware));
    EXPECT_THAT(text, HasSubstr("CPU: Test processor\n  2 threads, 1 NUMA node, 8.0 GiB memory (8.0 GiB free)\n"));
    EXPECT_THAT(text, HasSubstr("  kernels of: good (2), owner60 (2)\n"));
    EXPECT_THAT(text, HasSubstr("SIM0: Test GPU, compute capability 8.6, 4.0 GiB memory (4.0 GiB free)\n"
                                "  owned by: owner60\n"));
    EXPECT_THAT(text, HasSubstr("SIM1: Test GPU, compute capability 5.2, 4.0 GiB memory (4.0 GiB free)\n"
                                "  cannot be used:\n    owner60: needs compute capability 600, found 520\n"));
}

TEST(Report, TellsPluginsAndWhy) {
    PluginFolder folder;
    folder.add("good");
    folder.add("other", {{"cpu_flags", "['no_such_flag']"}, {"summary", "'Another one'"}});
    folder.add("better");
    folder.write("broken.toml", "name = ");
    Config config = folder.config();
    config.off = {"better"};
    const Registry registry = Registry::load(config, small_machine());

    const std::string brief = plugins_report(registry, false);
    EXPECT_THAT(brief, HasSubstr("good 1.2.0: chosen, provides 2 kernels for cpu, 1 layout, operator fixture_op\n"));
    EXPECT_THAT(brief, HasSubstr("other 1.2.0: not used (the processor (Test processor) lacks no_such_flag"));
    EXPECT_THAT(brief, HasSubstr("better 1.2.0: off\n"));
    EXPECT_THAT(brief, HasSubstr("broken.toml: not used ("));
    EXPECT_THAT(brief, Not(HasSubstr("needs: ")));

    const std::string why = plugins_report(registry, true);
    EXPECT_THAT(why, HasSubstr("  Another one\n  needs: CPU flags no_such_flag\n  why not: the processor (Test "
                               "processor) lacks no_such_flag"));
    EXPECT_THAT(why, HasSubstr("why not: disabled in the configuration"));
    EXPECT_THAT(why, HasSubstr("broken.toml:1: not valid TOML"));
    EXPECT_THAT(why, HasSubstr("looked in: " + folder.path().string()));
}

TEST(Report, TellsThatThereIsNothing) {
    PluginFolder folder;
    const Registry registry = Registry::load(folder.config(), small_machine());
    EXPECT_THAT(plugins_report(registry, true), HasSubstr("No plugins found.\nlooked in: "));
    EXPECT_THAT(devices_report(small_machine(), registry), HasSubstr("kernels of: no plugin"));
}

}  // namespace
}  // namespace tessera::test
