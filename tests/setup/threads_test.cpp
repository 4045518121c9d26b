// More threads than CPUs wait for each other: every -t above the CPUs at hand computes as -t CPUs does.
#include "core/hardware/available_cpus.hpp"
#include "core/hardware/numa.hpp"
#include "core/setup/machine.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace tessera {
namespace {

using Use = CappedThreads::Use;

TEST(Threads, AreAtMostOneForEachCpu) {
    for (const uint32_t cpus : {1u, 2u, 3u, 24u, 256u}) {
        for (uint32_t requested = 0; requested <= 256; ++requested) {
            ModelSettings settings;
            settings.engine.threads = requested;
            const std::vector<CappedThreads> capped = cap_threads(settings, cpus);
            EXPECT_EQ(settings.engine.threads, std::min(requested, cpus));
            EXPECT_EQ(settings.engine.prompt_threads, 0u) << "as -t";
            ASSERT_EQ(capped.size(), requested > cpus ? 1u : 0u) << requested << " of " << cpus;
            if (capped.empty()) continue;
            EXPECT_EQ(capped[0].use, Use::kGeneration);
            EXPECT_EQ(capped[0].requested, requested);
        }
    }
}

TEST(Threads, EachNumberAboveTheCpusIsLowered) {
    ModelSettings settings;
    settings.engine.threads = 2;
    settings.engine.prompt_threads = 64;
    settings.drafts.threads = 3;
    settings.drafts.prompt_threads = 256;
    const std::vector<CappedThreads> capped = cap_threads(settings, 2);
    for (const uint32_t threads : {settings.engine.threads, settings.engine.prompt_threads, settings.drafts.threads,
                                   settings.drafts.prompt_threads})
        EXPECT_EQ(threads, 2u);
    ASSERT_EQ(capped.size(), 3u);
    EXPECT_EQ(capped[0].use, Use::kPrompts);
    EXPECT_EQ(capped[0].requested, 64u);
    EXPECT_EQ(capped[1].use, Use::kDraftGeneration);
    EXPECT_EQ(capped[2].use, Use::kDraftPrompts);
    EXPECT_TRUE(cap_threads(settings, 2).empty());
}

// Plans and teams take their number of threads from here.
TEST(Threads, OfTheMachineAreCapped) {
    const test::TemporaryFolder folder;
    const auto rig = folder.write("rig.toml",
                                  "[cpu]\nname = 'small'\nflags = ['avx2', 'fma', 'f16c']\nthreads = 2\n"
                                  "memory = '16GiB'\n");
    CommonSettings settings;
    for (const uint32_t configured : {0u, 1u, 64u}) {
        settings.config = folder.write("config.toml", configured ? fmt::format("threads = {}\n", configured) : "");
        for (const uint32_t asked : {0u, 1u, 2u, 3u, 24u, 64u, 255u, 256u}) {
            const Machine machine(settings, rig, asked);
            EXPECT_EQ(machine.processors, 2u);
            const uint32_t threads = machine.hardware.cpu().threads;
            EXPECT_LE(threads, 2u) << asked;
            if (asked) EXPECT_EQ(threads, std::min(asked, 2u));
        }
    }
}

TEST(Threads, CpusAtHandAreThoseOfTheAffinityOrFewer) {
    EXPECT_GE(available_cpus(), 1u);
    EXPECT_LE(available_cpus(), allowed_cpus().size());
}

}  // namespace
}  // namespace tessera
