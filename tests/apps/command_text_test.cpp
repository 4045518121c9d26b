// Help, tables and messages as people read them.
#include "tests/apps/cuda_plugins.hpp"
#include "tests/apps/process.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kGoldens = TSR_GOLDENS "/";
const std::string kBundled = TSR_TEST_MODEL;

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

size_t columns(const std::string& line) {
    return static_cast<size_t>(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }));
}

void expect_narrow(const Outcome& outcome, const std::string& what) {
    EXPECT_EQ(outcome.code, 0) << what << outcome.err;
    for (const std::string& line : lines_of(outcome.out)) EXPECT_LE(columns(line), 80u) << what << ": " << line;
}

TEST(Text, ThePageOfTheManualIsSound) {
    if (shell("command -v groff").code != 0) GTEST_SKIP() << "groff is not installed";
    const Outcome page = shell("$T help --man | groff -man -Tascii -ww -b -P-c -P-b -P-u");
    EXPECT_EQ(page.code, 0);
    EXPECT_EQ(page.err, "");
    for (const char* part : {"plugin-test", "--ctx-size", "--grammar", "LLAMA_ARG_NAME", "EXIT STATUS"})
        EXPECT_THAT(page.out, HasSubstr(part));
}

TEST(Text, TheVersionHasItsCommit) {
    EXPECT_THAT(tessera({"--version"}).out,
                testing::MatchesRegex("tessera [0-9.]+ \\(commit (unknown|[0-9a-f]+(-dirty)?)\\)\n"));
}

TEST(Text, CommandsAreListedWhole) {
    const Outcome wrong = tessera({"nonsense"});
    EXPECT_EQ(wrong.code, 2);
    for (const char* command : {"repack", "plugin-test"}) {
        EXPECT_THAT(wrong.err, HasSubstr(command));
        EXPECT_THAT(tessera({"--help"}).out, HasSubstr(command));
    }
    EXPECT_THAT(tessera({"rn"}).err, HasSubstr("did you mean 'run'?"));
    EXPECT_THAT(tessera({"llama-server"}).err, HasSubstr("use 'tessera serve'"));
    EXPECT_EQ(tessera({"quantize", "a", "b"}).code, 2);
}

TEST(Text, FlagsOfConversationsMakeOne) {
    const auto tokens = [&](std::vector<std::string> more) {
        std::vector<std::string> line = {"run", "-m", kBundled, "-p", "one",
                                         "-n",  "1",  "--temp", "0",  "--verbose-prompt"};
        line.insert(line.end(), more.begin(), more.end());
        return tessera(line);
    };
    const Outcome raw = tokens({});
    EXPECT_EQ(raw.code, 0) << raw.err;
    const Outcome named = tokens({"--chat-template", "chatml"});
    EXPECT_THAT(named.err, HasSubstr("--chat-template: the prompt is put into the chat template, as with --chat"));
    EXPECT_GT(lines_of(named.err).size(), lines_of(raw.err).size() + 1);
    EXPECT_THAT(tokens({"-sys", "Be brief."}).err, HasSubstr("-sys: the prompt is put into"));
    EXPECT_EQ(tokens({"--raw", "--chat-template", "chatml"}).code, 2);
    EXPECT_THAT(tokens({"--raw", "-sys", "x"}).err, HasSubstr("-sys and --raw contradict each other"));
}

TEST(Text, HelpAndTablesFitATerminal) {
    for (const char* command : {"run", "chat", "plan", "devices", "plugins", "inspect", "tokenize", "bench", "sweep",
                                "perplexity", "repack", "plugin-test"}) {
        expect_narrow(tessera({command, "--help"}), command);
    }
    expect_narrow(tessera({"--help"}), "help");
    expect_narrow(tessera({"devices"}), "devices");
    expect_narrow(tessera({"plugins"}), "plugins");
    // The path of the model is as long as it is.
    for (const char* command : {"inspect", "plan"}) {
        const Outcome outcome = shell("cd " + kGoldens + " && $T " + command + " v3-groups.gguf");
        expect_narrow(outcome, command);
    }
    expect_narrow(shell("cd " + std::filesystem::path(kBundled).parent_path().string() + " && $T inspect " +
                        std::filesystem::path(kBundled).filename().string()),
                  "inspect");
}

