// Flags that name something that does not exist, contradict each other, or belong to other programs.
#include "tests/apps/process.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kModel = TSR_GOLDENS "/v3-groups.gguf";
const std::string kBundled = TSR_TEST_MODEL;
const std::string kRig =
    "[cpu]\nname = \"small\"\nflags = [\"avx2\", \"fma\", \"f16c\"]\nthreads = 2\nmemory = \"16GiB\"\nnuma_nodes = 1\n";

Outcome plan(std::vector<std::string> words) {
    words.insert(words.begin(), {"plan", kModel});
    return tessera(words);
}

size_t lines(const std::string& text) {
    return static_cast<size_t>(std::ranges::count(text, '\n'));
}

TEST(Flags, ThatMeanNothingOnThisMachineAreSaid) {
    const TemporaryFolder folder;
    const std::string rig = folder.write("rig.toml", kRig);
    const Outcome gpu = plan({"--rig", rig, "-ngl", "99", "-ts", "3,1"});
    EXPECT_EQ(gpu.code, 0) << gpu.err;
    EXPECT_THAT(gpu.err, HasSubstr("-ngl, -ts: no GPU is used here"));
    EXPECT_THAT(plan({"--rig", rig, "-ngl", "0"}).err, Not(HasSubstr("no GPU")));
    const Outcome threads = plan({"--rig", rig, "-t", "64"});
    EXPECT_EQ(threads.code, 0) << threads.err;
    EXPECT_THAT(threads.err, HasSubstr("-t 64: 2 CPUs are available"));
    EXPECT_EQ(threads.out, plan({"--rig", rig, "-t", "2"}).out) << "capped";
    EXPECT_THAT(plan({"--rig", rig, "-t", "2"}).err, Not(HasSubstr("CPUs")));
}

TEST(Flags, EachNumberOfThreadsAboveTheCpusIsReportedByItsFlag) {
    const TemporaryFolder folder;
    const std::string rig = folder.write("rig.toml", kRig);
    const auto said = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"--rig", rig});
        const Outcome outcome = plan(std::move(words));
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        return outcome.err;
    };
    EXPECT_THAT(said({"-tb", "3"}), AllOf(HasSubstr("-tb 3: 2 CPUs are available"), Not(HasSubstr("-t "))));
    EXPECT_THAT(said({"--threads-batch", "3"}), HasSubstr("--threads-batch 3: 2 CPUs are available"));
    EXPECT_THAT(said({"-t", "5", "-tb", "2"}), AllOf(HasSubstr("-t 5: 2 CPUs are available"), Not(HasSubstr("-tb"))));
    EXPECT_THAT(said({"-t", "5", "-tb", "6"}), AllOf(HasSubstr("-t 5: 2 CPUs"), HasSubstr("-tb 6: 2 CPUs")));
    EXPECT_THAT(said({"-t", "2", "-md", kModel, "-td", "7", "-tbd", "9"}),
                AllOf(HasSubstr("-td 7: 2 CPUs"), HasSubstr("-tbd 9: 2 CPUs"), Not(HasSubstr("-t "))));
    const std::string inherited = said({"-t", "7", "-md", kModel});
    EXPECT_THAT(inherited, HasSubstr("-t 7: 2 CPUs"));
    EXPECT_EQ(inherited.find("CPUs are"), inherited.rfind("CPUs are")) << "one line";
}

TEST(Flags, AWrongNameOfAChatTemplateIsAnErrorOfTheLine) {
    const TemporaryFolder folder;
    for (const std::string command : {"run", "serve"}) {
        std::vector<std::string> line = {command, "-m", kBundled, "--chat-template", "chatlm"};
        if (command == "run") line.insert(line.end(), {"-p", "x"});
        if (command == "serve") line.insert(line.end(), {"--port", "0"});
        const Outcome outcome = tessera(line);
        EXPECT_EQ(outcome.code, 2) << command << outcome.err;
        EXPECT_THAT(outcome.err, AllOf(HasSubstr("--chat-template chatlm"), HasSubstr("did you mean 'chatml'"),
                                       HasSubstr("deepseek-v3")));
    }
    const std::string broken = folder.write("broken.jinja", "{% for %}").string();
    const Outcome file = tessera({"serve", "-m", kBundled, "--port", "0", "--chat-template-file", broken});
    EXPECT_EQ(file.code, 1) << file.err;
    EXPECT_THAT(file.err, HasSubstr("the chat template cannot be run"));
}

