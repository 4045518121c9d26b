// Plans for processors that are not here: which plugins are asked, and what is said of those that are not.
#include "tests/apps/cuda_plugins.hpp"
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
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

constexpr const char* kAvx512 = "'avx2', 'fma', 'f16c', 'avx512f', 'avx512bw', 'avx512_vnni'";
constexpr const char* kAvx2 = "'avx2', 'fma', 'f16c'";

class Rigs : public testing::Test {
  protected:
    std::string rig(const std::string& flags, int cards = 0, const std::string& capability = "'8.6'",
                    const std::string& more = "") {
        std::string text = "[cpu]\nname = 'a processor'\nflags = [" + flags + "]\nthreads = 8\nmemory = '64GiB'\n";
        if (cards > 0) {
            text += "[[gpu]]\nname = 'a card'\nmemory = '8GiB'\ncompute_capability = " + capability +
                    "\ncount = " + std::to_string(cards) + "\n";
        }
        return folder_.write("rig.toml", text + more);
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

// By the flags of the rig, whatever this machine has; and by estimate more of them make a prompt faster.
TEST_F(Rigs, PlansSayWhichLevelOfAvx512Computes) {
    const std::string least = "'avx2', 'fma', 'f16c', 'avx512f', 'avx512bw'";
    double slower = 0;
    for (const auto& [flags, level] :
         {std::pair(least, "AVX-512"), std::pair(least + ", 'avx512_vnni'", "AVX-512 with VNNI"),
          std::pair(least + ", 'avx512_vnni', 'amx_tile', 'amx_int8'", "AVX-512 with VNNI and AMX")}) {
        const std::string machine = rig(flags);
        const auto found = plan(tessera({"plan", "--json", "--rig", machine}));
        size_t named = 0;
        for (const auto& node : found.at("nodes").as_array()) {
            if (!node.at("kernel").as_string().ends_with("matmul.avx512")) continue;
            EXPECT_TRUE(node.at("variant").as_string().ends_with(std::string(", ") + level)) << node.at("variant");
            ++named;
        }
        EXPECT_GT(named, 0u);
        const double prompt = found.at("speed").at(0).at("prompt").to_number<double>();
        EXPECT_GT(prompt, slower) << level;
        slower = prompt;
        EXPECT_THAT(tessera({"plan", "--why", "--rig", machine}).out,
                    AllOf(HasSubstr("  as q8_0, int8 activations, " + std::string(level) + "\n")));
    }
}

TEST_F(Rigs, PlansSayWhichLevelOfAvx2Computes) {
    for (const auto& [flags, level] :
         {std::pair(std::string(kAvx2), "AVX2"), std::pair(kAvx2 + std::string(", 'avx_vnni'"), "AVX2 with VNNI")}) {
        EXPECT_THAT(tessera({"plan", "--why", "--rig", rig(flags)}).out,
                    HasSubstr("  as q8_0, int8 activations, " + std::string(level) + "\n"));
    }
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
    const Outcome bad = tessera({"plugins", "--rig", "/proc/no/such/file"});
    EXPECT_EQ(bad.code, 1);
    EXPECT_THAT(bad.err, HasSubstr("/proc/no/such/file"));
}

// GPU 1 is too old for any plugin; -ts, -ot, -dev and -mg count it all the same.
TEST_F(Rigs, NumberGpusThatCannotBeUsedToo) {
    NEEDS_CUDA_PLUGINS();
    const auto gpu = [](const std::string& name, const std::string& capability) {
        return "[[gpu]]\nname = '" + name + "'\nmemory = '4GiB'\ncompute_capability = '" + capability + "'\n";
    };
    const std::string machine = rig(kAvx2, 0, "", gpu("a", "8.6") + gpu("old", "5.2") + gpu("b", "8.9"));
    const auto with = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"plan", "--json", "--rig", machine, "-ngl", "99"});
        return tessera(words);
    };
    const auto bytes = [&](const Outcome& outcome, std::string_view id) {
        const boost::json::value made = plan(outcome);
        for (const auto& device : made.at("devices").as_array()) {
            if (device.at("id").as_string() == id) return device.at("weights").to_number<double>();
        }
        return 0.0;
    };
    const Outcome split = with({"-ts", "1,0,3"});
    ASSERT_EQ(split.code, 0) << split.err;
    EXPECT_GT(bytes(split, "CUDA2"), 1.5 * bytes(split, "CUDA0"));
    EXPECT_THAT(with({"-ts", "1,1,3"}).err,
                AllOf(HasSubstr("-ts: a share is for CUDA1 (old), which cannot be used: "), HasSubstr("give it 0")));
    EXPECT_THAT(with({"-ot", "ffn=CUDA1"}).err, HasSubstr("names a device that cannot be used: CUDA1 (old): "));
    EXPECT_THAT(with({"-dev", "CUDA0,CUDA1"}).err, HasSubstr("-dev: CUDA1 (old) cannot be used: "));
    EXPECT_THAT(with({"-sm", "none", "-mg", "1"}).err, HasSubstr("-mg: CUDA1 (old) cannot be used: "));
    EXPECT_EQ(with({"-dev", "CUDA0,CUDA2", "-ts", "1,3"}).code, 0);
}

