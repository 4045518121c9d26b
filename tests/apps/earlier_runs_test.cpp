// What a run reaches of its predicted speed is kept for `tessera plan`, in a cache folder of the test's own.
#include "core/hardware/available_cpus.hpp"
#include "tests/apps/process.hpp"
#include "tests/temporary_folder.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace tessera::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class EarlierRuns : public testing::Test {
  protected:
    // One thread: else what others do on this machine decides how many take part.
    Outcome command(const std::string& words, int threads = 1) {
        return shell(
            fmt::format("XDG_CACHE_HOME={} $T {} -m {} -t {}", cache_.string(), words, TSR_TEST_MODEL, threads));
    }
    // Of so many tokens that enough of them are computed while no other process takes the processor.
    Outcome run(const std::string& flags = "") {
        const Outcome outcome = command("run -p one -n 400 --ignore-eos --temp 0 " + flags);
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        return outcome;
    }
    json::object planned(const std::string& flags = "") {
        return json::parse(command("plan --json " + flags).out).as_object().at("earlier_runs").as_object();
    }
    // Runs that are faster than the speed measured for the first plan have it measured again, and predictions change.
    void confirm_speed() {
        for (const auto& entry : fs::directory_iterator(cache_ / "tessera")) {
            if (!entry.path().filename().string().starts_with("speed-")) continue;
            std::ostringstream text;
            text << std::ifstream(entry.path()).rdbuf();
            std::string kept = text.str();
            for (const auto& [from, to] : {std::pair{"disturbed = true", "disturbed = false"},
                                           std::pair{"confirmed = false", "confirmed = true"}}) {
                if (const size_t at = kept.find(from); at != std::string::npos) kept.replace(at, strlen(from), to);
            }
            std::ofstream(entry.path()) << kept;
        }
    }
    fs::path file() const { return cache_ / "tessera" / "earlier-runs.toml"; }

    TemporaryFolder folder_;
    fs::path cache_ = folder_.path() / "cache";
};

TEST_F(EarlierRuns, CorrectWhatIsSaidOfAPlan) {
    EXPECT_TRUE(planned().empty());
    EXPECT_THAT(command("plan").out, Not(HasSubstr("earlier runs")));
    EXPECT_FALSE(fs::exists(file())) << "a plan keeps nothing";
    confirm_speed();
    const Outcome verbose = run("-v");
    EXPECT_THAT(verbose.err,
                ContainsRegex("generation beside the prediction, [0-9]+ steps: [0-9.]+ tokens/s, predicted "));
    json::object earlier = planned("-c 512 --parallel 2");
    EXPECT_EQ(earlier.at("generation").at("runs").to_number<int>(), 1);
    EXPECT_GT(earlier.at("generation").at("ratio").to_number<double>(), 0);
    EXPECT_FALSE(earlier.contains("prompt")) << "it had few rows";
    EXPECT_THAT(command("plan").out,
                ContainsRegex("earlier runs here reached [0-9.]+ of the speed predicted for tokens"));
    run();
    earlier = planned();
    EXPECT_EQ(earlier.at("generation").at("runs").to_number<int>(), 2);
    // One CPU has one thread, whatever -t says.
    if (available_cpus() > 1)
        EXPECT_THAT(command("plan", 2).out, Not(HasSubstr("earlier runs"))) << "another number of threads";
    const std::string rig = folder_.write("rig.toml",
                                          "[cpu]\nname = 'any'\nflags = ['avx2', 'fma', 'f16c']\nthreads = 1\n"
                                          "memory = '8GiB'\n");
    EXPECT_TRUE(planned("--rig " + rig).empty());
}

TEST_F(EarlierRuns, AreNeitherKeptNorReadWhereTheConfigurationSaysSo) {
    const std::string off = "--config " + folder_.write("off.toml", "keep_speeds = false\n").string();
    run(off);
    EXPECT_FALSE(fs::exists(file()));
    confirm_speed();
    run();
    EXPECT_FALSE(planned().empty());
    EXPECT_TRUE(planned(off).empty());
}

TEST_F(EarlierRuns, AreNeverInTheWay) {
    folder_.write("cache", "no folder");
    const std::string plain = run().err;
    fs::remove(cache_);
    folder_.write("cache/tessera/earlier-runs.toml", "version = 7\n");
    const Outcome damaged = run();
    EXPECT_THAT(damaged.err, HasSubstr("earlier-runs.toml:1: "));
    EXPECT_THAT(damaged.err, HasSubstr("left out"));
    EXPECT_THAT(plain, Not(HasSubstr("earlier-runs")));
    EXPECT_THAT(run().err, Not(HasSubstr("earlier-runs")));
}

}  // namespace
}  // namespace tessera::test
