// The table of flags, and the results of parsing command lines.
#include "apps/tessera/arguments.hpp"

#include "apps/server/settings.hpp"
#include "apps/tessera/command_words.hpp"
#include "apps/tessera/commands.hpp"
#include "apps/tessera/environment.hpp"
#include "apps/tessera/help.hpp"
#include "apps/tessera/other_programs.hpp"
#include "apps/tessera/read_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tessera::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> words_of(const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

Arguments parse(const std::string& line, Command command = Command::kRun) {
    return Arguments(command, words_of(line));
}

std::string usage_error(const std::string& line, Command command = Command::kRun) {
    try {
        Arguments arguments(command, words_of(line));
        if (flag_named("ctx-size").of(command)) read_model_settings(arguments);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

TEST(Flags, TableHasNoDoubles) {
    std::set<std::string_view> names;
    for (const Flag& flag : all_flags()) {
        EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
        EXPECT_FALSE(flag.help.empty()) << flag.name;
        EXPECT_NE(flag.commands, 0u) << flag.name;
        EXPECT_TRUE(flag.takes != Takes::kNothing || flag.value.empty()) << flag.name;
    }
    for (const CommandInfo& info : all_commands()) {
        std::set<std::string_view> spellings;
        for (const Flag& flag : all_flags()) {
            if (!flag.of(info.command)) continue;
            for (const std::string_view spelling : spellings_of(flag)) {
                EXPECT_TRUE(spellings.insert(spelling).second) << info.name << ' ' << spelling;
                EXPECT_TRUE(spelling.starts_with('-')) << spelling;
                EXPECT_EQ(find_flag(spelling, info.command), &flag) << info.name << ' ' << spelling;
            }
        }
    }
}

// What no structure that is read takes would be accepted and ignored in silence.
TEST(Flags, EverySetterIsOfAStructureThatIsRead) {
    const std::set<const void*> read = {&kTypeTag<CommonSettings>,         &kTypeTag<ModelSettings>,
                                        &kTypeTag<EngineOptions>,          &kTypeTag<PlanOptions>,
                                        &kTypeTag<PlacementOptions>,       &kTypeTag<DeviceChoice>,
                                        &kTypeTag<RopeSettings>,           &kTypeTag<session::SamplingParameters>,
                                        &kTypeTag<server::ServerSettings>, &kTypeTag<DraftSettings>};
    size_t count = 0;
    for (const Flag& flag : all_flags()) {
        if (!flag.setter.owner) continue;
        ++count;
        EXPECT_TRUE(read.contains(flag.setter.owner)) << flag.name;
        EXPECT_EQ(flag.standing, Standing::kSupported) << flag.name;
    }
    EXPECT_GT(count, 80u);
}

TEST(Flags, DefaultsInHelpAreThoseOfTheMembers) {
    const auto ends_with = [](std::string_view name, std::string_view end) {
        EXPECT_TRUE(help_of(flag_named(name)).ends_with(end)) << help_of(flag_named(name));
    };
    ends_with("port", " (8080)");
    ends_with("timeout", " (600)");
    ends_with("body-limit", " (64)");
    ends_with("ubatch-size", " (512)");
    ends_with("top-k", " (40)");
    ends_with("min-p", " (0.05)");
    ends_with("plugin-dir", "; may be repeated");
    const session::SamplingParameters defaults;
    for (const session::SamplingField& field : session::kSamplingFields) {
        if (field.flags.empty()) continue;
        const std::string number = field.is_integer() ? fmt::format("({}", defaults.*field.integer)
                                                      : fmt::format("({}", defaults.*field.number);
        EXPECT_THAT(help_of(flag_named(field.flag())), HasSubstr(number)) << field.name;
    }
}

// The files list the flags of other programs by the command that takes such lines.
TEST(Flags, EverySpellingOfOthersHasAStanding) {
    for (const char* name : {"flags_of_llama_cpp.txt", "flags_of_ik_llama_cpp.txt"}) {
        std::ifstream file(std::string(TSR_SOURCE_DIR "/tests/apps/") + name);
        ASSERT_TRUE(file) << name;
        size_t count = 0;
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with('#')) continue;
            const std::vector<std::string> words = words_of(line);
            const auto info = std::ranges::find(all_commands(), std::string_view(words.front()), &CommandInfo::name);
            ASSERT_NE(info, all_commands().end()) << line;
            for (const std::string& spelling : std::span(words).subspan(1)) {
                ++count;
                const Flag* flag = find_flag(spelling, info->command);
                for (const Command other : {Command::kRun, Command::kServe}) {
                    if (flag) break;
                    flag = find_flag(spelling, other);
                    if (flag && idle_reason(*flag, info->command).empty()) flag = nullptr;
                }
                EXPECT_NE(flag, nullptr) << name << ": " << info->name << ' ' << spelling;
            }
        }
        EXPECT_GT(count, 500u) << name;
    }
}