TEST_F(Rigs, UseTheGpusThatAreChosen) {
    NEEDS_CUDA_PLUGINS();
    const std::string machine = rig(kAvx2, 3);
    const auto with = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"plan", "--json", "--rig", machine, "-ngl", "99"});
        return tessera(words);
    };
    const auto ids = [&](const std::vector<std::string>& words) {
        return texts(plan(with(words)).at("devices"), "id");
    };
    EXPECT_THAT(ids({}), ElementsAre("CPU", "CUDA0", "CUDA1", "CUDA2"));
    EXPECT_THAT(ids({"-dev", "CUDA2,CUDA1"}), ElementsAre("CPU", "CUDA1", "CUDA2"));
    EXPECT_THAT(ids({"-dev", "none"}), ElementsAre("CPU"));
    EXPECT_THAT(ids({"-sm", "none"}), ElementsAre("CPU", "CUDA0"));
    EXPECT_THAT(ids({"-sm", "none", "-mg", "2"}), ElementsAre("CPU", "CUDA2"));
    EXPECT_THAT(ids({"-dev", "CUDA2,CUDA1", "-sm", "none"}), ElementsAre("CPU", "CUDA2"));

    EXPECT_THAT(with({"-dev", "CUDA1,CUDA7"}).err, HasSubstr("no GPU 'CUDA7' here; there are: CUDA0, CUDA1, CUDA2"));
    EXPECT_THAT(with({"-dev", "CPU"}).err, HasSubstr("no GPU 'CPU' here"));
    EXPECT_THAT(with({"-sm", "none", "-mg", "3"}).err,
                HasSubstr("-mg 3: there are 3 GPUs here, numbered from 0: CUDA0, CUDA1, CUDA2"));
    EXPECT_THAT(with({"-ts", "1,1,1,1"}).err,
                HasSubstr("-ts: there are 4 shares, but there are 3 GPUs: CUDA0, CUDA1, CUDA2"));
    EXPECT_THAT(with({"-fitt", "1,1,1,1"}).err,
                HasSubstr("-fitt: there are 4 margins, but there are 3 GPUs: CUDA0, CUDA1, CUDA2"));
    EXPECT_THAT(with({"-ot", "exps=CUDA7"}).err, HasSubstr("there are: CPU, CUDA0, CUDA1, CUDA2"));
    const Outcome idle = with({"-mg", "1"});
    EXPECT_EQ(idle.code, 0);
    EXPECT_THAT(idle.err, HasSubstr("-mg 1: has an effect with -sm none alone"));
}

// Letter case of a device does not matter; a device that is not there is named together with those that are.
TEST_F(Rigs, DevicesAreFoundHoweverTheirIdsAreWritten) {
    NEEDS_CUDA_PLUGINS();
    const std::string machine = rig(kAvx2, 2);
    const auto with = [&](const std::string& flag, const std::string& value) {
        return tessera({"plan", "--json", "--rig", machine, "-ngl", "99", flag, value});
    };
    const auto holders = [&](const std::string& rule) {
        std::set<std::string> ids;
        const boost::json::value made = plan(with("-ot", rule));
        for (const auto& device : made.at("devices").as_array()) {
            if (device.at("weights").to_number<double>() > 0) ids.emplace(device.at("id").as_string());
        }
        return ids;
    };
    for (const char* rule : {"exps=CPU", "exps=cpu", "exps=Cpu"})
        EXPECT_THAT(holders(rule), ElementsAre("CPU", "CUDA0", "CUDA1")) << rule;
    for (const char* rule : {".=CUDA1", ".=cuda1", "attn=cuda1,.=Cuda1"})
        EXPECT_THAT(holders(rule), ElementsAre("CUDA1")) << rule;
    for (const char* id : {"SIM0", "sim0", "CUDA2", "GPU", "CUDA", "CUDA_Host", "CPU_REPACK"}) {
        const Outcome outcome = with("-ot", std::string("exps=") + id);
        EXPECT_EQ(outcome.code, 2) << id;
        EXPECT_THAT(outcome.err, HasSubstr(std::string("-ot exps=") + id +
                                           ": names a device that is not here; there are: CPU, CUDA0, CUDA1"));
    }
    EXPECT_THAT(texts(plan(with("-dev", "cuda1")).at("devices"), "id"), ElementsAre("CPU", "CUDA1"));
    for (const char* id : {"SIM0", "cpu", "CUDA2"})
        EXPECT_THAT(with("-dev", id).err, HasSubstr(std::string("-dev: no GPU '") + id + "' here; there are: CUDA0"));
    for (const char* shares : {"0,0", "-1,2", "a", ","}) EXPECT_EQ(with("-ts", shares).code, 2) << shares;
    EXPECT_THAT(with("-ts", "1,1,0").err, HasSubstr("-ts: there are 3 shares, but there are 2 GPUs"));
    EXPECT_EQ(with("-ts", "0,1").code, 0);
    EXPECT_EQ(with("-mg", "-1").code, 2);
}

