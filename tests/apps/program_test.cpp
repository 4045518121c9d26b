// Exit codes, standard output and standard error, and whole runs.
#include "tests/apps/process.hpp"
#include "tests/temporary_folder.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

namespace tessera::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kGoldens = TSR_GOLDENS "/";

// A file that is gone with the object.
class TextFile {
  public:
    explicit TextFile(const std::string& text) : path_(folder_.write("text", text)) {}
    const std::string& path() const { return path_; }

  private:
    const TemporaryFolder folder_;
    const std::string path_;
};

TEST(Program, HelpAndVersion) {
    const Outcome help = tessera({"--help"});
    EXPECT_EQ(help.code, 0);
    for (const char* command : {"run", "chat", "plan", "devices", "plugins", "inspect", "tokenize", "bench", "sweep",
                                "perplexity", "repack"}) {
        EXPECT_THAT(help.out, HasSubstr(command));
        const Outcome own = tessera({command, "--help"});
        EXPECT_EQ(own.code, 0) << command;
        EXPECT_THAT(own.out, HasSubstr("--plugin-dir")) << command;
        EXPECT_EQ(own.err, "") << command;
    }
    EXPECT_THAT(tessera({"--version"}).out, StartsWith("tessera "));
    EXPECT_EQ(tessera({"run", "-m", "M", "--version", "--nonsense"}).code, 0);
    EXPECT_EQ(tessera({}).code, 2);
}

TEST(Program, UsageErrorsExitWithTwo) {
    for (const auto& words : std::vector<std::vector<std::string>>{{"fly"},
                                                                   {"run", "--nonsense"},
                                                                   {"run"},
                                                                   {"run", "-p", "a", "-f", "b"},
                                                                   {"run", "-p", "a", "-c", "x"},
                                                                   {"run", "--parallel", "3", "-p", "x"}}) {
        const Outcome outcome = tessera(words);
        EXPECT_EQ(outcome.code, 2) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_THAT(outcome.err, StartsWith("tessera: "));
    }
}

TEST(Program, FilesThatAreNotThereOrNotModels) {
    const Outcome none = tessera({"run", "-m", "/proc/nonexistent/model.gguf", "-p", "x"});
    EXPECT_EQ(none.code, 1);
    EXPECT_THAT(none.err, HasSubstr("/proc/nonexistent/model.gguf"));
    const TextFile text("no model");
    const Outcome other = tessera({"inspect", text.path()});
    EXPECT_EQ(other.code, 1);
    EXPECT_THAT(other.err, HasSubstr(text.path()));
}

