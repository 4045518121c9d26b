// What is chosen, in which order, and what the config has to say.
#include "core/base/error.hpp"
#include "core/hardware/cpu_flags.hpp"
#include "core/hardware/speeds.hpp"
#include "core/registry/refused.hpp"
#include "tests/registry/plugin_folder.hpp"

#include <gmock/gmock.h>

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> owners_of(const Registry& registry, std::string_view op) {
    std::vector<std::string> names;
    for (const tsr_kernel* kernel : registry.kernels("cpu", op)) names.push_back(registry.owner(*kernel).manifest.name);
    return names;
}

template <typename Body>
void expect_error(tsr_code code, const std::string& text, Body&& body) {
    try {
        body();
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code);
        EXPECT_THAT(error.what(), HasSubstr(text));
    }
}

TEST(Registry, OrdersKernelsByPreferencePriorityAndName) {
    PluginFolder folder;
    for (const char* name : {"good", "other", "better"}) folder.add(name);
    Config config = folder.config();
    const Registry plain = Registry::load(config, small_machine());
    EXPECT_THAT(owners_of(plain, "add"), ElementsAre("better", "good", "other"));
    EXPECT_THAT(owners_of(plain, "mul"), ElementsAre("better", "good", "other"));

    config.prefer = {"other", "good"};
    const Registry preferring = Registry::load(config, small_machine());
    EXPECT_THAT(owners_of(preferring, "add"), ElementsAre("other", "good", "better"));
    const auto kernels = preferring.kernels("cpu", "add");
    EXPECT_EQ(preferring.preference(*kernels[0]), 0u);
    EXPECT_EQ(preferring.preference(*kernels[1]), 1u);
    EXPECT_EQ(preferring.preference(*kernels[2]), 2u);

    EXPECT_TRUE(plain.kernels("cpu", "softmax").empty());
    EXPECT_TRUE(plain.kernels("cuda", "add").empty());
}

TEST(Registry, ConflictsAreSaidAndTheFirstCounts) {
    PluginFolder folder;
    for (const char* name : {"good", "other", "better"}) folder.add(name);
    const Registry registry = Registry::load(folder.config(), small_machine());
    ASSERT_NE(registry.find_operator("fixture_op"), nullptr);
    ASSERT_NE(registry.find_layout("fixture_rows"), nullptr);
    // "better" comes first by name; "good" means the same bytes by the layout, "other" does not.
    EXPECT_EQ(registry.find_operator("fixture_op"), registry.find_plugin("better")->table->operators[0]);
    EXPECT_EQ(registry.find_layout("fixture_rows")->group_rows, 8u);
    EXPECT_THAT(registry.conflicts(),
                ElementsAre("operator fixture_op: better and good provide it; that of better is used",
                            "layout fixture_rows: better and other mean different bytes by it; that of "
                            "better is used",
                            "operator fixture_op: better and other provide it; that of better is used"));
    EXPECT_EQ(registry.find_operator("fixture"), nullptr);
    EXPECT_EQ(registry.find_layout("zz"), nullptr);
    EXPECT_EQ(registry.operators().size(), 1u);
    EXPECT_EQ(registry.layouts().size(), 1u);
}

TEST(Registry, RefusedPluginsAreThoseThatTheUserCanRepair) {
    PluginFolder folder;
    const auto refused = [&] {
        const Hardware hardware = small_machine();
        return refused_plugins(Registry::load(folder.config(), hardware), folder.config(), hardware);
    };
    folder.add("good");
    folder.add("better", {{"cpu_flags", R"(["no_such_flag"])"}});  // of another machine
    folder.write("stray.so", "a library that a plugin links to");
    EXPECT_EQ(refused(), "");
    const fs::path other = folder.add("other");
    fs::permissions(other.parent_path() / "other.so", fs::perms::others_write, fs::perm_options::add);
    EXPECT_THAT(refused(), testing::StartsWith("other: others may write to "));
    EXPECT_THAT(refused(), testing::EndsWith("chmod go-w"));
    folder.write("broken.toml", "name = 1\n");
    folder.add("owner60", {{"sha256", PluginFolder::quoted(std::string(64, '0'))}});
    folder.add("no_symbol");
    const std::string many = refused();
    EXPECT_THAT(many, testing::HasSubstr("broken.toml: "));
    EXPECT_THAT(many, testing::HasSubstr("the function tessera_plugin_query; "));
    EXPECT_THAT(many, testing::EndsWith("; and 1 more"));
}