TEST(Text, HelpOfACommandHasTwoForms) {
    const Outcome outcome = tessera({"help", "run"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, tessera({"run", "--help"}).out);
    EXPECT_THAT(outcome.out, HasSubstr("Accepted but ignored (with a note):"));
    EXPECT_EQ(tessera({"help"}).out, tessera({"--help"}).out);
    EXPECT_EQ(tessera({"help", "fly"}).code, 2);
}

TEST(Text, InspectShowsWholeCounts) {
    const Outcome outcome = tessera({"inspect", kBundled});
    EXPECT_THAT(outcome.out, HasSubstr("array of 1024 string"));
    EXPECT_THAT(tessera({"inspect", "--all", kBundled}).out, HasSubstr("array of 1024 string"));
}

TEST(Text, ThreeLinesAtMostBeforeAnAnswer) {
    const Outcome outcome = tessera({"run", "-p", "What is 9 + 4?"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    size_t before = 0;
    for (const std::string& line : lines_of(outcome.err)) {
        const bool after = line.starts_with("packing: ") || line.starts_with("prompt: ") ||
                           line.starts_with("generation: ") || line.starts_with("seed: ");
        before += !after;
    }
    EXPECT_LE(before, 3u) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("CPU: uses "), HasSubstr(" available (")));
    EXPECT_THAT(outcome.err, Not(HasSubstr("mla_attention")));
    EXPECT_THAT(outcome.err, Not(HasSubstr("between the first steps")));
}

TEST(Text, TheSeedThatWasUsedRepeatsTheAnswer) {
    std::vector<std::string> line = {"run", "-m", kBundled, "-p", "The", "-n", "30", "--temp", "1.5", "--ignore-eos"};
    const Outcome first = tessera(line);
    ASSERT_EQ(first.code, 0) << first.err;
    const size_t at = first.err.find("seed: ");
    ASSERT_NE(at, std::string::npos) << first.err;
    const std::string seed = first.err.substr(at + 6, first.err.find('\n', at) - at - 6);
    line.insert(line.end(), {"-s", seed});
    EXPECT_EQ(tessera(line).out, first.out);
    EXPECT_THAT(tessera({"run", "-m", kBundled, "-p", "The", "-n", "3", "--temp", "0"}).err, Not(HasSubstr("seed: ")));
}

TEST(Text, WhatDoesNotFitNamesTheFlagsThatHelp) {
    const TemporaryFolder folder;
    const std::string rig =
        folder.write("rig.toml",
                     "[cpu]\nname = \"small\"\nflags = [\"avx2\", \"fma\", \"f16c\"]\nthreads = 2\nmemory = "
                     "\"16MiB\"\nnuma_nodes = 1\n");
    const Outcome outcome = tessera({"plan", kGoldens + "v3-groups.gguf", "-c", "65536", "--rig", rig});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("CPU needs "), HasSubstr(" available: "), HasSubstr(" missing; "),
                                   HasSubstr("a smaller -c")));
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("smallest possible -amb: "), HasSubstr("available")));
}

TEST(Text, ErrorsOfTheConfigurationNameTheKey) {
    const TemporaryFolder folder;
    const std::string config = folder.write("c.toml", "thread = 3\n");
    const Outcome outcome = tessera({"devices", "--config", config});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "tessera: " + config + ":1: unknown key 'thread' (did you mean 'threads'?)\n");
}

const std::string kTwoCards =
    "[cpu]\nname = \"small\"\nflags = [\"avx2\", \"fma\", \"f16c\"]\nthreads = 2\nmemory = \"16GiB\"\n"
    "[[gpu]]\nname = \"a card\"\ncount = 2\ncompute_capability = \"8.6\"\nmemory = \"2GiB\"\n";

TEST(Text, PlansSayWhichConstantsOfAPredictionAreAssumed) {
    NEEDS_CUDA_PLUGINS();
    const TemporaryFolder folder;
    const std::string plan =
        "\"$T\" plan " + kGoldens + "v3-groups.gguf -c 256 --rig " + folder.write("rig.toml", kTwoCards).string();
    const auto unwrapped = [](const std::string& text) {
        std::string line;
        for (const std::string& one : lines_of(text))
            line += (line.empty() ? "" : " ") +
                    one.substr(one.find_first_not_of(' ') == std::string::npos ? 0 : one.find_first_not_of(' '));
        return line;
    };
    const std::string both = plan + " -ngl 99 -ts 1,1";
    EXPECT_THAT(unwrapped(shell(both).out),
                AllOf(HasSubstr("assumed, not measured on such a device: CUDA0, CUDA1: graph node "),
                      HasSubstr("; a copy between devices 10 us ")));
    EXPECT_THAT(
        shell(both + " --json").out,
        AllOf(HasSubstr("{\"plugin\":\"cuda_ampere\",\"device\":\"CUDA1\",\"name\":\"graph node\",\"unit\":\"us\","
                        "\"value\":"),
              HasSubstr("{\"plugin\":\"core\",\"device\":\"\",\"name\":\"a copy between devices\"")));
    const std::string none = plan + " -ngl 0 -dev none";
    EXPECT_THAT(shell(none).out, Not(HasSubstr("assumed")));
    EXPECT_THAT(shell(none + " --json").out, HasSubstr("\"assumed\":[]"));
}

TEST(Text, PluginsThatAreNotUsedSayWhyInALine) {
    const TemporaryFolder folder;
    const Outcome outcome = tessera({"plugins", "--rig", folder.write("rig.toml", kTwoCards)});
    EXPECT_THAT(outcome.out, HasSubstr("cpu_avx512 0.1.0: not used ("));
    EXPECT_THAT(outcome.out, HasSubstr("(--why shows what each needs)"));
}

TEST(Text, AProgramWithoutItsPluginsSaysWhereTheyBelong) {
    const TemporaryFolder folder;
    const std::string bin = folder.path().string() + "/bin";
    const Outcome outcome =
        shell("mkdir " + bin + " && cp \"$T\" " + bin + "/tessera && " + bin + "/tessera run -m " + kBundled + " -p x");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("no plugins found in "), HasSubstr("bin/ and lib/ together")));
}

}  // namespace
}  // namespace tessera::test
