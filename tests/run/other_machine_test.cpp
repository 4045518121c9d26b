// Plans for machines that are not here are made and not run.
#include "core/base/error.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(OtherMachine, KernelsThatThisProcessorCannotRunAreRefused) {
    if (test::runs_here("cpu_avx512")) GTEST_SKIP() << "this processor runs all kernels";
    const test::TemporaryFolder folder;
    const Hardware rig = Hardware::from_rig(
        folder.write("rig.toml", "[cpu]\nflags = ['avx2', 'fma', 'f16c', 'avx512bw']\nthreads = 2\nmemory = '4GiB'\n"));
    const Registry registry = Registry::load(test::plugins_without({}), rig);
    const std::filesystem::path path = TSR_GOLDENS "/v3-groups.gguf";
    EngineOptions options;
    options.context = 128;
    const Plan plan = plan_model(gguf::GgufFile::open(path), registry, rig, options).plan;
    EXPECT_TRUE(std::ranges::any_of(plan.nodes, [&](const PlannedNode& node) {
        return registry.owner(*node.kernel).manifest.name == "cpu_avx512";
    }));
    try {
        const Engine engine(gguf::GgufFile::open(path), registry, rig, options);
        ADD_FAILURE() << "it was loaded";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        EXPECT_THAT(error.what(), testing::HasSubstr("the processor of this one cannot run kernels of the plugin"));
    }
}

}  // namespace
}  // namespace tessera