// Each line of command_lines.txt is accepted, with remarks on the flags that are ignored and nothing else, or refused
// for the flag after '!'.
TEST(Arguments, LinesOfOthersAreUnderstood) {
    std::ifstream file(TSR_COMMAND_LINES);
    ASSERT_TRUE(file) << TSR_COMMAND_LINES;
    size_t count = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        SCOPED_TRACE(line);
        ++count;
        // The bar that ends the flags is an argument of its own; those in regular expressions are not.
        const size_t bar = line.rfind(" |");
        std::vector<std::string> words = words_of(line.substr(0, bar));
        const std::vector<std::string> said = words_of(line.substr(bar + 2));
        const auto info = std::ranges::find(all_commands(), std::string_view(words.front()), &CommandInfo::name);
        ASSERT_NE(info, all_commands().end());
        words.erase(words.begin());
        if (!said.empty() && said.front() == "!") {
            std::string refusal;
            for (const std::string& word : words) refusal += word + ' ';
            EXPECT_THAT(usage_error(refusal, info->command), testing::StartsWith(said.back()));
            continue;
        }
        Arguments arguments(info->command, words);
        std::vector<Arguments> lines{arguments};
        if (info->command == Command::kBench) lines = bench_lines(arguments);
        for (Arguments& one : lines) {
            read_model_settings(one);
            for (const std::string& remark : one.remarks()) arguments.remark(remark);
        }
        std::vector<std::string> found;
        for (const std::string& remark : arguments.remarks())
            found.push_back(remark.substr(0, remark.find_first_of(": ")));
        EXPECT_EQ(found, said);
    }
    EXPECT_EQ(count, 74u);
}

TEST(Arguments, OptionalValuesAreTakenOnlyIfTheyAreSwitchWords) {
    EXPECT_EQ(parse("-fa -mla 3").on_off("flash-attn"), true);
    EXPECT_EQ(parse("-fa 0 -mla 3").on_off("flash-attn"), false);
    EXPECT_EQ(parse("-fa off").on_off("flash-attn"), false);
    EXPECT_EQ(parse("-fa auto").on_off("flash-attn"), true);
    EXPECT_EQ(parse("-fa=off").on_off("flash-attn"), false);
    EXPECT_EQ(parse("-mla 3").on_off("flash-attn"), std::nullopt);
    EXPECT_THAT(usage_error("-fa maybe"), HasSubstr("maybe"));
}

TEST(Arguments, ValuesMayBeAttachedAndHoldEqualsSigns) {
    EXPECT_EQ(parse("--ctx-size=77").integer("ctx-size", 0, 100), 77);
    EXPECT_EQ(parse("-ot=exps=CPU").text("override-tensor"), "exps=CPU");
    EXPECT_EQ(parse("-ot exps=CPU").text("override-tensor"), "exps=CPU");
    EXPECT_EQ(Arguments(Command::kRun, std::vector<std::string>{"-p", ""}).text("prompt"), "");
    EXPECT_EQ(Arguments(Command::kRun, std::vector<std::string>{"-p", "-5 is less than -fa"}).text("prompt"),
              "-5 is less than -fa");
    EXPECT_EQ(parse("-p -fa").text("prompt"), "-fa");
    EXPECT_EQ(parse("-ngl -1").integer("n-gpu-layers", -1, 9), -1);
}

TEST(Arguments, TheLastOfSeveralCounts) {
    EXPECT_EQ(parse("-c 1 -c 2 --ctx-size 3").integer("ctx-size", 0, 9), 3);
    EXPECT_THAT(parse("-ot a=CPU -ot b=CPU").all("override-tensor"), ElementsAre("a=CPU", "b=CPU"));
}