TEST(TextFiles, AByteOrderMarkIsNotText) {
    const TemporaryFolder folder;
    const std::string text = "Count from 1 to 5.", mark = "\xEF\xBB\xBF";
    const std::string plain = folder.write("plain", text).string(),
                      marked = folder.write("marked", mark + text + "\r\n");
    const auto tokens = [](const std::string& file) { return tessera({"tokenize", "-f", file, "--ids"}).out; };
    EXPECT_FALSE(tokens(plain).empty());
    EXPECT_EQ(tokens(marked), tokens(plain));
    EXPECT_EQ(tessera({"tokenize", "--ids"}, mark + text).out, tokens(plain)) << "standard input";
    EXPECT_NE(tokens(folder.write("inside", text + mark)), tokens(plain)) << "only the first is a mark";
    const Outcome other = tessera({"tokenize", "-f",
                                   folder.write("utf16", std::string("\xFF\xFE"
                                                                     "a\0",
                                                                     4)),
                                   "--ids"});
    EXPECT_EQ(other.code, 1);
    EXPECT_THAT(other.err, HasSubstr("found UTF-16: save it as UTF-8"));
}

// The process ends by itself, and says of which limit.
TEST(Limits, AreReportedAsSuch) {
    const TemporaryFolder folder;
    // What is said goes to pipes, which have no such limit.
    const auto limited = [&](const std::string& limit, const std::string& more) {
        return shell("{ ulimit " + limit + "; $T run -m " + kBundled + " -p x -n 2 -t 1 " + more +
                     "; echo code $?; } 2>&1 | cat")
            .out;
    };
    const std::string log = limited("-f 0", "--log-file " + folder.file("log"));
    EXPECT_THAT(log, AllOf(HasSubstr("log: cannot write: File too large"), HasSubstr("code 0")));
    EXPECT_THAT(limited("-f 0", ">" + folder.file("out")), AllOf(HasSubstr("File too large"), HasSubstr("code 1")));
    // With few of them the program itself cannot be mapped; the loader gives the system's number of the error.
    for (int descriptors = 5; descriptors < 16; ++descriptors) {
        const std::string few = limited("-n " + std::to_string(descriptors), "");
        EXPECT_THAT(few, testing::ContainsRegex("code [0-9]{1,2}\n|code 12[0-7]\n")) << descriptors;
        if (few.find("code 0") == std::string::npos)
            EXPECT_THAT(few, testing::AnyOf(HasSubstr("oo many open files"), HasSubstr("Error 24"))) << descriptors;
    }
}

// An installation of its own: the program, its plugins and the bundled model.
class RefusedPlugins : public testing::Test {
  protected:
    RefusedPlugins() {
        EXPECT_EQ(shell("umask 022; d=" + folder_.path().string() +
                        "; mkdir -p $d/bin $d/lib/tessera && cp \"$T\" $d/bin/tessera && cp -rL \"$(dirname \"$T\")/"
                        "../lib/tessera/plugins\" $d/lib/tessera/")
                      .code,
                  0);
    }
    std::string plugin(const char* file) const { return folder_.path().string() + "/lib/tessera/plugins/" + file; }
    Outcome run() const {
        return shell(folder_.path().string() + "/bin/tessera run -m " + kBundled + " -p Hello. -n 1 -t 1");
    }

  private:
    const TemporaryFolder folder_;
};

TEST_F(RefusedPlugins, AreNamedWhereTheirOpIsMissed) {
    EXPECT_EQ(run().code, 0);
    const std::string library = plugin("tessera_mla.so");
    ASSERT_EQ(shell("chmod o+w " + library).code, 0);
    Outcome outcome = run();
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("plugins that are not used: mla: others may write to " + library));
    EXPECT_THAT(
        outcome.last_error_line(),
        AllOf(HasSubstr("no op 'mla_attention'"),
              HasSubstr("; the plugin mla has it, but is not used: others may write"), HasSubstr("chmod go-w")));
    ASSERT_EQ(shell("chmod o-w " + library + " && printf x >>" + library).code, 0);
    outcome = run();
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.last_error_line(), HasSubstr("the manifest says SHA-256"));
    ASSERT_EQ(shell("rm " + library).code, 0);
    EXPECT_THAT(run().last_error_line(), HasSubstr("mla has it, but is not used"));
}

