// bench, sweep and perplexity as people run them, on a small model.
#include "core/hardware/available_cpus.hpp"
#include "tests/apps/process.hpp"
#include "tests/temporary_folder.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kModel = TSR_TEST_MODEL;

std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST(Bench, EveryTestOfEveryCombination) {
    const Outcome outcome = tessera({"bench", "-m",  kModel, "-p",   "8,70", "-n", "3",    "-d",  "0,100",
                                     "-pg",   "5,2", "-gp",  "64,2", "-r",   "2",  "-fa",  "0,1", "-ctk",
                                     "q8_0",  "-t",  "1,2",  "-ub",  "32",   "-o", "json", "-oe", "md"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto records = boost::json::parse(outcome.out).as_array();
    ASSERT_EQ(records.size(), 2u * 2 * 2 * 5);
    for (const auto& record : records) {
        EXPECT_GT(record.at("avg_ts").to_number<double>(), 0);
        EXPECT_EQ(record.at("samples_ns").as_array().size(), 2u);
        EXPECT_EQ(record.at("type_k").as_string(), "q8_0");
        EXPECT_EQ(record.at("n_ubatch").to_number<int>(), 32);
    }
    const auto& first = records.front();
    EXPECT_EQ(first.at("test").as_string(), "pp8");
    EXPECT_EQ(first.at("n_threads").to_number<int>(), 1);
    EXPECT_FALSE(first.at("flash_attn").as_bool());
    EXPECT_EQ(records[3].at("test").as_string(), "pp5+tg2");
    EXPECT_EQ(records[4].at("test").as_string(), "tg2 @ d64");
    EXPECT_EQ(records[6].at("test").as_string(), "pp70 @ d100");
    EXPECT_EQ(records[10].at("n_threads").to_number<uint32_t>(), std::min(available_cpus(), 2u));
    EXPECT_TRUE(records.back().at("flash_attn").as_bool());
    EXPECT_EQ(records.back().at("n_depth").to_number<int>(), 164);
    EXPECT_THAT(outcome.err, HasSubstr("| model "));
    EXPECT_THAT(outcome.err, HasSubstr("tg2 @ d164"));
}

TEST(Bench, WhatCannotBeMeasuredIsSaid) {
    for (const auto& [words, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"-p", "0", "-n", "0"}, "nothing to measure"},
             {{"-p", "many"}, "-p: expected whole numbers"},
             {{"-pg", "512"}, "-pg: expected pairs"},
             {{"-o", "xml"}, "-o: expected md, csv, json or jsonl"},
             {{"-r", "0"}, "-r: expected"},
             {{"-ctk", "f16,q9_9"}, "found 'q9_9'"}}) {
        std::vector<std::string> line = {"bench", "-m", kModel};
        line.insert(line.end(), words.begin(), words.end());
        const Outcome outcome = tessera(line);
        EXPECT_EQ(outcome.code, 2) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(said));
    }
    EXPECT_EQ(tessera({"bench", "-m", "/proc/nonexistent.gguf"}).code, 1);
    EXPECT_EQ(tessera({"bench", "-m", kModel, "-p", "8", "-n", "0", "-d", "16000000", "-ctk", "f32"}).code, 3);
}

TEST(Sweep, MeasuresSavesAndDraws) {
    const TemporaryFolder folder;
    const std::string saved = folder.file("tessera-sweep-test.jsonl"), plot = folder.file("tessera-sweep-test.svg");
    const Outcome outcome = tessera({"sweep", "-m", kModel, "-c", "200", "-ub", "32", "-n", "4", "--sweep-stride", "2",
                                     "--save", saved, "--plot", plot});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, StartsWith("|    PP |     TG |   N_KV |"));
    EXPECT_THAT(outcome.out, HasSubstr("|    32 |      4 |    128 |"));
    EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 2 + 3);  // depths 0, 64, 128
    EXPECT_EQ(std::ranges::count(read(saved), '\n'), 3);
    EXPECT_THAT(read(plot), HasSubstr("tessera-sweep-test"));

    const Outcome lines =
        tessera({"sweep", "-m", kModel, "-c", "64", "-ub", "64", "-n", "2", "-nrep", "2", "--output-format", "jsonl"});
    ASSERT_EQ(lines.code, 0) << lines.err;
    EXPECT_EQ(boost::json::parse(lines.out).at("n_kv").to_number<int>(), 0);

    std::filesystem::remove(plot);
    const Outcome drawn = tessera({"sweep", saved, saved, "--plot", plot});
    EXPECT_EQ(drawn.code, 0) << drawn.err;
    EXPECT_EQ(drawn.out, "");
    EXPECT_THAT(read(plot), testing::EndsWith("</svg>\n"));
}