TEST(Program, LatentAttentionIsRefusedWhereThereIsNone) {
    const Outcome outcome = tessera({"plan", "-m", kGoldens + "llama-plain.gguf", "-mla", "3"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("no multi-head latent attention"));
}

TEST(Program, OutputThatCannotBeWrittenIsAnError) {
    for (const std::string& words : {std::string("--help"), "inspect " + kGoldens + "v3-groups.gguf",
                                     "bench -p 4 -n 0 -r 1 -m " + kGoldens + "v3-groups.gguf"}) {
        const Outcome outcome = run_process({"sh", "-c", "'" TSR_PROGRAM "' " + words + " > /dev/full"});
        EXPECT_EQ(outcome.code, 1) << words;
        EXPECT_THAT(outcome.err, HasSubstr("standard output could not be written")) << words;
    }
}

TEST(Program, DevicesAndPlugins) {
    EXPECT_THAT(tessera({"devices"}).out, HasSubstr("CPU"));
    const Outcome plugins = tessera({"plugins", "--why"});
    EXPECT_EQ(plugins.code, 0);
    EXPECT_THAT(plugins.out, HasSubstr("reference"));
    EXPECT_THAT(plugins.out, HasSubstr("mla"));
}

TEST(Program, InspectShowsSizesAndRules) {
    const Outcome outcome = tessera({"inspect", kGoldens + "v3-groups.gguf"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("general.architecture"));
    EXPECT_THAT(outcome.out, HasSubstr("routed experts"));
    EXPECT_THAT(outcome.out, HasSubstr("-ot exps=CPU"));
    EXPECT_THAT(tessera({"inspect", "--all", kGoldens + "v3-groups.gguf"}).out,
                HasSubstr("blk.1.ffn_down_exps.weight"));
    // The experts of a layer that predicts are placed nowhere.
    EXPECT_THAT(tessera({"inspect", kGoldens + "v3-ungrouped.gguf"}).out, HasSubstr("experts of layers 1 to 1 "));
}

TEST(Repack, WritesAModelThatAnswers) {
    const TemporaryFolder folder;
    const std::string copy = folder.file("copy.gguf"), model = kGoldens + "v3-groups.gguf";
    const Outcome made = tessera({"repack", "-m", model, "-o", copy});
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr(copy));
    const std::vector<std::string> plan = {"plan", "-m", copy};
    EXPECT_EQ(tessera(plan).code, 0);
    EXPECT_EQ(tessera({"repack", "-m", model}).code, 2);
    const Outcome itself = tessera({"repack", "-m", model, "-o", model});
    EXPECT_EQ(itself.code, 1);
    EXPECT_THAT(itself.err, HasSubstr("the model itself"));
    EXPECT_EQ(tessera({"repack", "-m", model, "-o", "/proc/nonexistent/copy.gguf"}).code, 1);
}

TEST(Plan, JsonNamesEveryNodesKernel) {
    const Outcome outcome = tessera(
        {"plan", kGoldens + "v3-groups.gguf", "--json", "-mla", "1", "-ctk", "bf16", "-c", "100", "-p", "idle"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("-p: a plan does not depend on it"));
    const auto plan = boost::json::parse(outcome.out).as_object();
    EXPECT_TRUE(plan.at("fits").as_bool());
    EXPECT_EQ(plan.at("context").to_number<int>(), 128);
    EXPECT_EQ(plan.at("cache_type_k").as_string(), "bf16");
    ASSERT_GT(plan.at("nodes").as_array().size(), 10u);
    for (const auto& node : plan.at("nodes").as_array()) {
        EXPECT_FALSE(node.at("kernel").as_string().empty());
        EXPECT_FALSE(node.at("plugin").as_string().empty());
        EXPECT_FALSE(node.at("outputs").as_array().empty());
    }
    size_t latent = 0;
    for (const auto& choice : plan.at("lowerings").as_array()) {
        if (choice.at("op").as_string() != "mla_attention") continue;
        ++latent;
        EXPECT_EQ(choice.at("lowering").as_string(), "1");
        EXPECT_TRUE(choice.at("asked").as_bool());
    }
    EXPECT_EQ(latent, static_cast<size_t>(plan.at("model").at("layers").to_number<int>()));
    uint64_t cache = 0;
    for (const auto& storage : plan.at("storages").as_array()) {
        if (storage.at("role").as_string() == "cache") cache += storage.at("bytes").to_number<uint64_t>();
    }
    EXPECT_EQ(plan.at("devices").at(0).at("cache").to_number<uint64_t>(), cache);
}

TEST(Plan, TextSpeaksOfEveryLayer) {
    const Outcome outcome = tessera({"plan", kGoldens + "v3-groups.gguf"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("largest context that fits"));
    EXPECT_THAT(outcome.out, HasSubstr("layer 0 on CPU"));
    EXPECT_THAT(outcome.out, HasSubstr("mla_attention: variant 3"));
    EXPECT_THAT(outcome.out, HasSubstr("after the layers"));
}

TEST(Plan, WhatDoesNotFitSaysByHowMuchAndExitsWithThree) {
    const TextFile rig(
        "[cpu]\nname = \"small\"\nflags = [\"avx2\", \"fma\", \"f16c\"]\nthreads = 2\nmemory = \"16MiB\"\nnuma_nodes = "
        "1\n");
    const Outcome outcome =
        tessera({"plan", kGoldens + "v3-groups.gguf", "-c", "16384", "--rig", rig.path(), "--json"});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    const auto plan = boost::json::parse(outcome.out).as_object();
    EXPECT_FALSE(plan.at("fits").as_bool());
    const auto& excess = plan.at("too_much").at(0);
    EXPECT_EQ(excess.at("device").as_string(), "CPU");
    const auto& cpu = plan.at("devices").at(0);
    EXPECT_EQ(excess.at("bytes").to_number<uint64_t>(),
              cpu.at("allocated").to_number<uint64_t>() - cpu.at("usable_bytes").to_number<uint64_t>());
    char missing[64];
    std::snprintf(missing, sizeof missing, " available: %.2f MiB missing; ",
                  excess.at("bytes").to_number<double>() / (1 << 20));
    EXPECT_THAT(outcome.err, HasSubstr(missing));
}

#ifdef TSR_TEST_MODEL

const std::string kModel = TSR_TEST_MODEL;

TEST(Run, CompletionAloneGoesToStandardOutput) {
    const Outcome chat =
        tessera({"run", "-m", kModel, "--chat", "-p", "Count from 1 to 10 in French.", "-n", "60", "--temp", "0"});
    ASSERT_EQ(chat.code, 0) << chat.err;
    EXPECT_THAT(chat.out, HasSubstr("un"));
    EXPECT_THAT(chat.out, Not(HasSubstr("French")));
    EXPECT_THAT(chat.err, HasSubstr("prompt: "));
    EXPECT_THAT(chat.last_error_line(), StartsWith("generation: "));
    const Outcome again = tessera({"run", "-m", kModel, "--chat", "-p", "Count from 1 to 10 in French.", "-n", "60",
                                   "--temp", "0", "-t", "1", "-ub", "8"});
    EXPECT_EQ(again.out, chat.out);
}

TEST(Run, RawTextAndLengths) {
    const Outcome raw =
        tessera({"run", "-m", kModel, "-p", "one two three", "-n", "3", "--temp", "0", "--verbose-prompt"});
    ASSERT_EQ(raw.code, 0) << raw.err;
    EXPECT_THAT(raw.err, HasSubstr("of the prompt:"));
    EXPECT_THAT(raw.err, HasSubstr("generation: 2 tokens"));  // the first comes with the prompt
    const Outcome none = tessera({"run", "-m", kModel, "-p", "one two three", "-n", "0"});
    EXPECT_EQ(none.code, 0) << none.err;
    EXPECT_EQ(none.out, "");
}

TEST(Run, AFullContextSaysSo) {
    const Outcome outcome =
        tessera({"run", "-m", kModel, "-p", "one two three", "-c", "20", "--ignore-eos", "--temp", "0"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("the context is full (20 tokens)"));
    const Outcome too_long = tessera(
        {"run", "-m", kModel, "-p", "one two three four five six seven eight nine ten eleven twelve", "-c", "5"});
    EXPECT_EQ(too_long.code, 3);
    EXPECT_THAT(too_long.err, HasSubstr("the context holds 5"));
}

// Only -c, -p or the model itself lead past it, and then a line says so.
TEST(Run, AnAnswerStaysWithinWhatTheModelWasMadeFor) {
    const std::string past = "the model was made for 1024 tokens; a sequence that grows past them may err";
    const Outcome usual = tessera({"run", "-p", "Count", "-n", "1400", "--ignore-eos", "--temp", "0"});
    EXPECT_EQ(usual.code, 0) << usual.err;
    EXPECT_THAT(usual.err, HasSubstr("the context is full (1024 tokens)"));
    EXPECT_THAT(usual.err, Not(HasSubstr(past)));
    const Outcome chat = tessera({"chat", "-n", "1400", "--ignore-eos", "--temp", "0"}, "Count\n");
    EXPECT_EQ(chat.code, 0) << chat.err;
    EXPECT_THAT(chat.err, HasSubstr("the context is full (1024 tokens)"));
    EXPECT_THAT(tessera({"run", "-p", "Count", "-n", "1", "-c", "2048"}).err, HasSubstr(past));
    EXPECT_THAT(tessera({"bench", "-p", "1025", "-n", "0", "-r", "1"}).err, HasSubstr(past));
    EXPECT_THAT(tessera({"bench", "-p", "1024", "-n", "0", "-r", "1"}).err, Not(HasSubstr(past)));
    TemporaryFolder folder;
    const std::string text = folder.write("text", std::string(20000, 'a'));
    EXPECT_THAT(tessera({"perplexity", "-f", text, "-c", "1088"}).err, HasSubstr(past));
    EXPECT_THAT(tessera({"perplexity", "-f", text, "--chunks", "1"}).err, Not(HasSubstr(past)));
    EXPECT_THAT(tessera({"sweep", "-c", "1088", "-ub", "512", "-n", "1"}).err, HasSubstr(past));
}

// What -np adds to -c is said, and no request gets it.
TEST(Run, WhatParallelSequencesAddToTheContextIsSaid) {
    const std::string said = "of the context, 960 tokens are a page of 64 for each further sequence";
    const Outcome planned = tessera({"plan", "-c", "8192", "-np", "16"});
    EXPECT_THAT(planned.out, HasSubstr("9152 tokens for 16 sequences"));
    EXPECT_THAT(std::regex_replace(planned.out, std::regex("\\s+"), " "), HasSubstr(said));
    TemporaryFolder folder;
    std::string prompts;
    for (int i = 0; i < 16; ++i) prompts += "Count\n";
    const Outcome run =
        tessera({"run", "-f", folder.write("prompts", prompts), "-np", "16", "-c", "8192", "-n", "1", "--temp", "0"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr(said));
    EXPECT_THAT(tessera({"run", "-p", "Count", "-c", "512", "-n", "1"}).err, Not(HasSubstr("of the context, ")));
}

TEST(Run, AnInterruptEndsTheGenerationCleanly) {
    const Outcome outcome =
        tessera({"run", "-m", kModel, "-p", "one two three", "-c", "4000", "--ignore-eos", "--temp", "0"}, "",
                Signal::kInterruptOutput);
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("stopped"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("the context is full")));
    EXPECT_THAT(outcome.last_error_line(), StartsWith("generation: "));
    EXPECT_THAT(outcome.out, EndsWith("\n"));
}

TEST(Run, StopStringsAreNotPrinted) {
    const Outcome whole =
        tessera({"run", "-m", kModel, "--chat", "-p", "Count from 1 to 10 in French.", "-n", "60", "--temp", "0"});
    const size_t space = whole.out.find(' ', 4);
    ASSERT_NE(space, std::string::npos) << whole.out;
    const std::string stop = whole.out.substr(4, 2);
    const Outcome cut = tessera({"run", "-m", kModel, "--chat", "-p", "Count from 1 to 10 in French.", "-n", "60",
                                 "--temp", "0", "--stop", stop});
    EXPECT_EQ(cut.out, whole.out.substr(0, whole.out.find(stop)) + "\n");
}

TEST(Run, SeveralAtOnceAnswerAsEachAlone) {
    const std::vector<std::string> prompts = {"Count from 1 to 5 in German.", "What is 3 plus 4?",
                                              "Count from 1 to 10 in French.", "What is the capital of France?",
                                              "What is 2 plus 2?"};
    std::string lines, expected;
    for (size_t i = 0; i < prompts.size(); ++i) {
        lines += prompts[i] + "\n";
        const Outcome alone = tessera({"run", "-m", kModel, "--chat", "-p", prompts[i], "-n", "40", "--temp", "0"});
        ASSERT_EQ(alone.code, 0) << alone.err;
        expected += "[" + std::to_string(i + 1) + "]\n" + alone.out;
    }
    const TextFile file(lines);
    const Outcome together =
        tessera({"run", "-m", kModel, "--chat", "--parallel", "3", "-f", file.path(), "-n", "40", "--temp", "0"});
    EXPECT_EQ(together.code, 0) << together.err;
    EXPECT_EQ(together.out, expected);
}

TEST(Chat, KeepsItsCacheBetweenTurns) {
    const Outcome outcome = tessera({"chat", "-m", kModel, "--temp", "0", "-n", "40"},
                                    "Count from 1 to 5 in German.\nWhat is 3 plus 4?\n/exit\n");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("more were in the cache)"));
    const Outcome first =
        tessera({"run", "-m", kModel, "--chat", "-p", "Count from 1 to 5 in German.", "-n", "40", "--temp", "0"});
    EXPECT_THAT(outcome.out, StartsWith(first.out));
}

TEST(Chat, GoesOnAfterAnInterruptedAnswer) {
    const std::vector<std::string> words = {"chat", "-m", kModel, "--temp", "0", "--ignore-eos", "-n", "600"};
    const std::string messages = "Count from 1 to 5 in German.\nWhat is 3 plus 4?\n";
    const auto generated = [](const Outcome& outcome) {
        return std::stoi(outcome.last_error_line().substr(std::string("generation: ").size()));
    };
    const Outcome whole = tessera(words, messages);
    ASSERT_EQ(whole.code, 0) << whole.err;
    const Outcome cut = tessera(words, messages, Signal::kInterruptOutput);
    ASSERT_EQ(cut.code, 0) << cut.err;
    EXPECT_THAT(cut.err, HasSubstr("more were in the cache)"));
    EXPECT_LT(generated(cut), generated(whole)) << "the first answer was not cut short";
    EXPECT_GE(generated(cut), 600 - 1) << "there is no second answer";
}

TEST(Tokenize, NumbersAndPieces) {
    const Outcome outcome = tessera({"tokenize", "-m", kModel, "one two"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\"one\""));
    const Outcome ids = tessera({"tokenize", "-m", kModel, "--ids", "--no-bos"}, "one two");
    EXPECT_EQ(ids.code, 0) << ids.err;
    EXPECT_EQ(ids.out.find_first_not_of("0123456789 \n"), std::string::npos);
}

// A raw prompt as people copy it from a template.
TEST(Bos, RawPromptThatSpellsItHasOne) {
    const auto ids = [&](const std::string& text, const char* flag = "--ids") {
        const Outcome outcome = tessera({"tokenize", "-m", kModel, "--ids", flag, text});
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        return outcome.out;
    };
    const Outcome first = tessera({"tokenize", "-m", kModel, "x"});
    const size_t begin = first.out.find('"');
    const std::string bos = first.out.substr(begin + 1, first.out.find('"', begin + 1) - begin - 1);
    ASSERT_NE(ids("x"), ids("x", "--no-bos")) << "the bundled vocabulary has a BOS";
    EXPECT_EQ(ids(bos + "x"), ids("x"));
    EXPECT_EQ(ids(bos + "x", "--no-bos"), ids("x"));

    const auto shown = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"run", "-m", kModel, "--raw", "-n", "1", "--temp", "0", "--verbose-prompt"});
        const Outcome outcome = tessera(words);
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        size_t count = 0;
        for (size_t at = 0; (at = outcome.err.find('"' + bos + '"', at)) != std::string::npos; ++at) ++count;
        return count;
    };
    EXPECT_EQ(shown({"-p", "x"}), 1u);
    EXPECT_EQ(shown({"-p", bos + "x"}), 1u);
    EXPECT_EQ(shown({"-p", "x", "--no-bos"}), 0u);
    EXPECT_EQ(shown({"-p", bos + "x", "--no-bos"}), 1u);

    std::string words;
    for (int i = 0; i < 64; ++i) words += " one two";
    const TextFile text(bos + words), plain(words);
    EXPECT_THAT(tessera({"perplexity", "-m", kModel, "-f", text.path(), "-c", "32", "--chunks", "1"}).err,
                HasSubstr("scored as text"));
    EXPECT_THAT(tessera({"perplexity", "-m", kModel, "-f", plain.path(), "-c", "32", "--chunks", "1"}).err,
                Not(HasSubstr("scored as text")));
}

#endif

}  // namespace
}  // namespace tessera::test
