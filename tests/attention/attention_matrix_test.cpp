// Every variant of multi-head latent attention, with flash attention and in tiles, over every type of cache, on the
// reference and on the plugins for x86: attention of a DeepSeek layer against first principles, and that what ran is
// what was asked for. The whole matrix, up to 3,000 tokens and 128 heads throughout, is attention_matrix's
// (bench/results/accuracy.md).
#include "attention_layer.hpp"
#include "core/graph/types.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace tessera::test {
namespace {

constexpr tsr_type kCaches[] = {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0};
constexpr const char* kVariants[] = {"0", "1", "2", "3"};
// Little enough that scores and expanded keys of 128 heads do not fit at once.
constexpr uint64_t kTilesCap = 4 << 20;

// A machine whose best plugin is `name`.
class Machine {
  public:
    explicit Machine(const std::string& name)
        : hardware_(Hardware::detect()),
          registry_(Registry::load(plugins_up_to(name), hardware_)),
          team_(threads()),
          backend_{name, &registry_, &hardware_, &team_} {}

    uint32_t threads() const { return std::max(1u, hardware_.cpu().threads); }
    const AttentionBackend& backend() const { return backend_; }

  private:
    Hardware hardware_;
    Registry registry_;
    Team team_;
    AttentionBackend backend_;
};

AttentionCase make_case(const char* variant, bool flash, tsr_type cache) {
    AttentionCase asked{variant, flash, cache};
    if (!flash) asked.scratch_bytes = kTilesCap;
    return asked;
}

std::string describe(const AttentionCase& asked, size_t sequences) {
    return std::string("-mla ") + asked.variant + (asked.flash ? " flash " : " tiles ") +
           std::string(type_info(asked.cache).name) + ", " + std::to_string(sequences) + " sequence(s)";
}

void expect_right(AttentionData& data, size_t sequences, const AttentionCase& asked, const Machine& machine) {
    SCOPED_TRACE(describe(asked, sequences));
    const AttentionResult result = run_attention(data, sequences, asked, machine.backend());
    EXPECT_LE(result.error, attention_limit(asked.cache));
    if (asked.cache != TSR_TYPE_F32) {
        EXPECT_GT(result.error, 5e-5) << "the cache is not of the type that was asked for";
    }
    if (data.weights() == TSR_TYPE_F32 && asked.cache == TSR_TYPE_F32 && machine.backend().name == "reference") {
        EXPECT_LE(result.error, 1e-6) << "the reference is not what others are held against";
    }
    EXPECT_EQ(result.lowering, lowering_of(asked));
    const bool two_branches = result.lowering == "2" || result.lowering == "3";
    EXPECT_EQ(result.nodes.size(), two_branches ? 2u : 1u);
    for (const AttentionNode& node : result.nodes) {
        EXPECT_EQ(node.op, op_of(asked, node)) << node.name;
        EXPECT_EQ(node.plugin, machine.backend().name) << node.name;
        EXPECT_LE(node.workspace_bytes, asked.scratch_bytes) << node.name;
    }
}

// Of every variant with every kind: all caches and numbers of sequences, all caches, or one cache. What is not all goes
// round.
enum class Extent { kAll, kEachCache, kOnce };

struct Parameters {
    const char* backend;
    int64_t heads;
    int32_t tokens;
    Extent extent;
};

class AttentionMatrix : public testing::TestWithParam<Parameters> {};

TEST_P(AttentionMatrix, IsWithinItsLimits) {
    const Parameters& p = GetParam();
    if (!runs_here(p.backend)) GTEST_SKIP() << "this processor cannot run " << p.backend;
    const Machine machine(p.backend);
    AttentionData data(p.heads, attention_lengths(p.tokens), TSR_TYPE_F32, machine.threads());
    size_t number = 0;
    for (const bool flash : {true, false}) {
        for (const char* variant : kVariants) {
            for (const size_t sequences : {1u, 3u}) {
                for (const tsr_type& cache : kCaches) {
                    const auto index = static_cast<size_t>(&cache - kCaches);
                    const bool turn = sequences == ((number / 4 + index) % 2 ? 1u : 3u);
                    if (p.extent != Extent::kAll && !turn) continue;
                    if (p.extent == Extent::kOnce && index != number % 4) continue;
                    expect_right(data, sequences, make_case(variant, flash, cache), machine);
                }
            }
            ++number;
        }
    }
}

constexpr Parameters kParameters[] = {
    {"reference", 1, 1, Extent::kAll},     {"cpu_avx2", 1, 1, Extent::kAll},
    {"reference", 1, 7, Extent::kAll},     {"cpu_avx2", 1, 7, Extent::kAll},
    {"reference", 1, 64, Extent::kAll},    {"cpu_avx2", 1, 64, Extent::kAll},
    {"reference", 1, 513, Extent::kOnce},  {"cpu_avx2", 1, 513, Extent::kAll},
    {"reference", 128, 1, Extent::kOnce},  {"cpu_avx2", 128, 1, Extent::kOnce},
    {"reference", 128, 7, Extent::kOnce},  {"cpu_avx2", 128, 7, Extent::kEachCache},
    {"reference", 128, 64, Extent::kOnce}, {"cpu_avx2", 128, 64, Extent::kOnce},
    {"cpu_avx2", 128, 513, Extent::kOnce}, {"cpu_avx512", 1, 7, Extent::kAll},
    {"cpu_avx512", 1, 513, Extent::kAll},  {"cpu_avx512", 128, 7, Extent::kEachCache},
};

INSTANTIATE_TEST_SUITE_P(Layer, AttentionMatrix, testing::ValuesIn(kParameters), [](const auto& instance) {
    const Parameters& p = instance.param;
    return std::string(p.backend) + "_" + std::to_string(p.heads) + "_heads_" + std::to_string(p.tokens) + "_tokens";
});

TEST(AttentionOfManyHeads, ReferenceOver513Tokens) {
    const Machine machine("reference");
    AttentionData data(128, {513}, TSR_TYPE_F32, machine.threads());
    expect_right(data, 1, make_case("3", true, TSR_TYPE_F16), machine);
}

TEST(AttentionOfALongPrompt, ThreeThousandTokens) {
    const Machine machine("cpu_avx2");
    AttentionData data(1, attention_lengths(3000), TSR_TYPE_F32, machine.threads());
    expect_right(data, 3, make_case("3", true, TSR_TYPE_Q8_0), machine);
    expect_right(data, 1, make_case("2", false, TSR_TYPE_F16), machine);
}

// Caches of few bits: a rounding error, far from that of a wrong result, and the same in every variant.
class AttentionOfFewBits : public testing::TestWithParam<tsr_type> {};

TEST_P(AttentionOfFewBits, CostsWhatItMay) {
    for (const char* name : {"reference", "cpu_avx2", "cpu_avx512"}) {
        if (!runs_here(name)) continue;
        const Machine machine(name);
        AttentionData data(3, attention_lengths(64), TSR_TYPE_F32, machine.threads());
        for (const char* variant : kVariants) {
            for (const bool flash : {true, false}) {
                const AttentionCase asked = make_case(variant, flash, GetParam());
                SCOPED_TRACE(std::string(name) + ", " + describe(asked, 3));
                const AttentionResult result = run_attention(data, 3, asked, machine.backend());
                EXPECT_LE(result.error, attention_limit(GetParam()));
                EXPECT_GT(result.error, attention_limit(GetParam()) / 4);
                EXPECT_EQ(result.lowering, lowering_of(asked));
                for (const AttentionNode& node : result.nodes) EXPECT_EQ(node.plugin, name) << node.name;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Caches, AttentionOfFewBits,
                         testing::Values(TSR_TYPE_Q8_KV, TSR_TYPE_Q6_0, TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q4_0,
                                         TSR_TYPE_Q4_1, TSR_TYPE_IQ4_NL),
                         [](const auto& instance) { return std::string(type_info(instance.param).name); });

// In the basis of a Hadamard matrix: nothing changes in f32, in any variant; and with a few elements much
// stronger than the rest, four bits cost a fraction of what they do without.
TEST(AttentionInHadamardsBasis, IsTheSameAndKeepsOutliers) {
    for (const char* name : {"reference", "cpu_avx2", "cpu_avx512"}) {
        if (!runs_here(name)) continue;
        const Machine machine(name);
        AttentionData data(3, attention_lengths(64), TSR_TYPE_F32, machine.threads(), 8);
        for (const char* variant : kVariants) {
            for (const bool flash : {true, false}) {
                AttentionCase asked = make_case(variant, flash, TSR_TYPE_F32);
                SCOPED_TRACE(std::string(name) + ", " + describe(asked, 3));
                asked.hadamard = true;
                EXPECT_LE(run_attention(data, 3, asked, machine.backend()).error, attention_limit(TSR_TYPE_F32));
                if (*variant == '0') continue;  // the cached keys and values of heads have no such elements
                asked.cache = TSR_TYPE_Q4_0;
                const double with = run_attention(data, 3, asked, machine.backend()).error;
                asked.hadamard = false;
                const double without = run_attention(data, 3, asked, machine.backend()).error;
                EXPECT_LE(with, attention_limit(TSR_TYPE_Q4_0));
                EXPECT_LT(with, 0.6 * without);
            }
        }
    }
}

// Whatever wkv_b is, with both the key part read along its columns and a copy that was transposed at load: those are
// q8_0.
class AttentionWeights : public testing::TestWithParam<tsr_type> {};

TEST_P(AttentionWeights, OfAnyFormat) {
    for (const char* name : {"reference", "cpu_avx2", "cpu_avx512"}) {
        if (!runs_here(name)) continue;
        const Machine machine(name);
        AttentionData data(3, attention_lengths(64), GetParam(), machine.threads());
        for (const char* variant : kVariants) {
            SCOPED_TRACE(std::string(name) + " -mla " + variant);
            const AttentionResult result =
                run_attention(data, 3, make_case(variant, true, TSR_TYPE_F32), machine.backend());
            EXPECT_LE(result.error, attention_limit(TSR_TYPE_Q8_0));
            EXPECT_EQ(result.lowering, variant);
            for (const AttentionNode& node : result.nodes) EXPECT_EQ(node.plugin, name) << node.name;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, AttentionWeights,
                         testing::Values(TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q4_0, TSR_TYPE_Q4_1,
                                         TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q2_K, TSR_TYPE_Q3_K, TSR_TYPE_Q4_K,
                                         TSR_TYPE_Q5_K, TSR_TYPE_Q6_K, TSR_TYPE_IQ4_NL, TSR_TYPE_IQ4_XS, TSR_TYPE_MXFP4,
                                         TSR_TYPE_IQ1_M, TSR_TYPE_IQ3_S, TSR_TYPE_IQ5_K, TSR_TYPE_IQ4_KS,
                                         TSR_TYPE_IQ2_KS),
                         [](const auto& instance) { return std::string(type_info(instance.param).name); });

}  // namespace
}  // namespace tessera::test
