// Every planted fault is found by plugin-test; a run survives it, or reports it with the plugin's name.
#include "tests/apps/process.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string folder_of(const std::string& fault) {
    return std::string(TSR_PLANTED) + "/" + fault;
}

Outcome plugin_test(const std::string& fault) {
    return tessera({"plugin-test", folder_of(fault), "--timeout", "5"});
}

struct Found {
    const char* fault;
    const char* text;
};
void PrintTo(const Found& found, std::ostream* out) {
    *out << found.fault;
}

class PluginTest : public testing::TestWithParam<Found> {};

TEST_P(PluginTest, FindsTheFault) {
    const Outcome outcome = plugin_test(GetParam().fault);
    EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("FAILED planted "), HasSubstr(GetParam().text)));
}

constexpr Found kFound[] = {
    {"does_nothing", "not written?"},
    {"writes_past", "past the end of output 0 (out)"},
    {"writes_weight", "writes byte 0 of input 1 (weight), which is not to be written"},
    {"writes_other_rows", "which is not of its rows"},
    {"depends_on_workers", "not the same, bit for bit, as with 1 worker"},
    {"odd_barrier", "wait at a barrier that the others did not pass"},
    {"run_fails", "run: failed on purpose"},
    {"run_throws", "run threw an exception, which a plugin must not: thrown on purpose"},
    {"run_crashes", "SIGSEGV: writes to an invalid address"},
    {"run_aborts", "SIGABRT"},
    {"run_exits", "the process exited with 0"},
    {"run_hangs", "it did not come back and was ended after 5 s"},
    {"status_of_no_code", "no such code"},
    {"estimate_nan", "seconds_one_row is nan"},
    {"estimate_negative", " is -1, expected a finite number"},
    {"estimate_infinite", " is inf, expected a finite number"},
    {"huge_workspace", "workspace_bytes is 1125899906842624, expected at most"},
    {"huge_scratch", "minimum_scratch_bytes is "},
    {"supported_seven", "supported is 7, expected 0 or 1"},
    {"endless_reason", "reason has no end"},
    {"unknown_layout", "names the layout no_such_layout"},
    {"layout_of_activation", "only weights and caches can have one"},
    {"plan_fails", "plan: out of order"},
    {"plan_throws", "thrown on purpose"},
    {"plan_crashes", "SIGABRT"},
    {"prepare_fails", "prepare: changed its mind"},
    {"initialize_crashes", "SIGSEGV (invalid memory access) in plugin planted: initialize"},
    {"initialize_exits", "_exit was called, which ends the process, in plugin planted: initialize"},
    {"initialize_throws", "plugin planted: initialize threw an exception"},
    {"constructor_crashes", "in plugin planted: mapping of library"},
    {"constructor_throws", "SIGABRT (abort, or an uncaught exception) in plugin planted: mapping of library"},
    {"constructor_exits", "_exit was called, which ends the process, in plugin planted: mapping of library"},
    {"name_of_two_lines",
     "a kernel: expected a name of 1 to 64 letters, digits, '_', '-' and '.', found 'rms_norm.\\x0apl"},
    {"group_bytes_crashes", "SIGSEGV (invalid memory access) in plugin planted: group_bytes of layout f32_planted"},
    {"group_bytes_throws", "plugin planted: group_bytes of layout f32_planted threw an exception"},
    {"group_bytes_rounds", "group_bytes, pack or unpack leaves its thread computing differently: rounding (MXCSR"},
    {"plan_rounds", "plan leaves its thread computing differently: rounding (MXCSR 0x1f80 before, 0x3f80 after)"},
    {"run_rounds", "run leaves its thread computing differently: rounding (MXCSR 0x1f80 before, 0x7f80 after)"},
    {"run_flushes", "differently: flushing to zero, denormals as zero (MXCSR 0x1f80 before, 0x9fc0 after)"},
    {"pieces_left", "99 of 100 pieces are taken by no worker"},
    {"pieces_again", "a worker calls piece again after UINT32_MAX"},
    {"pieces_differ", "piece is called with counts of "},
    {"pieces_too_many", "piece is called with a count of 70000, expected at most 65535"},
    {"barrier_of_another", "barrier is called with worker "},
    {"query_crashes", "SIGABRT"},
    {"workspace_nowhere", "bytes of workspace for a small node"},
    {"other_version", "computes version 99 of rms_norm, which no run would use: nodes of this host are of version 1"},
    {"wild_layout", "SIGSEGV"},
    {"wild_status", "SIGSEGV"},
};
std::string name_of(const testing::TestParamInfo<Found>& info) {
    return info.param.fault;
}
INSTANTIATE_TEST_SUITE_P(Faults, PluginTest, testing::ValuesIn(kFound), name_of);