// Of flags that set the same member, too, whatever their order in the table.
TEST(Arguments, TheLastOfOppositesCounts) {
    const auto settings = [](const std::string& line) {
        Arguments arguments = parse(line);
        return read_model_settings(arguments);
    };
    for (const auto& [line, drafts] :
         {std::pair{"--mtp -no-mtp", false}, std::pair{"-no-mtp --mtp", true}, std::pair{"--mtp -no-mtp -mtp", true},
          std::pair{"--spec-type mtp -no-mtp", false}, std::pair{"-no-mtp --spec-type mtp", true},
          std::pair{"--mtp --spec-type none", false}, std::pair{"--spec-type none --mtp", true},
          std::pair{"--mtp --spec-type ngram", true}})
        EXPECT_EQ(settings(line).drafts.prediction, drafts) << line;
    EXPECT_TRUE(settings("-no-fa -fa on").engine.flash_attention);
    EXPECT_FALSE(settings("-fa on -no-fa").engine.flash_attention);
    EXPECT_EQ(settings("-ub 512 -b 256").engine.rows, 256u);
    EXPECT_EQ(settings("-b 256 -ub 512").engine.rows, 256u);
    EXPECT_EQ(settings("-b 2048 -ub 1024").engine.rows, 1024u);
}

TEST(Arguments, ListsAndRanges) {
    const Arguments bench = parse("-p 16,32 -p 64 -d 0-512+256 -n 1-8*2 -ctk q8_0,f16", Command::kBench);
    EXPECT_THAT(bench.integers("bench-prompt", 0, 1000), ElementsAre(16, 32, 64));
    EXPECT_THAT(bench.integers("bench-depth", 0, 1000), ElementsAre(0, 256, 512));
    EXPECT_THAT(bench.integers("bench-generate", 0, 1000), ElementsAre(1, 2, 4, 8));
    EXPECT_THAT(bench.list("cache-type-k"), ElementsAre("q8_0", "f16"));
    EXPECT_THAT(parse("-p 2-4", Command::kBench).integers("bench-prompt", 0, 9), ElementsAre(2, 3, 4));
    for (const char* bad : {"-p x", "-p 1,,2", "-p -1", "-p 5-3", "-p 1-9*1", "-p 1-9+0", "-p 99999999999", "-p 1-"}) {
        EXPECT_THROW(parse(bad, Command::kBench).integers("bench-prompt", 0, 1000), UsageError) << bad;
    }
}

TEST(Arguments, CombinationsChangeTheLastNameFastest) {
    constexpr std::string_view names[] = {"flash-attn", "cache-type-v", "threads"};
    std::vector<std::string> found;
    for (Arguments& one : parse("-t 1,2 -t 4 -fa 0,1", Command::kBench).combinations(names)) {
        found.push_back(std::to_string(*one.on_off("flash-attn")) + *one.text("threads"));
        EXPECT_TRUE(one.remarks().empty());
        EXPECT_FALSE(one.has("cache-type-v"));
    }
    EXPECT_THAT(found, ElementsAre("01", "02", "04", "11", "12", "14"));
}