TEST(Registry, LoadsTwiceButInitialisesOnce) {
    PluginFolder folder;
    const fs::path good = folder.add("good");
    const Registry first = Registry::load(folder.config(), small_machine());
    Registry second = Registry::load(folder.config(), small_machine({800}));
    ASSERT_EQ(record_of(second, good).state, PluginState::kChosen) << record_of(second, good).reason;
    EXPECT_EQ(record_of(first, good).table, record_of(second, good).table);
    const auto kernels = second.kernels("cpu", "add");
    const Registry moved = std::move(second);
    EXPECT_EQ(moved.kernels("cpu", "add").data(), kernels.data());
    EXPECT_EQ(moved.owner(*kernels[0]).path, good);
}

TEST(Registry, OffIsNotMapped) {
    PluginFolder folder;
    const fs::path good = folder.add("good");
    Config config = folder.config();
    config.off = {"good"};
    const Registry registry = Registry::load(config, small_machine());
    EXPECT_EQ(record_of(registry, good).state, PluginState::kOff);
    EXPECT_TRUE(registry.kernels("cpu", "add").empty());
    EXPECT_FALSE(folder.was_mapped("good"));
}

TEST(Registry, NamedPluginsMustWork) {
    PluginFolder folder;
    folder.add("good");
    folder.add("other", {{"cpu_flags", "['no_such_flag']"}});
    Config config = folder.config();
    config.prefer = {"good", "absent"};
    expect_error(TSR_NOT_FOUND, "plugin 'absent', which is not there; looked in:\n  " + folder.path().string(),
                 [&] { Registry::load(config, small_machine()); });
    config.prefer = {"other"};
    expect_error(TSR_UNSUPPORTED, "lacks no_such_flag", [&] { Registry::load(config, small_machine()); });
}

TEST(Registry, RigsWithoutAFlagDoNotGetThePlugin) {
    PluginFolder folder;
    // This machine has the flag, the one that is planned for does not.
    const fs::path good = folder.add("good", {{"cpu_flags", "['sse2']"}});
    DeviceDescription cpu;
    cpu.kind = "cpu";
    cpu.id = "CPU";
    cpu.name = "Plain processor";
    const Registry registry = Registry::load(folder.config(), Hardware({cpu}));
    EXPECT_EQ(record_of(registry, good).state, PluginState::kRejected);
    EXPECT_THAT(record_of(registry, good).reason, HasSubstr("the processor (Plain processor) lacks sse2"));
}

TEST(Registry, PluginsOfOtherProcessorsAreForPlansOnly) {
    const auto lacks = [](std::string_view flag) { return !std::ranges::binary_search(host_cpu_flags(), flag); };
    const std::string flag(*std::ranges::find_if(known_cpu_flags(), lacks));
    PluginFolder folder;
    const std::string needed = "['sse2', '" + flag + "']";
    const fs::path good = folder.add("good", {{"cpu_flags", needed}, {"plan_cpu_flags", "['sse2']"}});
    const fs::path other = folder.add("other", {{"cpu_flags", needed}});
    const fs::path better = folder.add("better", {{"cpu_flags", "['sse2']"}});
    const auto state = [&](const Registry& registry, const fs::path& manifest) {
        return record_of(registry, manifest).state;
    };
    {
        DeviceDescription cpu;
        cpu.kind = cpu.id = "cpu";
        cpu.cpu_flags = {flag, "sse2"};
        std::ranges::sort(cpu.cpu_flags);
        const Registry registry = Registry::load(folder.config(), Hardware({cpu}));
        EXPECT_EQ(state(registry, good), PluginState::kRejected) << "it could be run here";
        EXPECT_FALSE(folder.was_mapped("good"));
    }
    const TemporaryFolder files;
    const Hardware rig = Hardware::from_rig(
        files.write("tessera-rig.toml", "[cpu]\nflags = " + needed + "\nthreads = 2\nmemory = '4GiB'\n"));
    const Registry registry = Registry::load(folder.config(), rig);
    EXPECT_EQ(state(registry, good), PluginState::kChosen);
    EXPECT_TRUE(record_of(registry, good).for_plans_only);
    EXPECT_EQ(state(registry, better), PluginState::kChosen);
    EXPECT_FALSE(record_of(registry, better).for_plans_only);
    EXPECT_EQ(state(registry, other), PluginState::kRejected);
    EXPECT_THAT(record_of(registry, other).reason,
                HasSubstr("the processor of this machine lacks " + flag + ", so the library cannot be asked"));
    EXPECT_FALSE(folder.was_mapped("other"));
}

