// Plans for processors that are not here: which plugins are asked, and what is said of those that are not.
#include "tests/apps/process.hpp"
#include "tests/temporary_folder.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

constexpr const char* kAvx512 = "'avx2', 'fma', 'f16c', 'avx512f', 'avx512bw', 'avx512_vnni'";
constexpr const char* kAvx2 = "'avx2', 'fma', 'f16c'";

class Rigs : public testing::Test {
  protected:
    std::string rig(const std::string& flags) {
        return folder_.write("rig.toml",
                             "[cpu]\nname = 'a processor'\nflags = [" + flags + "]\nthreads = 8\nmemory = '64GiB'\n");
    }
    static std::set<std::string> texts(const boost::json::value& list, const char* key) {
        std::set<std::string> all;
        for (const auto& entry : list.as_array()) all.emplace(entry.at(key).as_string());
        return all;
    }
    static boost::json::value plan(const Outcome& outcome) {
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        return boost::json::parse(outcome.out);
    }

  private:
    TemporaryFolder folder_;
};

TEST_F(Rigs, PlansForAvx512NameItsKernelsAndLayouts) {
    const Outcome outcome = tessera({"plan", "--json", "--rig", rig(kAvx512)});
    const auto found = plan(outcome);
    // Which of two kernels is faster for other ops is for their estimates to say.
    const auto kernels = texts(found.at("nodes"), "kernel");
    EXPECT_THAT(kernels, IsSupersetOf({"moe_ffn.avx512", "matmul.avx512", "matmul_group.avx512"}));
    EXPECT_THAT(kernels, Not(Contains(StartsWith("reference"))));
    EXPECT_THAT(texts(found.at("storages"), "layout"), Contains("q8_0_x8"));
    EXPECT_EQ(outcome.err, "");
}

TEST_F(Rigs, PlansForAvx2SayWhatTheProcessorLacks) {
    const Outcome outcome = tessera({"plan", "--json", "--rig", rig(kAvx2)});
    EXPECT_THAT(texts(plan(outcome).at("nodes"), "plugin"), ElementsAre("cpu_avx2"));
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("--rig: the plugin cpu_avx512 is not used: the processor (a processor) "
                                             "lacks avx512f, avx512bw, avx512dq, avx512vl"),
                                   Not(HasSubstr("cpu_avx2"))));
}

TEST_F(Rigs, PlansForOldProcessorsUseTheReference) {
    const Outcome outcome = tessera({"plan", "--json", "--rig", rig("'sse2'")});
    EXPECT_THAT(texts(plan(outcome).at("nodes"), "plugin"), ElementsAre("reference"));
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("the plugin cpu_avx2 is not used"), HasSubstr("the plugin cpu_avx512")));
}

TEST_F(Rigs, ListsThePluginsOfSuchAMachine) {
    for (const bool why : {false, true}) {
        const auto list = [&](const std::string& flags) {
            std::vector<std::string> words = {"plugins", "--rig", rig(flags)};
            if (why) words.emplace_back("--why");
            const Outcome outcome = tessera(words);
            EXPECT_EQ(outcome.code, 0) << outcome.err;
            return outcome.out;
        };
        EXPECT_THAT(list(kAvx512), AllOf(HasSubstr("cpu_avx512 0.1.0: chosen"), HasSubstr("cpu_avx2 0.1.0: chosen")));
        EXPECT_THAT(list(kAvx2), AllOf(HasSubstr("cpu_avx512 0.1.0: not used"), HasSubstr("cpu_avx2 0.1.0: chosen"),
                                       HasSubstr("lacks"), HasSubstr("avx512bw")));
        EXPECT_THAT(list("'sse2'"), AllOf(HasSubstr("cpu_avx2 0.1.0: not used"), HasSubstr("reference 0.1.0: chosen")));
    }
    const Outcome bad = tessera({"plugins", "--rig", "/no/such/file"});
    EXPECT_EQ(bad.code, 1);
    EXPECT_THAT(bad.err, HasSubstr("/no/such/file"));
}

// Its kernels are run only where they can be.
TEST_F(Rigs, PluginTestLooksAtTheTableAlone) {
    const Outcome outcome = tessera(
        {"plugin-test", TSR_PLUGIN_DIR "/tessera_cpu_avx512.toml", "--rig", rig(kAvx512), "--kernel", "add", "-v"});
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    const bool here = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    EXPECT_THAT(outcome.out,
                here ? HasSubstr("passed cpu_avx512 kernel add.avx512") : HasSubstr("only the table was checked"));
}

}  // namespace
}  // namespace tessera::test
