// Logits against those that public implementations computed (tests/goldens/README.md).
#include "tests/goldens/golden.hpp"
#include "tests/goldens/golden_models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::Golden;
using test::has_latent_attention;
using test::logits_of;

struct Variant {
    const char* name;
    const char* plugin;  // that kernels are of
    const char* mla;     // lowering of mla_attention; "" for models without it
    bool flash;
    double tolerance;  // of the largest logit
};

struct Case {
    fs::path golden;
    Variant variant;
};

std::string case_name(const testing::TestParamInfo<Case>& info) {
    std::string name = info.param.golden.stem().stem().string() + "_" + info.param.variant.name;
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c); }, '_');
    return name;
}

class Goldens : public testing::TestWithParam<Case> {};

TEST_P(Goldens, LogitsAgree) {
    const Variant& variant = GetParam().variant;
    if (!test::runs_here(variant.plugin)) GTEST_SKIP() << "this processor cannot run " << variant.plugin;
    const Golden golden(GetParam().golden);
    EngineOptions options;
    options.context = static_cast<uint32_t>(golden.tokens.size());
    options.rows = 97;
    options.output_rows = 97;
    options.expand_from = 12;
    options.cache_type_k = options.cache_type_v = TSR_TYPE_F32;
    options.flash_attention = variant.flash;
    if (*variant.mla) options.lowerings["mla_attention"] = variant.mla;
    const Config config = test::plugins_up_to(variant.plugin);
    test::LoadedModel model(golden.model, options, config);
    for (const LoweringChoice& choice : model.engine->plan().lowerings) {
        if (choice.op != "mla_attention") continue;
        EXPECT_EQ(choice.lowering, variant.mla) << choice.node;
    }
    for (const PlannedNode& node : model.engine->plan().nodes) {
        const std::string& plugin = model.registry->owner(*node.kernel).manifest.name;
        EXPECT_EQ(plugin, variant.plugin) << model.engine->plan().graph.nodes()[node.node].name << " on " << plugin;
    }

    const auto logits = logits_of(*model.engine, golden.tokens);
    test::expect_recorded(golden, logits, variant.tolerance);
}