TEST(Sweep, WhatCannotBeIsSaid) {
    const Outcome small = tessera({"sweep", "-m", kModel, "-c", "100", "-ub", "512"});
    EXPECT_EQ(small.code, 2);
    EXPECT_THAT(small.err, HasSubstr("expected room for one prompt"));
    EXPECT_EQ(tessera({"sweep", kModel}).code, 2);  // results, and nothing to do with them
    const Outcome none = tessera({"sweep", "/proc/nonexistent.jsonl", "--plot", "/tmp/never.svg"});
    EXPECT_EQ(none.code, 1);
    EXPECT_THAT(none.err, HasSubstr("/proc/nonexistent.jsonl"));
    const Outcome unwritable =
        tessera({"sweep", "-m", kModel, "-c", "32", "-ub", "32", "--save", "/proc/nonexistent/folder/x.jsonl"});
    EXPECT_EQ(unwritable.code, 1);
    EXPECT_THAT(unwritable.err, HasSubstr("/proc/nonexistent/folder/x.jsonl"));
}

class PerplexityRun : public testing::Test {
  protected:
    PerplexityRun() {
        std::ofstream text(text_);
        for (int i = 0; i < 40; ++i) text << "Count from 1 to " << i << " in French: un, deux, trois. ";
    }
    Outcome run(std::vector<std::string> more) {
        std::vector<std::string> words = {"perplexity", "-m", kModel};
        words.insert(words.end(), more.begin(), more.end());
        return tessera(words);
    }
    static double final_estimate(const Outcome& outcome) {
        const size_t at = outcome.out.find("PPL = ");
        return at == std::string::npos ? 0 : std::stod(outcome.out.substr(at + 6));
    }

    const TemporaryFolder folder_;
    const std::string text_ = folder_.file("text.txt"), saved_ = folder_.file("saved.base");
};

TEST_F(PerplexityRun, ScoresATextAndComparesWithASavedRun) {
    const Outcome base = run({"-f", text_, "-c", "128", "--kl-divergence-base", saved_});
    ASSERT_EQ(base.code, 0) << base.err;
    EXPECT_THAT(base.out, StartsWith("[1]"));
    const double ppl = final_estimate(base);
    EXPECT_GT(ppl, 1);
    EXPECT_LT(ppl, 1e7);
    EXPECT_THAT(base.out, HasSubstr(" +/- "));
    // However the rows are fed, and with one thread.
    EXPECT_NEAR(final_estimate(run({"-f", text_, "-c", "128", "-ub", "7", "-t", "1"})), ppl, 0.01 * ppl);
    EXPECT_NE(final_estimate(run({"-f", text_, "-c", "128", "--chunks", "2"})), ppl);

    const Outcome same = run({"--kl-divergence", "--kl-divergence-base", saved_});
    ASSERT_EQ(same.code, 0) << same.err;
    EXPECT_THAT(same.out, HasSubstr("Mean KLD                      : 0.0000"));
    EXPECT_THAT(same.out, HasSubstr("Same top p                    : 100.000"));
    const Outcome other = run({"--kl-divergence", "--kl-divergence-base", saved_, "-ctk", "q8_0", "--chunks", "2"});
    ASSERT_EQ(other.code, 0) << other.err;
    EXPECT_THAT(other.out, HasSubstr("Mean PPL(Q)/PPL(base)"));
    EXPECT_THAT(other.out, testing::Not(HasSubstr("nan")));
    std::istringstream lines(other.out);
    for (std::string line; std::getline(lines, line);)
        EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), 80) << line;
}

TEST_F(PerplexityRun, WhatCannotBeScoredIsSaid) {
    const Outcome short_text = run({"-f", text_, "-c", "100000"});
    EXPECT_EQ(short_text.code, 1);
    EXPECT_THAT(short_text.err, HasSubstr("expected at least 100000 tokens"));
    EXPECT_EQ(run({}).code, 2);
    EXPECT_EQ(run({"--kl-divergence"}).code, 2);
    EXPECT_EQ(run({"-f", text_, "-c", "3"}).code, 2);
    EXPECT_EQ(run({"-f", "/proc/nonexistent.txt"}).code, 1);
    const Outcome no_run = run({"--kl-divergence", "--kl-divergence-base", text_});
    EXPECT_EQ(no_run.code, 1);
    EXPECT_THAT(no_run.err, HasSubstr("not a saved run"));
    EXPECT_EQ(run({"-f", text_, "-c", "64", "--kl-divergence-base", "/proc/nonexistent/x"}).code, 1);
}

}  // namespace
}  // namespace tessera::test