TEST_F(Rigs, LeaveTheMemoryFreeThatIsAskedFor) {
    NEEDS_CUDA_PLUGINS();
    const std::string machine = rig(kAvx2, 3);
    const auto available = [&](const std::vector<std::string>& margins) {
        std::vector<std::string> words = {"plan", "--json", "--rig", machine};
        words.insert(words.end(), margins.begin(), margins.end());
        std::vector<int64_t> bytes;
        const auto found = plan(tessera(words));
        for (const auto& device : found.at("devices").as_array())
            bytes.push_back(device.at("usable_bytes").to_number<int64_t>());
        return bytes;
    };
    const std::vector<int64_t> all = available({}), less = available({"-fitt", "64,128"});
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(less[0], all[0]);
    // Of what is left the planner keeps a small share back.
    const double mib[] = {64, 128, 128};
    for (size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(static_cast<double>(all[i + 1] - less[i + 1]) / (1 << 20), mib[i], 0.1 * mib[i]);
}

TEST_F(Rigs, KeepCachesInHostMemoryIfAsked) {
    NEEDS_CUDA_PLUGINS();
    for (const char* flag : {"-nkvo", "-no-kv-offload", "--no-kv-offload"}) {
        SCOPED_TRACE(flag);
        const auto found = plan(tessera({"plan", "--json", "--rig", rig(kAvx2, 1), "-ngl", "99", flag}));
        for (const auto& device : found.at("devices").as_array())
            EXPECT_EQ(device.at("cache").to_number<int64_t>() > 0, device.at("id").as_string() == "CPU");
        for (const auto& node : found.at("nodes").as_array()) {
            const bool is_attention = node.at("op").as_string().find("attention") != std::string::npos;
            EXPECT_TRUE(!is_attention || node.at("device").as_string() == "CPU");
        }
    }
}

// Layers whose routed experts are on the CPU. The bundled model has experts in its layers 1 and 2.
TEST_F(Rigs, KeepExpertsOfTheFirstLayersOnTheCpuIfAsked) {
    NEEDS_CUDA_PLUGINS();
    const std::string machine = rig(kAvx2, 1);
    const auto layers = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"plan", "--json", "--rig", machine, "-ngl", "99"});
        const auto found = plan(tessera(words));
        std::set<int> kept, computed;
        for (const auto& storage : found.at("storages").as_array()) {
            if (storage.at("name").as_string().find("_exps") != std::string::npos &&
                storage.at("device").as_string() == "CPU")
                kept.insert(storage.at("layer").to_number<int>());
        }
        for (const auto& node : found.at("nodes").as_array()) {
            if (node.at("op").as_string() == "moe_ffn" && node.at("device").as_string() == "CPU")
                computed.insert(node.at("layer").to_number<int>());
        }
        EXPECT_EQ(kept, computed);
        return kept;
    };
    EXPECT_EQ(layers({}), std::set<int>{});
    EXPECT_EQ(layers({"--n-cpu-moe", "1"}), std::set<int>{});
    EXPECT_EQ(layers({"--n-cpu-moe", "2"}), std::set<int>{1});
    EXPECT_EQ(layers({"-ncmoe", "3"}), (std::set<int>{1, 2}));
    EXPECT_EQ(layers({"--cpu-moe"}), (std::set<int>{1, 2}));
}

// Every card that no plugin uses is named, and why.
TEST_F(Rigs, NameTheCardsThatNoPluginUses) {
    const Outcome outcome = tessera({"plan", "--rig", rig(kAvx2, 2, "'5.2'")});
    EXPECT_THAT(outcome.err, ContainsRegex("CUDA0, CUDA1 \\(a card\\) without a plugin, not used: [a-z]"));
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