TEST_F(RefusedPlugins, AreNamedWhereNoneIsLeft) {
    ASSERT_EQ(shell("chmod -R o+w " + plugin("")).code, 0);
    const Outcome outcome = run();
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("no plugin can be used: "), HasSubstr("others may write to "),
                      HasSubstr("'tessera plugins --why' says why"), Not(HasSubstr("keep the program's"))));
}

TEST(Perplexity, WithoutAChunkHasNoResult) {
    const TemporaryFolder folder;
    const std::string text = folder.write("text", std::string(200000, 'a')), err = folder.file("err"),
                      out = folder.file("out");
    // Stopped when it has begun; a machine that is fast enough may have scored some by then.
    const Outcome outcome = shell("$T perplexity -m " + kBundled + " -f " + text + " -c 4096 -t 1 >" + out + " 2>" +
                                  err + " & p=$!; until grep -q 'are scored' " + err +
                                  " || ! kill -0 $p; do sleep 0.01; done; kill -INT $p; "
                                  "wait $p; echo code $?; cat " +
                                  out);
    if (outcome.out.find("[1]") == std::string::npos) EXPECT_THAT(outcome.out, Not(HasSubstr("Final estimate")));
    EXPECT_THAT(outcome.out, Not(HasSubstr("code 0")));
}

TEST(Flags, CheckingTheOrderOfAccessesChangesNoAnswer) {
    const TemporaryFolder folder;
    const std::vector<std::string> line = {"run", "-m", kBundled, "-p", "Hello", "-n", "6", "--temp", "0"};
    std::vector<std::string> checked = line;
    checked.emplace_back("--check-order");
    const Outcome outcome = tessera(checked);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, tessera(line).out);
    EXPECT_EQ(tessera({"repack", "--check-order", "-m", kBundled, "-o", folder.file("o.gguf")}).code, 2);
}

TEST(Flags, PluginFoldersThatHoldNothingUsable) {
    const TemporaryFolder folder;
    const Outcome none = plan({"--plugin-dir", folder.file("none")});
    EXPECT_EQ(none.code, 2);
    EXPECT_THAT(none.err, AllOf(HasSubstr("--plugin-dir"), HasSubstr("expected a folder")));
    const Outcome empty = plan({"--plugin-dir", folder.path()});
    EXPECT_EQ(empty.code, 0) << empty.err;
    EXPECT_THAT(empty.err, HasSubstr("holds no plugin"));
    folder.write("broken.toml", "name = ");
    EXPECT_THAT(plan({"--plugin-dir", folder.path().string() + "/"}).err, HasSubstr("none of its plugins is used"));
    EXPECT_THAT(tessera({"plugins", "--plugin-dir", folder.path()}).err, HasSubstr("none of its plugins is used"));
}

TEST(Flags, PluginsThatAreOffAndNotThere) {
    const TemporaryFolder folder;
    const std::string config = folder.write("c.toml", "[plugins]\noff = ['cpu_avx22']\n");
    EXPECT_THAT(plan({"--config", config}).err,
                HasSubstr("c.toml: plugins.off: there is no plugin 'cpu_avx22' (did you mean 'cpu_avx2'?)"));
}

TEST(Configuration, WhatHasNoEffectIsSaid) {
    const TemporaryFolder folder;
    const std::string config = folder.write("c.toml", "threads = 1\n[plugins]\nfolders = ['none']\n");
    EXPECT_THAT(plan({"--config", config}).err,
                AllOf(HasSubstr("c.toml: plugins.folders: "), HasSubstr("/none: there is no such folder")));
    const std::string rig = folder.write("rig.toml", kRig);
    EXPECT_THAT(plan({"--config", config, "--rig", rig}).err,
                HasSubstr("c.toml: threads and devices are those of this machine, not of the rig"));
}

// What a run is about has flags alone.
TEST(Configuration, FlagsAreNoKeys) {
    const TemporaryFolder folder;
    for (const char* key : {"allow_unused_tensors = true", "ctx_size = 4096", "temp = 0.5", "[sampling]"}) {
        const Outcome outcome = plan({"--config", folder.write("c.toml", std::string(key) + "\n")});
        EXPECT_NE(outcome.code, 0) << key;
        EXPECT_THAT(outcome.err, HasSubstr("c.toml:1: unknown key '")) << key;
    }
}