TEST(Registry, DevicesGoToTheProviderThatMatches) {
    PluginFolder folder;
    folder.add("owner60", {{"priority", "1"}});
    folder.add("owner80", {{"priority", "2"}});
    const Hardware hardware = small_machine({800, 610, 500});
    Config config = folder.config();
    const auto owner = [&](const Registry& registry, const char* id) -> std::string {
        const auto* provider = registry.find_provider(*hardware.find(id));
        return provider ? registry.owner(*provider).manifest.name : "";
    };
    const Registry registry = Registry::load(config, hardware);
    EXPECT_EQ(registry.providers("cuda").size(), 2u);
    EXPECT_EQ(owner(registry, "SIM0"), "owner80");
    EXPECT_EQ(owner(registry, "SIM1"), "owner60");
    EXPECT_EQ(owner(registry, "SIM2"), "");
    std::string why;
    EXPECT_EQ(registry.find_provider(*hardware.find("SIM2"), &why), nullptr);
    EXPECT_EQ(why,
              "owner80: needs compute capability 800, found 500\nowner60: needs compute capability 600, found 500");
    EXPECT_EQ(registry.find_provider(hardware.cpu(), &why), nullptr);
    EXPECT_EQ(why, "no plugin for devices of kind cpu was found");

    config.devices["sim0"].plugin = "owner60";
    EXPECT_EQ(owner(Registry::load(config, hardware), "SIM0"), "owner60");
    config.devices["sim1"].plugin = "owner80";
    const Registry wrong = Registry::load(config, hardware);
    expect_error(TSR_UNSUPPORTED, "gives SIM1 (Test GPU) to the plugin owner80, which cannot own it",
                 [&] { wrong.find_provider(*hardware.find("SIM1")); });
    config.devices["SIM2"].plugin = "absent";
    expect_error(TSR_NOT_FOUND, "[devices.SIM2], names the plugin 'absent'", [&] { Registry::load(config, hardware); });
}

TEST(Registry, PartsOfACardHaveOwnersAndTheirKernels) {
    PluginFolder folder;
    for (const char* name : {"owner60", "owner80", "good"}) folder.add(name);
    Hardware hardware = small_machine({800, 800});
    Config config = folder.config();
    config.devices["SIM0"].logical = {{"owner60", {}}, {"owner80", {}}};
    apply(config, hardware);
    const Registry registry = Registry::load(config, hardware);
    EXPECT_EQ(registry.owner(*registry.find_provider(*hardware.find("SIM0.0"))).manifest.name, "owner60");
    EXPECT_EQ(registry.owner(*registry.find_provider(*hardware.find("SIM0.1"))).manifest.name, "owner80");
    size_t withheld = 0;
    for (const tsr_kernel* kernel : registry.kernels("cpu", "add")) {
        const std::string owner = registry.owner(*kernel).manifest.name;
        EXPECT_EQ(registry.why_withheld(*kernel, *hardware.find("SIM1")), "") << "nobody was named for it";
        const std::string why = registry.why_withheld(*kernel, *hardware.find("SIM0.0"));
        EXPECT_EQ(why, owner == "owner80" ? "the configuration gives SIM0.0 to owner60" : "") << owner;
        withheld += !why.empty();
    }
    EXPECT_EQ(withheld, 1u);

    // A part that was left out needs no plugin.
    config.devices["SIM0"].logical[0].plugin = "absent";
    hardware.keep_gpus(std::vector<std::string>{"SIM0.1"});
    EXPECT_NO_THROW(Registry::load(config, hardware));
}

TEST(Registry, ComputeCapabilityIsJudgedBeforeMapping) {
    PluginFolder folder;
    const fs::path manifest = folder.add(
        "owner80",
        {{"kinds", "['cuda']"}, {"minimum_compute_capability", "'8.0'"}, {"maximum_compute_capability", "'12.1'"}});
    const Registry registry = Registry::load(folder.config(), small_machine({750, 1300}));
    EXPECT_EQ(record_of(registry, manifest).reason,
              "SIM0: compute capability 7.5, at least 8.0 needed; SIM1: compute capability 13.0, at most 12.1 needed");
    EXPECT_FALSE(folder.was_mapped("owner80"));
}

TEST(Registry, TakesTablesThatAreInTheProcess) {
    PluginFolder folder;
    folder.add("good");
    const Registry loaded = Registry::load(folder.config(), small_machine());
    const tsr_plugin* table = loaded.find_plugin("good")->table;
    const Registry registry = Registry::of_tables(std::span(&table, 1));
    EXPECT_THAT(owners_of(registry, "add"), ElementsAre("good"));
    tsr_plugin broken = *table;
    broken.struct_size = 12;
    table = &broken;
    expect_error(TSR_INVALID_ARGUMENT, "struct_size is 12", [&] { Registry::of_tables(std::span(&table, 1)); });
}

}  // namespace
}  // namespace tessera::test