TEST(PluginTest, PassesAKernelWithoutFault) {
    const Outcome outcome = plugin_test("fault_none");
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(" 0 failed"));
}

TEST(PluginTest, TimesAKernelNextToTheBuiltInOne) {
    const Outcome outcome = tessera({"plugin-test", folder_of("fault_none"), "--time", "--shape", "rms_norm:f32:2048"});
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, testing::ContainsRegex("rms_norm.planted [0-9.]+ us \\(estimate [0-9.]+\\); rms_norm[^ ]* "
                                                    "[0-9.]+ us \\(estimate [0-9.]+\\): [0-9.]+ times as long"));
}

Outcome run(const std::string& fault) {
    return tessera(
        {"run", "-p", "Count from 1 to 3 in French.", "-n", "4", "-t", "2", "--plugin-dir", folder_of(fault)});
}

// The answer is that of the next candidate, and a line says why, once.
class BadPlan : public testing::TestWithParam<Found> {};

TEST_P(BadPlan, LosesTheKernelItsPlace) {
    static const std::string expected = run("fault_none").out;
    const Outcome outcome = run(GetParam().fault);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, expected);
    const std::string line = "plugin planted: plan of kernel rms_norm.planted at node ";
    const size_t first = outcome.err.find(line);
    ASSERT_NE(first, std::string::npos) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(GetParam().text));
    EXPECT_EQ(outcome.err.find(line, first + 1), std::string::npos) << "said more than once";
}

constexpr Found kPlans[] = {
    {"estimate_nan", "seconds_one_row is nan, expected a finite number that is not negative"},
    {"estimate_negative", "seconds_all_rows is -1"},
    {"estimate_infinite", "seconds_one_row is inf"},
    {"huge_workspace", "workspace_bytes is 1125899906842624, expected at most 70368744177664"},
    {"huge_scratch", "minimum_scratch_bytes is"},
    {"supported_seven", "supported is 7, expected 0 or 1"},
    {"endless_reason", "reason has no end within its 256 bytes"},
    {"unknown_layout", "names the layout no_such_layout, which no loaded plugin brings"},
    {"layout_of_activation", "only weights and caches can have one"},
    {"plan_fails", "plan: out of order"},
    {"plan_throws", "threw an exception, which a plugin must not: thrown on purpose"},
    {"workspace_nowhere", "its workspace of 35184372088832 bytes fits nowhere: CPU has "},
};
INSTANTIATE_TEST_SUITE_P(Faults, BadPlan, testing::ValuesIn(kPlans), name_of);

struct Ends {
    const char* fault;
    int code;
    const char* text;
};
void PrintTo(const Ends& ends, std::ostream* out) {
    *out << ends.fault;
}
class BadRun : public testing::TestWithParam<Ends> {};

TEST_P(BadRun, IsToldWithItsNames) {
    const Outcome outcome = run(GetParam().fault);
    // After one worker has called exit the others continue, and may crash in objects that are destroyed: reported, too.
    const bool exits = std::string_view(GetParam().fault) == "run_exits";
    if (exits && outcome.code == 139) {
        EXPECT_THAT(outcome.err, HasSubstr("SIGSEGV (invalid memory access) in plugin planted: run of kernel"));
        return;
    }
    EXPECT_EQ(outcome.code, GetParam().code) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("plugin planted: "), HasSubstr(GetParam().text)));
}

constexpr Ends kEnds[] = {
    {"run_fails", 1, "run of kernel rms_norm.planted at node"},
    {"run_throws", 1, "threw an exception, which a plugin must not: thrown on purpose"},
    {"odd_barrier", 1, "its workers did not pass the same barriers"},
    {"status_of_no_code", 1, "the status has the code 777"},
    {"short_fails", 1, "run of kernel rms_norm.planted at node"},
    {"short_throws", 1, "threw an exception, which a plugin must not: thrown on purpose"},
    {"prepare_fails", 1, "prepare of kernel rms_norm.planted at node"},
    {"run_crashes", 128 + 11,
     "tessera: SIGSEGV (invalid memory access) in plugin planted: run of kernel rms_norm.planted at node"},
    {"run_aborts", 128 + 6, "tessera: SIGABRT"},
    {"run_exits", 1, "tessera: exit was called, which ends the process, in plugin planted: run of kernel"},
    {"plan_crashes", 128 + 6, "plan of kernel rms_norm.planted at node"},
    {"pieces_too_many", 1, "its workers did not pass the same barriers"},
    {"wild_layout", 128 + 11,
     "SIGSEGV (invalid memory access) in plugin planted: plan of kernel rms_norm.planted at node"},
    {"wild_status", 128 + 11, "SIGSEGV (invalid memory access) in plugin planted: prepare of kernel rms_norm.planted"},
    {"wild_log_name", 128 + 11, "SIGSEGV (invalid memory access) in plugin planted: run of kernel rms_norm.planted"},
};
INSTANTIATE_TEST_SUITE_P(Faults, BadRun, testing::ValuesIn(kEnds),
                         [](const auto& one) { return std::string(one.param.fault); });

