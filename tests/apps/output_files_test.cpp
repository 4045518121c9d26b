// Where results are written: devices, pipes, links, closed descriptors, and what a signal leaves behind.
#include "core/hardware/available_cpus.hpp"
#include "tests/apps/process.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tessera::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kModel = TSR_GOLDENS "/v3-groups.gguf";
const std::string kBundled = TSR_TEST_MODEL;

std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

class OutputFiles : public testing::Test {
  protected:
    OutputFiles() { write_text(folder_.file("text")); }

    static void write_text(const std::string& path) {
        std::ofstream text(path);
        for (int i = 0; i < 200; ++i) text << "Count from 1 to " << i << " in French: un, deux, trois. ";
    }
    // The content that every kind of output must have.
    std::string whole_copy() const {
        const std::string path = folder_.file("reference");
        EXPECT_EQ(tessera({"repack", "-m", kModel, "-o", path}).code, 0);
        return read(path);
    }
    size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_.path()), {})); }

    const TemporaryFolder folder_;
};

TEST_F(OutputFiles, DevicesAndPipesAreWrittenTo) {
    EXPECT_EQ(tessera({"repack", "-m", kModel, "-o", "/dev/null"}).code, 0);
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    const std::string copy = whole_copy();
    const Outcome piped =
        shell("cd " + folder_.path().string() + " && mkfifo pipe && (cat pipe >got &) && $T repack -m " + kModel +
              " -o pipe && sleep 0.2 && test -p pipe");
    EXPECT_EQ(piped.code, 0) << piped.err;
    EXPECT_EQ(read(folder_.file("got")), copy);
    const Outcome full = tessera({"repack", "-m", kModel, "-o", "/dev/full"});
    EXPECT_EQ(full.code, 1);
    EXPECT_THAT(full.err, HasSubstr("/dev/full: cannot write: No space left on device"));
    const Outcome folder = tessera({"repack", "-m", kModel, "-o", folder_.path()});
    EXPECT_EQ(folder.code, 1);
    EXPECT_THAT(folder.err, HasSubstr("found a folder"));
}

TEST_F(OutputFiles, ADashIsStandardOutput) {
    const Outcome outcome = tessera({"repack", "-m", kModel, "-o", "-"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, whole_copy());
    EXPECT_THAT(outcome.err, HasSubstr("tensors)"));
    const Outcome base =
        tessera({"perplexity", "-m", kBundled, "-f", folder_.file("text"), "--kl-divergence-base", "-"});
    EXPECT_EQ(base.code, 2);
    EXPECT_THAT(base.err, HasSubstr("--kl-divergence-base -"));
}

TEST_F(OutputFiles, LinksAreFollowed) {
    const std::string copy = whole_copy();
    fs::create_symlink("real", folder_.file("link"));
    EXPECT_EQ(tessera({"repack", "-m", kModel, "-o", folder_.file("link")}).code, 0);
    EXPECT_TRUE(fs::is_symlink(folder_.file("link")));
    EXPECT_EQ(read(folder_.file("real")), copy);
    fs::create_symlink("kld", folder_.file("kld-link"));
    EXPECT_EQ(tessera({"perplexity", "-m", kBundled, "-f", folder_.file("text"), "-c", "64", "--chunks", "1",
                       "--kl-divergence-base", folder_.file("kld-link")})
                  .code,
              0);
    EXPECT_TRUE(fs::is_symlink(folder_.file("kld-link")));
    EXPECT_THAT(read(folder_.file("kld")), StartsWith("_logits_"));
}

TEST_F(OutputFiles, TwoWritersOfOneNameDoNotMix) {
    const std::string copy = whole_copy();
    const Outcome both = shell("cd " + folder_.path().string() + "; for i in 1 2 3; do $T repack -m " + kModel +
                               " -o same >/dev/null & $T repack -m " + kModel + " -o same >/dev/null & wait; done");
    EXPECT_EQ(both.code, 0) << both.err;
    EXPECT_EQ(both.err, "");
    EXPECT_EQ(read(folder_.file("same")), copy);
    EXPECT_EQ(files(), 3u);  // text, reference, same
}

TEST_F(OutputFiles, SignalsLeaveNothingBehind) {
    const std::vector<std::string> line = {"perplexity",         "-m", kBundled, "-f",
                                           folder_.file("text"), "-c", "64",     "--kl-divergence-base",
                                           folder_.file("base")};
    const Outcome ended = tessera(line, "", Signal::kTerminateOutput);
    EXPECT_EQ(ended.code, 128 + 15) << ended.err;
    EXPECT_EQ(files(), 1u);
    const Outcome interrupted = tessera(line, "", Signal::kInterruptOutput);
    EXPECT_EQ(interrupted.code, 130) << interrupted.err;
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFiles, ClosedDescriptorsGetNoMessages) {
    const std::string copy = whole_copy();
    const std::string path = folder_.file("copy");
    // -fmoe produces a message.
    const std::string line = "$T repack -fmoe -m " + kModel + " -o " + path;
    EXPECT_EQ(shell(line + " <&- 2>&-").code, 0);
    EXPECT_EQ(read(path), copy);
    fs::remove(path);
    const Outcome no_output = shell(line + " <&- >&-");
    EXPECT_EQ(no_output.code, 1);
    EXPECT_THAT(no_output.err, HasSubstr("standard output could not be written"));
    EXPECT_EQ(read(path), copy);
    fs::remove(path);
    shell(line + " <&- >&- 2>&-");
    EXPECT_EQ(read(path), copy);
}

TEST_F(OutputFiles, AFailureToWriteSaysWhy) {
    const Outcome outcome = shell("$T inspect " + kModel + " >/dev/full");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("standard output could not be written: No space left on device"));
}