std::vector<Case> cases() {
    constexpr double kReference = 1e-3, kX86 = 1e-2;
    std::vector<Variant> latent = {{"reference_mla2_tiles", "reference", "2", false, kReference}}, plain;
    constexpr const char* kReferences[] = {"reference_mla0", "reference_mla1", "reference_mla2", "reference_mla3"};
    constexpr const char* kAvx2[] = {"avx2_mla0", "avx2_mla1", "avx2_mla2", "avx2_mla3"};
    constexpr const char* kAvx512[] = {"avx512_mla0", "avx512_mla1", "avx512_mla2", "avx512_mla3"};
    constexpr const char* kLowerings[] = {"0", "1", "2", "3"};
    for (size_t i = 0; i < 4; ++i) {
        latent.push_back({kReferences[i], "reference", kLowerings[i], true, kReference});
        latent.push_back({kAvx2[i], "cpu_avx2", kLowerings[i], true, kX86});
        latent.push_back({kAvx512[i], "cpu_avx512", kLowerings[i], true, kX86});
    }
    latent.push_back({"avx2_mla1_tiles", "cpu_avx2", "1", false, kX86});
    plain = {{"reference", "reference", "", true, kReference},
             {"reference_tiles", "reference", "", false, kReference},
             {"avx2", "cpu_avx2", "", true, kX86},
             {"avx512", "cpu_avx512", "", true, kX86}};
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(test::source_dir() / "tests/goldens")) {
        const std::string name = entry.path().string();
        if (name.ends_with(".golden.gguf") && !name.ends_with(".prediction.golden.gguf")) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    std::vector<Case> all;
    for (const fs::path& file : files) {
        const std::string name = file.filename().string();
        const bool has_latent = has_latent_attention(Golden(file).model);
        const bool is_long = name.find(".long.") != std::string::npos;
        for (const Variant& variant : has_latent ? latent : plain) {
            // 4,224 tokens on the reference take long: one variant of each family.
            if (is_long && variant.plugin == std::string_view("reference") && std::string_view(variant.mla) != "3")
                continue;
            all.push_back({file, variant});
        }
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Goldens, testing::ValuesIn(cases()), case_name);

// Two sequences of the same tokens in the same steps, one of them later: each has the logits that it has alone, in
// prompts, in generation, and in a prompt beside a generation.
class SeveralSequences : public testing::TestWithParam<std::string> {};

TEST_P(SeveralSequences, AreEachAsIfAlone) {
    const Golden golden(fs::path(TSR_SOURCE_DIR "/tests/goldens") / (GetParam() + ".short.golden.gguf"));
    const size_t count = golden.tokens.size(), vocabulary = golden.logits.size() / golden.positions.size();
    EngineOptions options;
    options.context = static_cast<uint32_t>(2 * count);
    options.sequences = 2;
    options.rows = options.output_rows = 64;
    options.cache_type_k = options.cache_type_v = TSR_TYPE_F32;
    test::LoadedModel model(golden.model, options, test::plugins_up_to("reference"));
    Engine& engine = *model.engine;
    const SequenceId ids[] = {engine.cache().create(), engine.cache().create()};
    constexpr size_t kSteps[2][4] = {{29, 1, 1, 7}, {0, 31, 1, 1}};
    std::vector<std::vector<float>> logits[2];
    for (size_t step = 0; logits[0].size() < count || logits[1].size() < count; ++step) {
        std::vector<BatchEntry> entries;
        std::vector<size_t> of;
        for (size_t s = 0; s < 2; ++s) {
            const size_t at = logits[s].size(), rows = std::min(kSteps[s][step % 4], count - at);
            if (rows == 0) continue;
            entries.push_back({ids[s], std::span(golden.tokens).subspan(at, rows), true, true});
            of.insert(of.end(), rows, s);
        }
        if (entries.empty()) continue;
        const auto rows = engine.step(entries);
        ASSERT_EQ(rows.size(), of.size());
        for (size_t i = 0; i < of.size(); ++i) logits[of[i]].emplace_back(rows[i].begin(), rows[i].end());
    }
    for (const auto& one : logits) {
        for (size_t i = 0; i < golden.positions.size(); ++i) {
            const auto position = static_cast<size_t>(golden.positions[i]);
            for (size_t k = 0; k < vocabulary; ++k)
                ASSERT_NEAR(one[position][k], golden.logits[i * vocabulary + k], 1e-3 * golden.largest)
                    << "position " << position << ", token " << k;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models, SeveralSequences, testing::ValuesIn(test::golden_models()), [](const auto& instance) {
    std::string name = instance.param;
    std::ranges::replace(name, '-', '_');
    return name;
});

// Every bit of the logits, whatever the number of threads: prompts, generation, prompts beside a cache.
class ThreadCounts : public testing::TestWithParam<const char*> {};

TEST_P(ThreadCounts, OneToEightGiveTheSameBits) {
    for (const char* plugin : {"cpu_avx2", "cpu_avx512"}) {
        if (!test::runs_here(plugin)) continue;
        const Golden golden(fs::path(TSR_SOURCE_DIR "/tests/goldens") /
                            (std::string(GetParam()) + ".short.golden.gguf"));
        const bool latent = has_latent_attention(golden.model);
        for (const char* mla : {"0", "1", "2", "3"}) {
            if (!latent && *mla != '0') continue;
            std::vector<std::vector<float>> first;
            for (uint32_t threads = 1; threads <= 8; ++threads) {
                EngineOptions options;
                options.context = static_cast<uint32_t>(golden.tokens.size());
                options.rows = options.output_rows = 97;
                options.expand_from = 12;
                options.threads = threads;
                options.cache_type_k = options.cache_type_v = *mla == '1' ? TSR_TYPE_BF16 : TSR_TYPE_F16;
                options.hadamard_keys = *mla == '2';
                if (latent) options.lowerings["mla_attention"] = mla;
                test::LoadedModel model(golden.model, options, test::plugins_up_to(plugin));
                const auto logits = logits_of(*model.engine, golden.tokens);
                if (threads == 1) first = logits;
                EXPECT_EQ(logits, first) << plugin << ", -mla " << mla << ", " << threads << " threads";
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models, ThreadCounts,
                         testing::Values("v3-yarn", "v2-groups", "llama-gqa", "qwen3moe-plain", "qwen3-window"),
                         [](const auto& instance) {
                             std::string name = instance.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// Keys and values of heads in the basis of a Hadamard matrix: other roundings, the same logits.
TEST(GoldensInHadamardsBasis, GroupedQueriesAgree) {
    for (const char* name : {"llama-gqa", "qwen3moe-norm"}) {
        const Golden golden(fs::path(TSR_SOURCE_DIR "/tests/goldens") / (std::string(name) + ".short.golden.gguf"));
        std::vector<std::vector<float>> plain;
        for (const auto& [keys, values] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
            EngineOptions options;
            options.context = static_cast<uint32_t>(golden.tokens.size());
            options.rows = options.output_rows = 97;
            options.cache_type_k = options.cache_type_v = TSR_TYPE_F32;
            options.hadamard_keys = keys;
            options.hadamard_values = values;
            test::LoadedModel model(golden.model, options, test::plugins_up_to("reference"));
            const auto logits = logits_of(*model.engine, golden.tokens);
            if (!keys && !values) {
                plain = logits;
                continue;
            }
            EXPECT_NE(logits, plain) << name << ": the Hadamard matrix was not applied to the cache";
            double worst = 0;
            for (size_t row = 0; row < logits.size(); ++row) {
                for (size_t k = 0; k < logits[row].size(); ++k)
                    worst = std::max(worst, std::abs(double{logits[row][k]} - plain[row][k]));
            }
            EXPECT_LE(worst, 1e-4 * golden.largest) << name;
        }
    }
}

TEST(Goldens, AreThere) {
    EXPECT_GE(cases().size(), 60u);
}

}  // namespace
}  // namespace tessera