TEST(Flags, ThatChangeResultsAreRefusedAndNeutralValuesAccepted) {
    for (const char* line : {"--grammar x --json-schema {}",
                             "--grammar x --grammar-file f",
                             "--lora a.gguf",
                             "--control-vector-scaled a:1",
                             "--mmproj f",
                             "--image f",
                             "--rpc host:1",
                             "--api-key k",
                             "--embedding",
                             "--pooling mean",
                             "--context-shift",
                             "--context-shift on",
                             "--prompt-cache f",
                             "--in-prefix x",
                             "-i",
                             "-hf a/b",
                             "-mu url",
                             "-sm row",
                             "-sm tensor",
                             "-sm graph",
                             "--split-mode attn",
                             "-o out.txt",
                             "--cfg-scale 1.5",
                             "--reasoning-budget -5",
                             "--infill",
                             "-ctk-first q8_0,4",
                             "--chat-template-kwargs {\"messages\":1}",
                             "--chat-template-kwargs [1]",
                             "--chat-template f --chat-template-file f",
                             "--spec-synth-len 3",
                             "--lora=x",
                             "--reasoning_budget -5"}) {
        const std::string typed = words_of(line).front();
        EXPECT_THAT(usage_error(line), testing::StartsWith(typed.substr(0, typed.find('=')))) << line;
    }
    for (const char* line :
         {"--grammar= -c 8", "--context-shift off", "--context-shift 0", "--pooling none", "--attention causal",
          "--cfg-scale 1.0", "--sleep-idle-seconds -1", "-ncffn 0", "--reasoning-budget -1", "--reasoning-budget 100",
          "--reasoning-effort default", "--reasoning-effort high", "--chat-template-kwargs {}",
          "--chat-template-kwargs {\"x\":1}", "--chat-template-kwargs {\"enable_thinking\":false}", "-np -1"}) {
        EXPECT_EQ(usage_error(line), "") << line;
        EXPECT_TRUE(parse(line).remarks().empty()) << line;
    }
    EXPECT_EQ(Arguments(Command::kRun, std::vector<std::string>{"--lora", ""}).remarks().size(), 0u);
    EXPECT_EQ(usage_error("--reasoning-format deepseek", Command::kServe), "");
    EXPECT_THAT(usage_error("--reasoning-format none", Command::kServe), HasSubstr("reasoning_content"));
    EXPECT_EQ(usage_error("-embd 0", Command::kBench), "");
    EXPECT_THAT(usage_error("-embd 1", Command::kBench), HasSubstr("-embd: embeddings"));
}

TEST(Flags, ThinkingMayBeSwitchedInFourWays) {
    for (const char* line : {"--reasoning off", "--reasoning-budget 0", "--reasoning-effort none",
                             "--chat-template-kwargs {\"enable_thinking\":false}"}) {
        Arguments arguments = parse(line);
        EXPECT_EQ(read_model_settings(arguments).thinking, false) << line;
    }
    EXPECT_THAT(usage_error("--reasoning on --reasoning-budget 0"), HasSubstr("contradict"));
}

TEST(Arguments, UnderscoresStandForDashes) {
    EXPECT_EQ(parse("--top_p 0.5").number("top-p", 0, 1), 0.5);
    EXPECT_EQ(parse("--ctx_size=77").integer("ctx-size", 0, 100), 77);
    EXPECT_EQ(parse("-ctx_size 77").integer("ctx-size", 0, 100), 77);
    EXPECT_THAT(usage_error("--ctx_size x"), testing::StartsWith("--ctx_size: expected"));
}

TEST(Arguments, OtherDashesAreNamed) {
    EXPECT_THAT(usage_error("—model m.gguf"), HasSubstr("type --model"));
    EXPECT_THAT(usage_error("–c 8"), HasSubstr("type -c"));
    EXPECT_THAT(usage_error("−−ctx-size 8"), HasSubstr("type --ctx-size"));
    EXPECT_THAT(usage_error("--no\u2011mmap"), HasSubstr("type --no-mmap"));
    // Text is text.
    EXPECT_EQ(parse("–", Command::kTokenize).text("prompt"), "–");
}

TEST(Arguments, FlagsOfSamplingAreIdleWhereNothingIsDrawn) {
    for (const Command command : {Command::kPerplexity, Command::kSweep, Command::kBench, Command::kRepack}) {
        const Arguments arguments = parse("--seed 1337 --temp 0.7 --top-k 1", command);
        EXPECT_EQ(arguments.remarks().size(), 3u);
        EXPECT_THAT(arguments.remarks().front(), HasSubstr("--seed: ")) << arguments.remarks().front();
        EXPECT_FALSE(arguments.has("seed"));
    }
    EXPECT_THAT(usage_error("--seed 1", Command::kInspect), HasSubstr("is not a flag of"));
}

Arguments with_environment(const std::vector<Variable>& variables, const std::string& line,
                           Command command = Command::kRun) {
    std::vector<std::string> remarks;
    Arguments arguments(command, words_of(line), read_environment(command, variables, remarks));
    for (const std::string& remark : remarks) arguments.remark(remark);
    return arguments;
}

