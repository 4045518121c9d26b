// Every lowering, from every layout of weights, computed by the reference kernels over several steps, against attention
// from first principles.
#include "mla_layer.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace tessera::test {
namespace {

// Steps as a server makes them: prompts of two sequences (over two pages in all), then both in generation beside a new
// prompt, then generation alone. Prompt rows come first.
double worst_error(MlaLayer& layer, const tsr_lowering& lowering, tsr_type cache, uint32_t workers = 1) {
    RecordingBuilder builder(layer.inputs(), layer.caches(lowering, cache));
    sdk::check(lowering.build(&lowering, &layer.node()->node, &layer.options, &builder.table));
    builder.run(TSR_STAGE_INIT, Ranges::of(0), workers);
    using Slices = std::vector<MlaLayer::Slice>;
    const std::pair<Slices, int32_t> steps[] = {{{{0, 0, 24}}, 24},
                                                {{{0, 24, 24}}, 24},
                                                {{{0, 48, 20}, {1, 0, 3}}, 23},
                                                {{{2, 0, 9}, {0, 68, 1}, {1, 3, 1}}, 9},
                                                {{{2, 9, 1}, {0, 69, 2}}, 0}};
    double worst = 0;
    for (const auto& [slices, prompt] : steps) {
        const int32_t rows = layer.fill(slices);
        const std::vector<double> wanted = layer.expected(rows);
        Tensor& out = builder.values[builder.result];
        std::fill(out.bytes->begin(), out.bytes->end(), static_cast<unsigned char>(0xFF));
        builder.run(TSR_STAGE_RUN, Ranges::of(rows, prompt), workers);
        std::vector<double> got(out.floats(), out.floats() + rows * layer.s.heads * layer.s.v);
        worst = std::max(worst, relative_error(got, wanted));
    }
    return worst;
}

using Parameters = std::tuple<const char*, int, Files, bool>;
class MlaNumbers : public testing::TestWithParam<Parameters> {};

TEST_P(MlaNumbers, AgreesWithFirstPrinciples) {
    const auto& [name, rank, files, derive] = GetParam();
    const tsr_lowering* lowering = mla_lowering(name, rank);
    ASSERT_NE(lowering, nullptr);
    const bool mixed = *name == '2' || *name == '3';
    for (const bool q_in_heads : {false, true}) {
        MlaLayer layer({}, files, TSR_TYPE_F32, q_in_heads);
        layer.options.derive_weights = derive;
        if (files == Files::kSplit && mixed && !derive) {
            EXPECT_THROW(worst_error(layer, *lowering, TSR_TYPE_F32), sdk::Failure);
            continue;
        }
        EXPECT_LT(worst_error(layer, *lowering, TSR_TYPE_F32, 3), 3e-6);
    }
}

std::string label(const testing::TestParamInfo<Parameters>& parameters) {
    static const char* const kFiles[] = {"whole", "split", "both"};
    const auto& [name, rank, files, derive] = parameters.param;
    return std::string("mla") + name + (rank ? "_tiles_" : "_flash_") + kFiles[static_cast<int>(files)] +
           (derive ? "_derived" : "");
}

INSTANTIATE_TEST_SUITE_P(All, MlaNumbers,
                         testing::Combine(testing::Values("0", "1", "2", "3"), testing::Values(0, 1),
                                          testing::Values(Files::kWhole, Files::kSplit, Files::kBoth), testing::Bool()),
                         label);

TEST(MlaHadamard, ChangesNothingInF32) {
    for (const char* name : {"0", "1", "2", "3"}) {
        for (const int rank : {0, 1}) {
            for (const Files files : {Files::kWhole, Files::kSplit}) {
                MlaLayer layer({}, files, TSR_TYPE_F32, rank == 0);
                layer.options.derive_weights = 1;
                layer.options.hadamard_keys = layer.options.hadamard_values = 1;
                EXPECT_LT(worst_error(layer, *mla_lowering(name, rank), TSR_TYPE_F32, 2), 3e-6) << name << rank;
            }
        }
    }
}

// Views need whole rows only, so any format does; a derived copy is q8_0 or better.
TEST(MlaWeights, AnyFormatOfWkvB) {
    for (const tsr_type type :
         {TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q4_0, TSR_TYPE_Q5_1, TSR_TYPE_IQ4_NL}) {
        for (const char* name : {"0", "1", "3"}) {
            MlaLayer layer({}, Files::kWhole, type, false);
            EXPECT_LT(worst_error(layer, *mla_lowering(name, 0), TSR_TYPE_F32), 3e-6) << type << " " << name;
            layer.options.derive_weights = 1;
            EXPECT_LT(worst_error(layer, *mla_lowering(name, 0), TSR_TYPE_F32), 1e-2) << type << " " << name;
        }
    }
    for (const tsr_type type :
         {TSR_TYPE_Q2_K, TSR_TYPE_Q3_K, TSR_TYPE_Q4_K, TSR_TYPE_Q5_K, TSR_TYPE_Q6_K, TSR_TYPE_IQ4_XS}) {
        MlaLayer layer({2, 32, 16, 32, 256}, Files::kWhole, type, false);
        EXPECT_LT(worst_error(layer, *mla_lowering("3", 0), TSR_TYPE_F32), 3e-6) << type;
    }
}

TEST(MlaWeights, QuantisedSplitWeights) {
    MlaLayer layer({}, Files::kSplit, TSR_TYPE_Q4_0, false);
    layer.options.derive_weights = 0;
    EXPECT_LT(worst_error(layer, *mla_lowering("0", 0), TSR_TYPE_F32), 3e-6);
    EXPECT_LT(worst_error(layer, *mla_lowering("1", 0), TSR_TYPE_F32), 3e-6);
    layer.options.derive_weights = 1;
    EXPECT_LT(worst_error(layer, *mla_lowering("0", 0), TSR_TYPE_F32), 1e-2);
    EXPECT_LT(worst_error(layer, *mla_lowering("3", 0), TSR_TYPE_F32), 1e-2);
}

TEST(MlaCache, TypesCostWhatTheyMay) {
    for (const auto& [type, tolerance] :
         {std::pair{TSR_TYPE_F16, 3e-3}, {TSR_TYPE_BF16, 1e-2}, {TSR_TYPE_Q8_0, 1e-2}}) {
        for (const char* name : {"0", "1", "2", "3"}) {
            MlaLayer layer({4, 32, 32, 32, 64}, Files::kWhole, TSR_TYPE_F32, false);
            const double error = worst_error(layer, *mla_lowering(name, 0), type);
            EXPECT_LT(error, tolerance) << type << " " << name;
            EXPECT_GT(error, 1e-6) << "the cache was not what was asked for";
        }
    }
}

TEST(MlaSizesOfModels, OneHeadAndDeepSeeks) {
    for (const char* name : {"0", "1", "3"}) {
        MlaLayer one({1, 32, 16, 16, 32}, Files::kWhole, TSR_TYPE_F32, false);
        EXPECT_LT(worst_error(one, *mla_lowering(name, 0), TSR_TYPE_F32), 3e-6) << name;
        MlaLayer deepseek({2, 128, 64, 128, 512}, Files::kWhole, TSR_TYPE_F32, false);
        EXPECT_LT(worst_error(deepseek, *mla_lowering(name, 0), TSR_TYPE_F32), 3e-6) << name;
    }
}

TEST(MlaScratch, ACapChangesNothingButMemory) {
    for (const char* name : {"0", "1", "2"}) {
        MlaLayer layer({}, Files::kWhole, TSR_TYPE_F32, false);
        layer.options.flash_attention = 0;
        layer.options.scratch_bytes = 64 << 10;
        EXPECT_LT(worst_error(layer, *mla_lowering(name, 1), TSR_TYPE_F32), 3e-6) << name;
        layer.options.scratch_bytes = 1 << 10;
        EXPECT_THROW(worst_error(layer, *mla_lowering(name, 1), TSR_TYPE_F32), sdk::Failure) << name;
    }
}

}  // namespace
}  // namespace tessera::test
