// Attention over cached values of any kind: of negative scales, far larger than others, and such that are no numbers.
#include "attention_case.hpp"

#include <tessera/formats/half.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace tessera::tests {
namespace {

// No encoder writes blocks of a negative scale, but they are q8_0.
TEST(AttentionRun, NegativeScalesOfQ8_0AreScales) {
    const Setting setting{"", kPrefix, TSR_TYPE_Q8_0, 16, 1, 576, 512, 0, 0, {{300, 1}}};
    AttentionCase usual(setting), negative(setting);
    constexpr int kBlock = 34;  // an f16 scale and 32 codes
    const tsr_tensor& cache = negative.node.input(1).tensor;
    for (int64_t i = 0; i < cache.dims[1] * cache.dims[2]; i += 3) {
        auto* row = reinterpret_cast<uint8_t*>(negative.node.input(1).data()) + i * cache.strides[1];
        for (int64_t block = 0; block < cache.dims[0] / 32; ++block, row += kBlock) {
            row[1] ^= 0x80;
            for (int code = 2; code < kBlock; ++code) row[code] = static_cast<uint8_t>(-row[code]);
        }
    }
    EXPECT_LE(relative_error(negative.tested(2), usual.tested(2)), 1e-4);
    if (!multiplies_bytes()) return;
    ASSERT_TRUE(usual.pack() && negative.pack());
    EXPECT_EQ(negative.tested(2), usual.tested(2)) << "in pages of bytes";
}

// Of the first block of token 2: -128 has no opposite.
TEST(AttentionRun, TheLeastCodeUnderANegativeScaleIsTheLargestInPagesOfBytes) {
    if (!multiplies_bytes()) GTEST_SKIP() << "other processors have pages of this layout";
    const Setting setting{"", kPrefix, TSR_TYPE_Q8_0, 16, 1, 64, 32, 0, 0, {{4, 1}}};
    AttentionCase largest(setting), least(setting);
    for (AttentionCase* at : {&largest, &least}) {
        Operand& cache = at->node.input(1);
        for (int64_t page = 0; page < cache.tensor.dims[2]; ++page) {
            auto* block =
                reinterpret_cast<uint8_t*>(cache.data()) + page * cache.tensor.strides[2] + 2 * cache.tensor.strides[1];
            block[1] = static_cast<uint8_t>((block[1] & 0x7F) | (at == &least ? 0x80 : 0));
            std::memset(block + 2, at == &least ? -128 : 127, 32);
        }
        ASSERT_TRUE(at->pack());
    }
    EXPECT_EQ(least.tested(1), largest.tested(1));
}

// A cached number that is none is seen in the results, not lost: the first of a row, or the scale of its first block.
TEST(AttentionRun, WhatIsNoNumberInTheCacheIsNoneInTheResults) {
    for (const auto& [type, nan, bytes] :
         std::initializer_list<std::tuple<tsr_type, uint32_t, size_t>>{{TSR_TYPE_F32, 0x7FC00000, 4},
                                                                       {TSR_TYPE_F16, 0x7E00, 2},
                                                                       {TSR_TYPE_BF16, 0x7FC0, 2},
                                                                       {TSR_TYPE_Q8_0, 0x7E00, 2},
                                                                       {TSR_TYPE_Q6_0, 0x7E00, 2}}) {
        for (const int heads : {2, 16}) {
            for (const bool own : {false, true}) {
                AttentionCase at({"", kPrefix, type, heads, 1, 576, 512, 0, 0, {{300, 1}}});
                Operand& cache = at.node.input(1);
                for (int64_t page = 0; page < cache.tensor.dims[2]; ++page) {
                    std::memcpy(cache.data() + page * cache.tensor.strides[2] + 7 * cache.tensor.strides[1], &nan,
                                bytes);
                }
                if (own && !has_own_layout(at.setting)) continue;
                at.setting.own_layout = own;
                if (lacks_layout(at)) continue;
                const auto got = at.tested(2);
                EXPECT_TRUE(std::ranges::any_of(got, [](float x) { return x != x; }))
                    << cpu::format_name(type) << ", " << heads << " heads, " << (own ? "own layout" : "canonical");
            }
        }
    }
}

// A NaN in an input of a prompt (queries, cache, weights) reaches the results that depend on it; one of a cached token
// changes none before that.
TEST(AttentionRun, NansInInputsOfPromptsReachTheirResults) {
    constexpr int kRows = 140, kToken = 56;  // of each page
    const Setting prefix{"", kPrefix, TSR_TYPE_F16, 16, 1, 576, 512, 0, 0, {{0, kRows}}};
    const Setting projected{"", kProjected, TSR_TYPE_F16, 2, 1, 192, 128, 512, TSR_TYPE_F32, {{0, kRows}}};
    const Setting general{"", kProjected, TSR_TYPE_F16, 2, 1, 48, 20, 48, TSR_TYPE_F32, {{0, kRows}}};
    const Setting plain{"", kPlain, TSR_TYPE_F16, 12, 2, 64, 64, 0, 0, {{0, kRows}}};
    for (Setting setting : {prefix, projected, general, plain}) {
        for (const tsr_type type : {TSR_TYPE_F16, TSR_TYPE_Q8_0}) {
            for (const bool own : {false, true}) {
                setting.type = type;
                setting.own_layout = own;
                if (own && !has_own_layout(setting)) continue;
                for (const size_t input : {0, 1, 2, 6, 7}) {
                    if (input == 2 && setting.variant != kPlain) continue;
                    if (input > 2 && setting.variant != kProjected) continue;
                    const bool cache = input == 1 || input == 2;
                    AttentionCase usual(setting), at(setting);
                    Operand& o = at.node.input(input);
                    const uint32_t nan = cache ? 0x7E00 : 0x7FC00000;
                    for (int64_t i = 0; i < o.tensor.dims[2]; ++i)
                        std::memcpy(o.data() + i * o.tensor.strides[2] + (cache ? kToken : 1) * o.tensor.strides[1],
                                    &nan, cache ? 2 : 4);
                    if (lacks_layout(at) || lacks_layout(usual)) continue;
                    const auto got = at.tested(2), wanted = usual.tested(2);
                    const std::string what = std::string(cpu::format_name(type)) + (own ? " in its own layout" : "") +
                                             ", " + std::to_string(setting.dk) + ", input " + std::to_string(input);
                    const auto row = static_cast<std::ptrdiff_t>(got.size()) / kRows;
                    for (std::ptrdiff_t r = 0; r < kRows; ++r) {
                        const auto begin = got.begin() + r * row;
                        if (cache && r < kToken)
                            EXPECT_TRUE(std::equal(begin, begin + row, wanted.begin() + r * row)) << what << ", " << r;
                        else
                            EXPECT_TRUE(std::any_of(begin, begin + row, [](float x) { return x != x; }))
                                << what << ", " << r;
                    }
                }
            }
        }
    }
}

// One token of 16 heads over q8_0, where every 16th cached token is far from the queries and its values are `loud`
// times as large. `strength` is a factor of the queries.
std::vector<float> beside_loud_tokens(float strength, float loud) {
    AttentionCase at({"", kPrefix, TSR_TYPE_Q8_0, 16, 1, 576, 512, 0, 0, {{383, 1}}});
    constexpr int kBlock = 34;  // an f16 scale and 32 codes
    const tsr_tensor& q = at.node.input(0).tensor;
    for (int head = 0; head < 16; ++head) {
        auto* row = reinterpret_cast<float*>(at.node.input(0).data() + head * q.strides[1] + 2 * q.strides[2]);
        for (int i = 0; i < 575; ++i) row[i] *= strength;
        row[575] = 3;
    }
    const auto multiply_scale = [](char* block, float factor) {
        uint16_t scale;
        std::memcpy(&scale, block, sizeof scale);
        scale = formats::f32_to_f16(factor * formats::f16_to_f32(scale));
        std::memcpy(block, &scale, sizeof scale);
    };
    const tsr_tensor& cache = at.node.input(1).tensor;
    for (int64_t i = 5; i < cache.dims[1] * cache.dims[2]; i += 16) {
        char* row = at.node.input(1).data() + i * cache.strides[1];
        for (int block = 0; block < 16; ++block) multiply_scale(row + block * kBlock, loud);
        char* last = row + 17 * kBlock;
        multiply_scale(last, 500);
        std::memset(last + 2, 0, kBlock - 2);
        last[kBlock - 1] = -127;
    }
    if (multiplies_bytes() && !at.pack()) throw std::runtime_error("the kernel names no layout");
    return at.tested(2);
}

// In int8, weights are multiplied by the scales of values before they are rounded: tokens of no weight, whose scales
// are much larger, must not take the others' precision. Of weights that are nearly alike, and of a few large ones.
TEST(AttentionRun, ScalesOfOtherTokensTakeNoPrecision) {
    for (const float strength : {0.05f, 0.3f, 1.0f}) {
        EXPECT_LE(relative_error(beside_loud_tokens(strength, 20), beside_loud_tokens(strength, 1)), 0.008)
            << "queries times " << strength;
    }
}

}  // namespace
}  // namespace tessera::tests
