// Plugins with every known fault. The host uses the good one beside them, and reports why it rejects the others.
#include "core/base/error.hpp"
#include "tests/registry/plugin_folder.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera::test {
namespace {

using testing::HasSubstr;

// Loads the folder with a good plugin beside what the test put there; the good one must be chosen, and nothing else.
const PluginRecord load_beside_good(PluginFolder& folder, const fs::path& bad) {
    const fs::path good = folder.add("good");
    const Registry registry = Registry::load(folder.config(), small_machine());
    EXPECT_EQ(record_of(registry, good).state, PluginState::kChosen) << record_of(registry, good).reason;
    EXPECT_EQ(registry.kernels("cpu", "add").size(), 1u);
    EXPECT_TRUE(folder.was_mapped("good"));
    return record_of(registry, bad);
}

#define EXPECT_REJECTED(record, text)                 \
    do {                                              \
        const PluginRecord got = (record);            \
        EXPECT_EQ(got.state, PluginState::kRejected); \
        EXPECT_EQ(got.table, nullptr);                \
        EXPECT_THAT(got.reason, HasSubstr(text));     \
    } while (false)

TEST(BadPlugins, NotALibrary) {
    PluginFolder folder;
    const fs::path library = folder.write("text.so", "this is not an ELF file\n");
    const std::string digest = sha256_of_file(library);
    const fs::path bad = folder.write("text.toml",
                                      "name = 'text'\nversion = '1'\nabi = '1.0'\nlibrary = 'text.so'\nkinds = []\n"
                                      "sha256 = '" +
                                          digest + "'\n");
    EXPECT_REJECTED(load_beside_good(folder, bad), "the dynamic loader refused it");
}

TEST(BadPlugins, LibraryIsMissing) {
    PluginFolder folder;
    const fs::path bad = folder.add("other", {{"library", "'gone.so'"}});
    EXPECT_REJECTED(load_beside_good(folder, bad), "gone.so");
    EXPECT_FALSE(folder.was_mapped("other"));
}

struct TableCase {
    const char* fixture;
    const char* reason;
};
class BadTables : public testing::TestWithParam<TableCase> {};

TEST_P(BadTables, IsRejectedWithItsReason) {
    PluginFolder folder;
    const fs::path bad = folder.add(GetParam().fixture);
    EXPECT_REJECTED(load_beside_good(folder, bad), GetParam().reason);
    // The second time the result is the same, without a second initialisation.
    const Registry again = Registry::load(folder.config(), small_machine());
    EXPECT_REJECTED(record_of(again, bad), GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, BadTables,
    testing::Values(TableCase{"no_symbol", "does not export the function tessera_plugin_query"},
                    TableCase{"declines", "cannot serve a host of ABI 1.0"},
                    TableCase{"other_major", "the table is of ABI 2.0; this host takes 1.0"},
                    TableCase{"later_minor", "the table is of ABI 1.9"},
                    TableCase{"short_table", "struct_size is 40, expected at least"},
                    TableCase{"tiny_table", "struct_size is 8, expected at least"},
                    TableCase{"short_kernel", "a kernel: struct_size is 48"},
                    TableCase{"no_run", "kernel add.fixture: a function is missing"},
                    TableCase{"short_status", "a status whose struct_size is 8, expected at least 32"},
                    TableCase{"early_table",
                              "has the form of ABI 1.0 from before that version was final: build the "
                              "plugin again with this SDK"},
                    TableCase{"odd_name",
                              "a kernel: expected a name of 1 to 64 letters, digits, '_', '-' and '.', found "
                              "'add fixture'"},
                    TableCase{"empty_groups", "layout fixture_rows: group_bytes gives 0 for rows of 4 elements"},
                    TableCase{"cores_op", "operator matmul: the core has an op of this name"},
                    TableCase{"init_fails", "plugin init_fails: initialize: the frobnicator is cold"}),
    [](const auto& test) { return std::string(test.param.fixture); });

struct ManifestCase {
    const char* name;
    Keys changes;
    const char* reason;
    bool mapped;
};
class BadManifests : public testing::TestWithParam<ManifestCase> {};

TEST_P(BadManifests, IsRejectedWithItsReason) {
    PluginFolder folder;
    const fs::path bad = folder.add("other", GetParam().changes);
    EXPECT_REJECTED(load_beside_good(folder, bad), GetParam().reason);
    EXPECT_EQ(folder.was_mapped("other"), GetParam().mapped);
}

INSTANTIATE_TEST_SUITE_P(
    Contradictions, BadManifests,
    testing::Values(
        ManifestCase{"name", {{"name", "'another'"}}, "says name another, the library's table other", true},
        ManifestCase{"version", {{"version", "'1.3.0'"}}, "says version 1.3.0, the library's table 1.2.0", true},
        ManifestCase{"kinds", {{"kinds", "['cpu', 'cuda']"}}, "says kinds cpu, cuda, the library's table cpu", true},
        ManifestCase{"ops_too_many",
                     {{"ops", "['add', 'mul', 'fixture_op', 'softmax']"}},
                     "only in the manifest: softmax",
                     true},
        ManifestCase{"ops_too_few", {{"ops", "['add', 'fixture_op']"}}, "only in the table: mul", true}),
    [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(
    BeforeMapping, BadManifests,
    testing::Values(
        ManifestCase{"flag", {{"cpu_flags", "['avx2', 'no_such_flag']"}}, "lacks no_such_flag", false},
        ManifestCase{"hash", {{"sha256", "'" + std::string(64, '0') + "'"}}, "the manifest says SHA-256 0000", false},
        ManifestCase{"major", {{"abi", "'2.0'"}}, "its manifest says ABI 2.0; this host takes 1.0", false},
        ManifestCase{"minor", {{"abi", "'1.7'"}}, "its manifest says ABI 1.7", false},
        ManifestCase{"no_such_device", {{"kinds", "['cuda']"}}, "no device of kind cuda here", false},
        ManifestCase{
            "unknown_key", {{"cpu_flag", "['avx2']"}}, "unknown key 'cpu_flag' (did you mean 'cpu_flags'?)", false},
        ManifestCase{"missing_key", {{"sha256", ""}}, "key 'sha256': is missing", false},
        ManifestCase{"plan_flag",
                     {{"cpu_flags", "['sse2']"}, {"plan_cpu_flags", "['sse']"}},
                     "key 'plan_cpu_flags': 'sse' is not among cpu_flags",
                     false},
        ManifestCase{"missing_flags", {{"cpu_flags", ""}}, "key 'cpu_flags': is missing", false},
        ManifestCase{"other_folder", {{"library", "'../other.so'"}}, "key 'library'", false},
        ManifestCase{"broken", {{"kinds", "['cpu'"}}, "not valid TOML", false}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(BadPlugins, ManifestOfBytes) {
    PluginFolder folder;
    const fs::path bad = folder.write("bytes.toml", std::string("\x00\xff\xfe name = \x80", 12));
    EXPECT_REJECTED(load_beside_good(folder, bad), "not valid TOML");
}

TEST(BadPlugins, HugeManifest) {
    PluginFolder folder;
    const fs::path bad = folder.write("huge.toml", std::string(2 << 20, '#'));
    EXPECT_REJECTED(load_beside_good(folder, bad), "expected at most 1048576 bytes");
}

TEST(BadPlugins, ManifestOfTooManyLevels) {
    PluginFolder folder;
    std::string keys;
    for (int i = 0; i < 50000; ++i) keys += "a.";
    const fs::path bad = folder.write("deep.toml", keys + "a = 1\n");
    EXPECT_REJECTED(load_beside_good(folder, bad), "deep.toml:1: a key of more than 16 parts");
}

// Opening one of these would wait for ever, and reading a device never ends.
TEST(BadPlugins, FilesThatAreNotRegular) {
    PluginFolder folder;
    const fs::path pipe = folder.path() / "pipe.toml", below = folder.path() / "folder.toml";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    fs::create_directory(below);
    const fs::path no_library = folder.add("other");
    fs::remove(folder.path() / "other.so");
    ASSERT_EQ(mkfifo((folder.path() / "other.so").c_str(), 0600), 0);
    folder.add("good");
    const Registry registry = Registry::load(folder.config(), small_machine());
    EXPECT_EQ(record_of(registry, folder.path() / "good.toml").state, PluginState::kChosen);
    EXPECT_REJECTED(record_of(registry, pipe), "expected a regular file, found a device, pipe or socket");
    EXPECT_REJECTED(record_of(registry, below), "expected a regular file, found a folder");
    EXPECT_REJECTED(record_of(registry, no_library), "other.so: expected a regular file");
}

TEST(BadPlugins, LibraryThatIsTooLargeIsNotHashed) {
    PluginFolder folder;
    const fs::path bad = folder.add("other");
    fs::resize_file(folder.path() / "other.so", uint64_t{40} << 30);  // sparse
    EXPECT_REJECTED(load_beside_good(folder, bad),
                    "other.so has 42949672960 bytes; a library of more than 1073741824 is not loaded");
    EXPECT_FALSE(folder.was_mapped("other"));
}

TEST(BadPlugins, LibraryWithoutManifest) {
    PluginFolder folder;
    fs::copy_file(fs::path(TSR_FIXTURES) / "other.so", folder.path() / "other.so");
    EXPECT_REJECTED(load_beside_good(folder, folder.path() / "other.so"), "no manifest beside it");
    EXPECT_FALSE(folder.was_mapped("other"));
}

TEST(BadPlugins, TwoOfOneNameTheHigherVersionIsTaken) {
    PluginFolder folder;
    // The higher version contradicts its library, so the lower one is used after all.
    const fs::path newer = folder.add("other", {{"version", "'2.0'"}}, "a");
    const fs::path older = folder.add("other", {}, "b");
    const fs::path same = folder.add("other", {}, "c");
    const Registry registry = Registry::load(folder.config(), small_machine());
    EXPECT_REJECTED(record_of(registry, newer), "says version 2.0");
    EXPECT_EQ(record_of(registry, older).state, PluginState::kChosen);
    EXPECT_REJECTED(record_of(registry, same), "another plugin of this name is taken: " + older.string());
}

TEST(BadPlugins, TwoOfOneNameTheFirstFolderIsTaken) {
    PluginFolder first, second;
    const fs::path taken = second.add("other"), left = first.add("other");
    Config config = first.config();
    config.plugin_folders = {second.path(), first.path()};
    const Registry registry = Registry::load(config, small_machine());
    EXPECT_EQ(record_of(registry, taken).state, PluginState::kChosen);
    EXPECT_REJECTED(record_of(registry, left), "another plugin of this name is taken");
}

TEST(BadPlugins, LibraryThatOthersMayWrite) {
    PluginFolder folder;
    const fs::path bad = folder.add("other");
    ASSERT_EQ(chmod((folder.path() / "other.so").c_str(), 0666), 0);
    EXPECT_REJECTED(load_beside_good(folder, bad), "others may write to " + (folder.path() / "other.so").string());
    EXPECT_FALSE(folder.was_mapped("other"));
}

TEST(BadPlugins, ManifestThatOthersMayWrite) {
    PluginFolder folder;
    const fs::path bad = folder.add("other");
    ASSERT_EQ(chmod(bad.c_str(), 0646), 0);
    EXPECT_REJECTED(load_beside_good(folder, bad), "others may write to " + bad.string());
    EXPECT_FALSE(folder.was_mapped("other"));
}

TEST(BadPlugins, FolderThatOthersMayWrite) {
    PluginFolder folder;
    const fs::path bad = folder.add("other");
    for (const mode_t mode : {0777, 01777}) {  // sticky or not: others may put plugins into it
        ASSERT_EQ(chmod(folder.path().c_str(), mode), 0);
        const Registry registry = Registry::load(folder.config(), small_machine());
        EXPECT_REJECTED(record_of(registry, bad), "others may write to " + folder.path().string());
    }
    EXPECT_FALSE(folder.was_mapped("other"));
}

TEST(BadPlugins, FolderBelowOneThatEverybodyMayWrite) {
    PluginFolder above;
    const fs::path below = above.path() / "below";
    fs::create_directory(below);
    const fs::path placed = above.add("other");
    fs::rename(placed, below / "other.toml");
    fs::rename(above.path() / "other.so", below / "other.so");
    ASSERT_EQ(chmod(above.path().c_str(), 0777), 0);
    Config config = above.config();
    config.plugin_folders = {below};
    EXPECT_REJECTED(record_of(Registry::load(config, small_machine()), below / "other.toml"), "everybody may write to");
    EXPECT_FALSE(above.was_mapped("other"));
}

TEST(BadPlugins, LinksAreJudgedWhereTheyLead) {
    PluginFolder folder, open;
    open.add("other");
    ASSERT_EQ(chmod(open.path().c_str(), 0777), 0);
    fs::create_symlink(open.path() / "other.toml", folder.path() / "other.toml");
    fs::create_symlink(open.path() / "other.so", folder.path() / "other.so");
    const Registry registry = Registry::load(folder.config(), small_machine());
    EXPECT_REJECTED(record_of(registry, open.path() / "other.toml"), "others may write to " + open.path().string());
    EXPECT_FALSE(open.was_mapped("other"));
}

TEST(BadPlugins, FilesOfAnotherUser) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    PluginFolder folder;
    const fs::path bad = folder.add("other");
    ASSERT_EQ(chown((folder.path() / "other.so").c_str(), 12345, 0), 0);
    EXPECT_REJECTED(load_beside_good(folder, bad), "belongs to user 12345; expected root or the user who runs this");
    EXPECT_FALSE(folder.was_mapped("other"));
}

TEST(BadPlugins, RelativeAndMissingFoldersAreNotSearched) {
    PluginFolder folder;
    folder.add("other");
    Config config = folder.config();
    config.plugin_folders = {".", folder.path() / "gone", ""};
    const fs::path here = fs::current_path();
    fs::current_path(folder.path());
    const Registry registry = Registry::load(config, small_machine());
    fs::current_path(here);
    EXPECT_FALSE(folder.was_mapped("other"));
    ASSERT_EQ(registry.plugins().size(), 3u);
    EXPECT_REJECTED(registry.plugins()[0], "absolute folders only");
    EXPECT_REJECTED(registry.plugins()[1], "the folder cannot be read");
    EXPECT_REJECTED(registry.plugins()[2], "absolute folders only");
}

TEST(BadPlugins, NotOnTheAllowList) {
    PluginFolder folder;
    const fs::path bad = folder.add("other"), good = folder.add("good");
    Config config = folder.config();
    config.allowed_sha256 = {sha256_of_file(folder.path() / "good.so")};
    const Registry registry = Registry::load(config, small_machine());
    EXPECT_EQ(record_of(registry, good).state, PluginState::kChosen);
    EXPECT_REJECTED(record_of(registry, bad), "is not among plugins.allowed_sha256");
    EXPECT_FALSE(folder.was_mapped("other"));
}

TEST(BadPlugins, ChangedAfterItWasMapped) {
    PluginFolder folder;
    const fs::path manifest = folder.add("other");
    ASSERT_EQ(record_of(Registry::load(folder.config(), small_machine()), manifest).state, PluginState::kChosen);
    fs::remove(folder.path() / "other.so");
    fs::remove(manifest);
    folder.add("better", {{"name", "'other'"}}, "other");
    EXPECT_REJECTED(record_of(Registry::load(folder.config(), small_machine()), manifest),
                    "has changed since this process mapped it");
}

}  // namespace
}  // namespace tessera::test