// A child maps what is not known: one that ends there is not used, and the answer is that of the other plugins.
class BadLibrary : public testing::TestWithParam<Found> {};

TEST_P(BadLibrary, IsNotUsed) {
    const Outcome outcome = run(GetParam().fault);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, run("plan_fails").out) << "as without the plugin";
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("warning: the plugin planted ("), HasSubstr(") is not used: "),
                                   HasSubstr(GetParam().text)));
}

constexpr Found kLibraries[] = {
    {"initialize_crashes", "SIGSEGV (invalid memory access) in plugin planted: initialize"},
    {"initialize_exits", "_exit was called, which ends the process, in plugin planted: initialize"},
    {"constructor_crashes", "mapping of library"},
    {"constructor_throws", "mapping of library"},
    {"constructor_exits", "_exit was called, which ends the process, in plugin planted: mapping of library"},
    {"constructor_hangs", "did not end and was killed"},
    {"query_crashes", "tessera_plugin_query"},
    {"name_of_two_lines", "a kernel: expected a name of"},
};
INSTANTIATE_TEST_SUITE_P(Faults, BadLibrary, testing::ValuesIn(kLibraries), name_of);

// Files are written where the user is, with the user's permissions, and Ctrl-C still ends the program.
TEST(ChangedProcess, IsSetBackAfterMapping) {
    const Outcome outcome = run("constructor_changes");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, run("fault_none").out);
    EXPECT_THAT(outcome.err, HasSubstr("plugin planted: mapping its library changed the working directory, the umask, "
                                       "the action of signal 1"));
    EXPECT_THAT(run("fault_none").err, testing::Not(HasSubstr("mapping its library changed")));
}

// What a call leaves behind of the state that decides how its thread computes is undone, and told once.
class ChangedRounding : public testing::TestWithParam<Found> {};

TEST_P(ChangedRounding, IsUndone) {
    const Outcome outcome = run(GetParam().fault);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, run("fault_none").out);
    const size_t first = outcome.err.find(GetParam().text);
    ASSERT_NE(first, std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find(GetParam().text, first + 1), std::string::npos) << "said more than once";
}

constexpr Found kRounding[] = {
    {"plan_rounds",
     "changes how its thread computes: rounding (MXCSR 0x1f80 before, 0x3f80 after); it has been set back"},
    {"group_bytes_rounds",
     "plugin planted: group_bytes of layout f32_planted changes how its thread computes: rounding"},
    {"run_flushes", "changes how its thread computes: flushing to zero, denormals as zero (MXCSR"},
    {"constructor_rounds", "changes how its thread computes: flushing to zero, denormals as zero (MXCSR"},
};
INSTANTIATE_TEST_SUITE_P(Faults, ChangedRounding, testing::ValuesIn(kRounding), name_of);

TEST(ShortNode, IsComputedByOneWorker) {
    const Outcome outcome = run("short_shared");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, run("fault_none").out);
}