TEST(Environment, VariablesOfLlamaCppAreFlagsThatTheLineOverrides) {
    const std::vector<Variable> variables = {{"LLAMA_ARG_CTX_SIZE", "77"},   {"LLAMA_ARG_MMAP", "false"},
                                             {"LLAMA_ARG_UBATCH", "9"},      {"LLAMA_ARG_PORT", "1"},
                                             {"LLAMA_API_KEY", "secret"},    {"LLAMA_ARG_LORA", ""},
                                             {"LLAMA_ARG_FLASH_ATTN", "off"}};
    Arguments arguments = with_environment(variables, "-ub 8");
    EXPECT_EQ(arguments.integer("ctx-size", 0, 100), 77);
    EXPECT_TRUE(arguments.has("no-mmap"));
    EXPECT_EQ(arguments.integer("ubatch-size", 0, 100), 8);
    EXPECT_EQ(arguments.on_off("flash-attn"), false);
    EXPECT_FALSE(arguments.has("port"));
    EXPECT_THAT(arguments.remarks(),
                ElementsAre("read from the environment: LLAMA_ARG_CTX_SIZE, LLAMA_ARG_MMAP, LLAMA_ARG_FLASH_ATTN"));
    EXPECT_FALSE(with_environment(variables, "--mmap").has("no-mmap"));
    EXPECT_EQ(with_environment(variables, "", Command::kServe).text("api-key"), "secret");
    EXPECT_TRUE(with_environment(variables, "", Command::kDevices).remarks().empty());
}

TEST(Environment, WhatIsNotKnownOrRefusedIsSaid) {
    EXPECT_THAT(with_environment({{"LLAMA_ARG_NONSENSE", "1"}}, "").remarks(),
                ElementsAre("LLAMA_ARG_NONSENSE: there is no flag --nonsense; the variable is not read"));
    const auto error = [](const std::vector<Variable>& variables) -> std::string {
        try {
            with_environment(variables, "").integer("ctx-size", 0, 100);
        } catch (const UsageError& usage) {
            return usage.what();
        }
        return "";
    };
    EXPECT_THAT(error({{"LLAMA_ARG_HF_REPO", "a/b"}}), testing::StartsWith("LLAMA_ARG_HF_REPO: nothing is downloaded"));
    EXPECT_THAT(error({{"LLAMA_ARG_CTX_SIZE", "x"}}), testing::StartsWith("LLAMA_ARG_CTX_SIZE: expected"));
    EXPECT_THAT(error({{"LLAMA_ARG_MMAP", "maybe"}}), HasSubstr("expected 1 or 0, found 'maybe'"));
    EXPECT_THAT(error({{"LLAMA_ARG_NO_MMAP", "0"}}), HasSubstr("expected 1, found '0'"));
}

TEST(Arguments, MessagesOfTheCoreNameFlagsAsTyped) {
    const Arguments arguments = parse("--threads 4 --gpu-layers 3 -fa");
    EXPECT_EQ(arguments.as_typed("-t 4: there"), "--threads 4: there");
    EXPECT_EQ(arguments.as_typed("-ngl, -ts: no GPU"), "--gpu-layers, -ts: no GPU");
    EXPECT_EQ(arguments.as_typed("model.gguf: -t"), "model.gguf: -t");
    EXPECT_EQ(arguments.as_typed("--unknown: x"), "--unknown: x");
    EXPECT_EQ(arguments.as_typed("-t and -ngl contradict each other: no"),
              "--threads and --gpu-layers contradict each other: no");
    EXPECT_EQ(arguments.as_typed("-t 4 needs -m"), "--threads 4 needs -m");
}

TEST(Commands, OfOtherProgramsSayWhatToUse) {
    for (const char* word : {"quantize", "llama-quantize", "llama-quantize.exe", "imatrix", "embedding", "llama-cli",
                             "./build/bin/llama-cli", "server", "llama-server", "llama-bench", "convert",
                             "convert_hf_to_gguf.py", "gguf-split", "llama-sweep-bench", "pull"}) {
        EXPECT_NE(instead_of(word), "") << word;
    }
    EXPECT_EQ(instead_of("llama-bench"), "use 'tessera bench'");
    EXPECT_EQ(instead_of("run"), "");
    EXPECT_EQ(instead_of("nonsense"), "");
}