TEST(Flags, UnknownKeysOfOverridesAreSaid) {
    for (const char* command : {"plan", "inspect"}) {
        const Outcome outcome = tessera({command, "-m", kModel, "--override-kv", "general.architectur=str:deepseek2"});
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        EXPECT_THAT(outcome.err,
                    HasSubstr("--override-kv general.architectur: the file has no such key, it is added (did "
                              "you mean 'general.architecture'?)"));
    }
    EXPECT_THAT(plan({"--override-kv", "general.architecture=str:deepseek2"}).err, Not(HasSubstr("no such key")));
}

TEST(Flags, AFaultOfTheFileIsToldAsNoFlag) {
    const Outcome outcome = tessera(
        {"run", "-m", TSR_TEST_MODEL, "-p", "a", "-n", "1", "--override-kv", "tokenizer.ggml.suppress_tokens=int:5"});
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("tessera: " TSR_TEST_MODEL ": key 'tokenizer.ggml.suppress_tokens'"));
    const Outcome flag = tessera({"run", "-m", TSR_TEST_MODEL, "-p", "a", "-n", "1", "--logit-bias", "99999999+1"});
    EXPECT_EQ(flag.code, 2) << flag.err;
    EXPECT_THAT(flag.err, HasSubstr("tessera: --logit-bias: "));
}

TEST(Flags, ASecondModelOrTextIsRefused) {
    for (const auto& line : std::vector<std::vector<std::string>>{{"plan", "a.gguf", "b.gguf"},
                                                                  {"plan", "a.gguf", "-m", "b.gguf"},
                                                                  {"inspect", "-m", "a.gguf", "b.gguf"},
                                                                  {"tokenize", "one", "two"},
                                                                  {"tokenize", "-p", "one", "two"},
                                                                  {"run", "a.gguf"}}) {
        const Outcome outcome = tessera(line);
        EXPECT_EQ(outcome.code, 2) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr("expected ")) << outcome.err;
    }
    EXPECT_THAT(tessera({"run", "a.gguf"}).err, HasSubstr("-m FILE"));
}

TEST(Flags, ThatContradictEachOtherAreRefused) {
    const Outcome outcome = plan({"-rtr", "-nr"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("-rtr and -nr contradict each other"));
    EXPECT_EQ(plan({"-rtr", "off", "-nr"}).code, 0);
}

TEST(Flags, OfAllCommandsMayStandBeforeTheCommand) {
    const TemporaryFolder folder;
    const std::string config = folder.write("c.toml", "[plugins]\noff = ['nobody']\n");
    const Outcome outcome = tessera({"--config", config, "-v", "plan", kModel});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("no plugin 'nobody'"));
    EXPECT_EQ(tessera({"--config=" + config, "plan", kModel}).code, 0);
    EXPECT_EQ(tessera({"--config", config}).code, 2);
    const Outcome own = tessera({"-m", kModel, "plan"});
    EXPECT_EQ(own.code, 2);
    EXPECT_THAT(own.err, HasSubstr("flags stand after the command"));
}

TEST(Flags, LongOnesMayHaveOneDash) {
    EXPECT_THAT(plan({"-ctx-size", "128"}).out, HasSubstr("128 tokens"));
    EXPECT_THAT(plan({"-ctx-size=128", "-no-mmap"}).out, HasSubstr("128 tokens"));
    EXPECT_EQ(tessera({"-version"}).code, 0);
}