TEST_F(OutputFiles, PlotsAreOpenedBeforeMeasuring) {
    const std::vector<std::string> sweep = {"sweep", "-m", kBundled, "-c", "64", "-ub", "32", "-n", "2", "--plot"};
    const auto plot = [&](const std::string& name) {
        std::vector<std::string> line = sweep;
        line.push_back(name);
        return tessera(line);
    };
    const Outcome nowhere = plot("/proc/nonexistent/folder/x.svg");
    EXPECT_EQ(nowhere.code, 1);
    EXPECT_EQ(nowhere.out, "");
    EXPECT_THAT(nowhere.err, HasSubstr("/proc/nonexistent/folder/x.svg: cannot create"));
    const Outcome png = plot(folder_.file("x.png"));
    EXPECT_EQ(png.code, 2);
    EXPECT_THAT(png.err, HasSubstr("ends in .svg"));
    EXPECT_EQ(plot("-").code, 2);
    EXPECT_EQ(plot(folder_.file("x.svg")).code, 0);
    EXPECT_THAT(read(folder_.file("x.svg")), StartsWith("<svg"));
    EXPECT_EQ(files(), 2u);
}

TEST_F(OutputFiles, TextsMayComeFromPipes) {
    const Outcome outcome = run_process(
        {"bash", "-c", "\"$T\" run -m " + kBundled + " --chat --temp 0 -f <(echo 'What is the capital of Norway?')"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Oslo"));
}

TEST(Threads, OneThatCannotBeStartedIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "what is preloaded stands in for pthread_create, as the sanitizer does";
#endif
    // More threads than CPUs are not started.
    const uint32_t threads = std::min(available_cpus(), 4u);
    if (threads < 2) GTEST_SKIP() << "one CPU, so that no other thread is started";
    const auto run = [&](uint32_t allowed) {
        return shell(fmt::format("THREADS_ALLOWED={} LD_PRELOAD={} $T run -m {} -t {} -p x -n 4", allowed,
                                 TSR_NO_THREADS, kBundled, threads));
    };
    for (uint32_t allowed = 0; allowed + 1 < threads; ++allowed) {
        const Outcome outcome = run(allowed);
        EXPECT_EQ(outcome.code, 1) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(fmt::format("of {} threads", threads)));
        EXPECT_THAT(outcome.err, HasSubstr("ulimit -u"));
    }
    const Outcome enough = run(100);
    EXPECT_EQ(enough.code, 0) << enough.err;
}

}  // namespace
}  // namespace tessera::test