TEST(Shapes, OfTheUserOrAModelAreTested) {
    const Outcome one = tessera({"plugin-test", folder_of("fault_none"), "--shape", "rms_norm:f32:5120", "-v"});
    EXPECT_EQ(one.code, 0) << one.out << one.err;
    EXPECT_THAT(one.out, AllOf(HasSubstr("passed planted kernel rms_norm.planted/rms_norm:f32:5120 rows=33"),
                               HasSubstr("4 passed, 0 failed")));
    const Outcome wrong = tessera({"plugin-test", folder_of("writes_past"), "--shape", "rms_norm:f32:5120"});
    EXPECT_EQ(wrong.code, 1);
    EXPECT_THAT(wrong.out,
                HasSubstr("rms_norm:f32:5120 rows=1: canonical layouts, rows 0 to 1, 1 workers: output 0 (out)"));
    const Outcome other = tessera({"plugin-test", folder_of("fault_none"), "--shape", "matmul:q4_0:64x8"});
    EXPECT_EQ(other.code, 1);
    EXPECT_THAT(other.out, HasSubstr("no kernel claims one of the shapes"));
    const Outcome usage = tessera({"plugin-test", folder_of("fault_none"), "--shape", "matmul:q4_0"});
    EXPECT_EQ(usage.code, 2);
    EXPECT_THAT(usage.err, HasSubstr("--shape: the shape 'matmul:q4_0': expected one of"));
    // Ops whose shapes cannot be named are named themselves.
    const Outcome attention =
        tessera({"plugin-test", TSR_REFERENCE, "--shape", "rms_norm:f32:64", "--kernel", "moe_route"});
    EXPECT_THAT(attention.out, HasSubstr("moe_route: no shape of this op can be named"));
    // The bundled model normalises rows of several lengths.
    const Outcome model = tessera({"plugin-test", folder_of("fault_none"), "--model", TSR_MODEL, "-v"});
    EXPECT_EQ(model.code, 0) << model.out << model.err;
    EXPECT_THAT(model.out, HasSubstr("passed planted kernel rms_norm.planted/rms_norm:f32:"));
}

Outcome test_of_lost(const std::string& way) {
    return tessera({"plugin-test", folder_of(way), "--rig", TSR_RIG, "--timeout", "20"});
}

// A lost device is one failure, whatever is left to be run on it.
TEST(LostDevice, IsOneFailure) {
    const Outcome outcome = test_of_lost("lost_always");
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("enqueue failed: it is on fire"),
                                   HasSubstr("not run: lost_device add.example_device on CUDA0/the rest: the device is "
                                             "lost again"),
                                   HasSubstr(" passed, 2 failed, "), HasSubstr(", others not run\n")))
        << "one on each of the two devices";
}

// Rounding is that of the thread that puts work on a queue.
TEST(DeviceKernel, ThatChangesItsThreadIsFound) {
    const Outcome outcome = test_of_lost("lost_rounding");
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("enqueue leaves its thread computing differently: rounding (MXCSR 0x1f80 "
                                       "before, 0x3f80 after)"));
}

TEST(LostDevice, IsOpenedAgainForOtherCases) {
    const Outcome outcome = test_of_lost("lost_once");
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("add.example_device on CUDA0                 14 passed, 1 failed"),
                                   testing::Not(HasSubstr("not run"))));
}

TEST(LostDevice, EndsAllThatWouldRunOnIt) {
    const TemporaryFolder folder;
    setenv("TSR_PLANTED_LOST", folder.file("lost").c_str(), 1);
    const Outcome outcome = test_of_lost("lost_for_good");
    unsetenv("TSR_PLANTED_LOST");
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("on CUDA0/the rest: the device cannot be opened any more: open failed: it has "
                                "burnt down"),
                      HasSubstr("add.example_device on CUDA1/the rest: the device CUDA1 is lost"),
                      HasSubstr(" passed, 2 failed, ")));
}

TEST(TriedPlugin, IsRememberedIfAProcessSurvivedIt) {
    const TemporaryFolder folder;
    setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
    const auto remembered = [&] {
        const std::filesystem::path tried = folder.path() / "tessera" / "tried-plugins";
        return std::filesystem::exists(tried) ? std::distance(std::filesystem::directory_iterator(tried), {}) : 0;
    };
    run("constructor_exits");
    EXPECT_EQ(remembered(), 0);
    run("fault_none");
    EXPECT_EQ(remembered(), 1) << "no file for the project's own plugins";
    run("fault_none");
    EXPECT_EQ(remembered(), 1);
    unsetenv("XDG_CACHE_HOME");
}

TEST(BadPlugin, WhyFindsItAndGoesOn) {
    for (const char* fault : {"initialize_crashes", "initialize_exits", "constructor_crashes", "query_crashes"}) {
        const Outcome outcome = tessera({"plugins", "--why", "--plugin-dir", folder_of(fault)});
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        EXPECT_THAT(outcome.out, AllOf(HasSubstr("planted 1.0.0: not used"), HasSubstr("a process that tried it"),
                                       HasSubstr("in plugin planted: "), HasSubstr("reference")))
            << fault;
    }
}

}  // namespace
}  // namespace tessera::test