TEST(Flags, RulesOfPlacementMayBeSeparatedBySemicolons) {
    const Outcome outcome = plan({"-ot", "ffn_(up|gate)=CPU;attn=CPU,no_such_tensor=CPU"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("the rule 'no_such_tensor=CPU' matches no tensor"));
    EXPECT_THAT(plan({"-ot", "attn=CPU;attn_q=CPU"}).out, HasSubstr("all its matches are taken by earlier"));
}

TEST(Flags, FormsOfResultsThatAreNotWrittenAreRefused) {
    for (const char* flag : {"-o", "-oe"}) {
        const Outcome outcome = tessera({"bench", "-m", kBundled, flag, "sql"});
        EXPECT_EQ(outcome.code, 2);
        EXPECT_THAT(outcome.err, HasSubstr(": expected md, csv, json or jsonl, found 'sql'"));
    }
}

TEST(Flags, DevicesThatAreNotHereAreRefusedWithThoseThatAre) {
    const TemporaryFolder folder;
    const std::string rig =
        folder.write("rig.toml", kRig + "[[gpu]]\ncompute_capability = \"8.6\"\nmemory = \"1GiB\"\n");
    const Outcome rule = plan({"--rig", rig, "--override-tensor", "exps=CUDA3"});
    EXPECT_EQ(rule.code, 2);
    EXPECT_THAT(rule.err,
                HasSubstr("--override-tensor exps=CUDA3: names a device that is not here; there are: CPU, CUDA0"));
    const Outcome gpu = plan({"--rig", rig, "--device", "CUDA1"});
    EXPECT_EQ(gpu.code, 2);
    EXPECT_THAT(gpu.err, HasSubstr("--device: no GPU 'CUDA1' here; there are: CUDA0"));
    EXPECT_EQ(plan({"--rig", rig, "-sm", "none", "-mg", "3"}).code, 2);
}

TEST(Flags, BacktrackingOfRulesIsBounded) {
    const Outcome outcome = plan({"-ot", "((.+)+)+x[!]$=CPU"});
    EXPECT_NE(outcome.code, 139);
    const Outcome slow = plan({"-ot", "((.+)+)+[x!]$=CPU"});
    EXPECT_EQ(slow.code, 1) << slow.err;
    EXPECT_THAT(slow.err, HasSubstr("backtracks too much"));
    const TemporaryFolder folder;
    const std::string config = folder.write("c.toml", "[[placement]]\ntensors = '((.+)+)+[x!]$'\ndevice = 'CPU'\n");
    EXPECT_THAT(plan({"--config", config}).err, HasSubstr("backtracks too much"));
}

TEST(Flags, NumbersTakeNoSeparators) {
    for (const char* value : {"4,096", "4.096", "4 096", "4_096", "4k"}) {
        const Outcome outcome = plan({"-c", value});
        EXPECT_EQ(outcome.code, 2) << value;
        EXPECT_THAT(outcome.err, HasSubstr("-c: expected a whole number"));
    }
    // A list, as benchmarks take it.
    const Outcome list = plan({"-t", "1,2"});
    EXPECT_EQ(list.code, 0) << list.err;
    EXPECT_THAT(list.err, HasSubstr("-t takes one value; using 1"));
}

TEST(Flags, TypesThatCannotBeCachedAreRefused) {
    const Outcome outcome = plan({"-ctk", "q4_K"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("-ctk: q4_K cannot be cached; use f32, f16, "));
}

TEST(Flags, MessagesNameFlagsAsTyped) {
    EXPECT_THAT(plan({"--alias", "x"}).err, HasSubstr("--alias: a flag of 'tessera serve'"));
    EXPECT_THAT(plan({"-a", "x"}).err, HasSubstr("-a: a flag of 'tessera serve'"));
    EXPECT_THAT(plan({"--ctx-size", "x"}).err, HasSubstr("tessera: --ctx-size: expected"));
    EXPECT_THAT(plan({"--samplers", "top_q"}).err, Not(HasSubstr("samplers: samplers")));
    const Outcome bias = tessera({"run", "-m", kBundled, "-p", "x", "-l", "999999+1"});
    EXPECT_EQ(bias.code, 2);
    EXPECT_THAT(bias.err, HasSubstr("tessera: -l: expected a token"));
}

// Flags of today's llama.cpp that change nothing of an answer.
TEST(Flags, HarmlessOnesOfOthersAreTaken) {
    const std::vector<std::string> accepted = {"--poll",
                                               "50",
                                               "--cpu-strict",
                                               "0",
                                               "-kvu",
                                               "--color",
                                               "auto",
                                               "-fit",
                                               "on",
                                               "--no-host",
                                               "-dio",
                                               "--offline",
                                               "--log-colors",
                                               "off",
                                               "--log-timestamps",
                                               "--no-log-prefix",
                                               "--swa-full",
                                               "-kvo",
                                               "--repack",
                                               "--no-display-prompt",
                                               "--simple-io",
                                               "--no-jinja",
                                               "--cache-reuse",
                                               "256",
                                               "--no-webui",
                                               "--metrics"};
    std::vector<std::string> line = {"run", "-m", kBundled, "--chat", "--temp", "0", "-p", "What is 9 + 4?"};
    const Outcome plain = tessera(line);
    line.insert(line.end(), accepted.begin(), accepted.end());
    const Outcome outcome = tessera(line);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, plain.out);
    for (const std::string& word : accepted) {
        if (word.starts_with('-')) {
            EXPECT_THAT(outcome.err, HasSubstr(word + ": "));
        }
    }
}

TEST(Flags, OfOthersDoWhatTheySayWhereThatIsCheap) {
    const TemporaryFolder folder;
    std::vector<std::string> line = {"run", "-m", kBundled, "--chat", "--temp", "0", "-p", "What is 9 + 4?"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), line.begin(), line.end());
        return tessera(more);
    };
    const Outcome plain = with({});
    ASSERT_THAT(plain.err, HasSubstr("generation: "));
    EXPECT_THAT(with({"--no-perf"}).err, Not(HasSubstr("generation: ")));
    EXPECT_EQ(with({"--log-disable"}).err, "");
    EXPECT_EQ(with({"--log-disable"}).out, plain.out);
    EXPECT_THAT(tessera({"run", "--log-disable", "-m", "/proc/nonexistent", "-p", "x"}).err,
                HasSubstr("/proc/nonexistent"));
    const Outcome logged = with({"--log-file", folder.file("log")});
    std::ostringstream log;
    log << std::ifstream(folder.file("log")).rdbuf();
    EXPECT_EQ(log.str(), logged.err);
    EXPECT_GT(lines(with({"-lv", "4"}).err), lines(plain.err));
    EXPECT_EQ(lines(with({"-lv", "3"}).err), lines(plain.err));
    const Outcome devices = with({"--list-devices"});
    EXPECT_EQ(devices.code, 0);
    // Not the whole of it: free memory changes.
    EXPECT_EQ(devices.out.substr(0, devices.out.find('(')), tessera({"devices"}).out.substr(0, devices.out.find('(')));
    EXPECT_THAT(devices.out, HasSubstr("kernels of: "));
    EXPECT_EQ(with({"-Cr", "0-0", "--prio", "-1"}).out, plain.out);
    EXPECT_EQ(with({"-C", "1"}).out, plain.out);
    EXPECT_EQ(with({"-C", "xyz"}).code, 2);
    EXPECT_EQ(with({"-Cr", "9-1"}).code, 2);
    EXPECT_EQ(with({"-lm", "none"}).out, plain.out);
    EXPECT_EQ(with({"-lm", "fast"}).code, 2);
    const std::string system = folder.write("system", "Be brief.\n");
    EXPECT_EQ(with({"-sysf", system}).out, with({"-sys", "Be brief."}).out);
    const Outcome single = tessera({"chat", "-m", kBundled, "--temp", "0", "-st"}, "What is 9 + 4?\nWhat is 2 + 2?\n");
    EXPECT_EQ(single.code, 0) << single.err;
    EXPECT_EQ(single.out, plain.out);
}

TEST(Flags, VerboseSaysMore) {
    const std::vector<std::vector<std::string>> commands = {
        {"run", "-m", kBundled, "-p", "one", "-n", "2", "--temp", "0"},
        {"bench", "-m", kBundled, "-p", "8", "-n", "0", "-r", "1"},
        {"sweep", "-m", kBundled, "-c", "32", "-ub", "32", "-n", "1"},
        {"tokenize", "-m", kBundled, "one"}};
    for (std::vector<std::string> line : commands) {
        const size_t before = lines(tessera(line).err);
        line.emplace_back("-v");
        const Outcome verbose = tessera(line);
        EXPECT_GT(lines(verbose.err), before) << line.front();
    }
    const Outcome verbose = tessera({"run", "-m", kBundled, "-p", "one", "-n", "2", "-v"});
    EXPECT_THAT(verbose.err, HasSubstr("mla_attention: variant 3 of mla, layers 0-2, CPU"));
    EXPECT_THAT(verbose.err, HasSubstr("plugins: "));
}

}  // namespace
}  // namespace tessera::test