TEST(Arguments, UnknownFlagsNameTheNearest) {
    EXPECT_THAT(usage_error("-mal 3"), HasSubstr("did you mean -mla?"));
    EXPECT_THAT(usage_error("--ctx-sise 3"), HasSubstr("did you mean --ctx-size?"));
    EXPECT_THAT(usage_error("--override-tenosr a=b"), HasSubstr("did you mean --override-tensor?"));
    EXPECT_THAT(usage_error("--ctx-sise=3"), HasSubstr("unknown flag --ctx-sise;"));
    EXPECT_THAT(usage_error("--zzzzzzzzzz"), testing::Not(HasSubstr("did you mean")));
    EXPECT_THAT(usage_error("--json"), HasSubstr("--json is not a flag of 'tessera run'; it is one of: plan"));
    EXPECT_THAT(usage_error("-c 12", Command::kInspect),
                HasSubstr("it is one of: run, chat, serve, plan, sweep, perplexity"));
    EXPECT_THAT(usage_error("stray"), HasSubstr("expected a flag, found 'stray'"));
}

TEST(Arguments, MissingAndWrongValues) {
    EXPECT_THAT(usage_error("-c"), HasSubstr("-c expects N, found the end of the line"));
    EXPECT_THAT(usage_error("-m -fa"), HasSubstr("-m expects FILE, found the flag -fa"));
    EXPECT_THAT(usage_error("-c many"), HasSubstr("-c: expected a whole number from 0 to"));
    EXPECT_THAT(usage_error("-c -3"), HasSubstr("found '-3'"));
    EXPECT_THAT(usage_error("-c 12x"), HasSubstr("found '12x'"));
    EXPECT_THAT(usage_error("-c 99999999999999999999"), HasSubstr("found '9999"));
    EXPECT_THAT(usage_error("--temp warm"), HasSubstr("--temp: expected a number"));
    EXPECT_THAT(usage_error("--temp nan"), HasSubstr("--temp: expected a number"));
    EXPECT_THAT(usage_error("--top-p 1.5"), HasSubstr("--top-p: expected a number from 0 to 1"));
    EXPECT_THAT(usage_error("-mla 4"), HasSubstr("-mla: expected 0, 1, 2 or 3, found '4'"));
    EXPECT_THAT(usage_error("-ctk q9_9"), HasSubstr("found 'q9_9'"));
    EXPECT_THAT(usage_error("-ot CPU"), HasSubstr("-ot: expected REGEX=DEVICE"));
    EXPECT_THAT(usage_error("-ts 1,x"), HasSubstr("-ts: expected numbers"));
    EXPECT_THAT(usage_error("-ts 0,0"), HasSubstr("a share above 0"));
    EXPECT_THAT(usage_error("-sm diagonal"), HasSubstr("-sm: expected layer"));
    EXPECT_THAT(usage_error("--split_mode row"), testing::StartsWith("--split_mode row: several GPUs share"));
    EXPECT_THAT(usage_error("--samplers top_q"), HasSubstr("top_q"));
    EXPECT_THAT(usage_error("--override-kv nonsense"), HasSubstr("--override-kv"));
    EXPECT_THAT(usage_error("-l 5*3"), HasSubstr("TOKEN+X"));
    EXPECT_THAT(usage_error("--chat --raw"), HasSubstr("contradict"));
    EXPECT_THAT(usage_error("--mlock=1"), HasSubstr("takes no value"));
}

TEST(Help, ThePageOfFlagsIsThatOfTheTable) {
    std::ostringstream page;
    page << std::ifstream(TSR_SOURCE_DIR "/docs/flags.md").rdbuf();
    EXPECT_TRUE(page.str() == flags_page()) << "write it again: tessera help --markdown > docs/flags.md";
}

TEST(Help, ShowsEveryFlagOfTheCommand) {
    for (const CommandInfo& info : all_commands()) {
        const std::string text = help_text(info.command);
        for (const Flag& flag : all_flags()) {
            if (!flag.of(info.command)) continue;
            for (const std::string_view spelling : spellings_of(flag))
                EXPECT_THAT(text, HasSubstr(std::string(spelling))) << info.name;
        }
    }
}

}  // namespace
}  // namespace tessera::app
