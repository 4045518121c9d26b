// Estimates of products of many rows on cards before 8.0: the rate of dp4a, the share of it that each format reaches
// (bench/results/cards.md), and 0.8 for what no instruction count shows.
#include "kernels/cuda/attention/splits.hpp"
#include "kernels/cuda/card_constants.hpp"
#include "kernels/cuda/estimate.hpp"
#include "kernels/cuda/matmul/tile_product.hpp"
#include "kernels/cuda/ops.hpp"

#include <tessera/extensions/estimate_constants.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace tessera::cuda_ops {
namespace {

// Multiply-adds a clock and multiprocessor of 512 rows.
double macs_a_clock(tsr_type type, const Card& card) {
    tsr_device_info device{};
    device.processors = 30;
    device.clock_hz = 1.5e9;
    device.memory_bandwidth = 1e12;
    cpu::Work work;
    work.macs_one_row = 1;
    work.macs_all_rows = 1e15;
    tsr_kernel_plan plan{};
    write_product_estimate(work, type, 0, device, card, 512, 8, 1, plan);
    return work.macs_all_rows / plan.seconds_all_rows / device.processors / device.clock_hz;
}

TEST(ProductEstimates, TakeTheShareOfDp4aThatTheFormatReaches) {
    // testing/cuda_code/cuda_sass BUILD --products, of code for 75@61.
    const struct {
        tsr_type type;
        double pascal, volta;
    } counted[] = {
        {TSR_TYPE_Q8_ROW, 0.54, 0.77},    {TSR_TYPE_MXFP4, 0.52, 0.76},   {TSR_TYPE_Q4_0, 0.54, 0.76},
        {TSR_TYPE_Q8_0, 0.54, 0.76},      {TSR_TYPE_Q6_0, 0.54, 0.76},    {TSR_TYPE_Q8_K_F16, 0.54, 0.76},
        {TSR_TYPE_IQ1_S_ROW, 0.54, 0.76}, {TSR_TYPE_IQ2_KS, 0.52, 0.76},  {TSR_TYPE_IQ4_KS, 0.53, 0.76},
        {TSR_TYPE_IQ4_NL, 0.53, 0.76},    {TSR_TYPE_IQ4_XS, 0.54, 0.76},  {TSR_TYPE_Q5_0, 0.54, 0.76},
        {TSR_TYPE_IQ1_S, 0.54, 0.76},     {TSR_TYPE_IQ3_KS, 0.48, 0.75},  {TSR_TYPE_IQ5_KS, 0.46, 0.75},
        {TSR_TYPE_IQ2_XXS, 0.47, 0.73},   {TSR_TYPE_IQ3_XXS, 0.44, 0.73}, {TSR_TYPE_IQ3_S, 0.44, 0.72},
        {TSR_TYPE_Q4_1, 0.49, 0.68},      {TSR_TYPE_Q4_K, 0.48, 0.68},    {TSR_TYPE_Q5_K, 0.47, 0.68},
        {TSR_TYPE_Q5_1, 0.49, 0.68},      {TSR_TYPE_IQ2_K, 0.49, 0.64},   {TSR_TYPE_IQ4_K, 0.45, 0.64},
        {TSR_TYPE_IQ1_M_ROW, 0.49, 0.64}, {TSR_TYPE_Q6_K, 0.45, 0.64},    {TSR_TYPE_IQ1_M, 0.45, 0.64},
        {TSR_TYPE_Q3_K, 0.43, 0.64},      {TSR_TYPE_IQ3_K, 0.42, 0.64},   {TSR_TYPE_IQ6_K, 0.39, 0.63},
        {TSR_TYPE_IQ2_S, 0.44, 0.63},     {TSR_TYPE_IQ5_K, 0.40, 0.63},   {TSR_TYPE_IQ2_XS, 0.42, 0.63},
        {TSR_TYPE_Q2_K, 0.42, 0.53},
    };
    for (const auto& [type, pascal, volta] : counted) {
        // P40 and GTX 1080 Ti have 128 lanes, V100 and T4 64. Formats with nearly the same share have one estimate.
        EXPECT_NEAR(macs_a_clock(type, {610, 610}) / (0.8 * 4 * 128), pascal, 0.031) << "type " << type;
        for (const uint32_t capability : {700, 750})
            EXPECT_NEAR(macs_a_clock(type, {700, capability}) / (0.8 * 4 * 64), volta, 0.031) << "type " << type;
    }
}

TEST(ProductEstimates, OfOtherUnitsHaveNoPartInIt) {
    // f32 on a card without dp4a, and for weights of f32; tensor cores.
    EXPECT_NEAR(macs_a_clock(TSR_TYPE_Q2_K, {600, 600}), 0.8 * 0.7 * 64, 0.01);
    EXPECT_NEAR(macs_a_clock(TSR_TYPE_F32, {610, 610}), 0.8 * 0.7 * 128, 0.01);
    EXPECT_NEAR(macs_a_clock(TSR_TYPE_Q4_0, {800, 860}), 0.8 * 1024, 0.01);
}

TEST(CardConstants, AreOfTheRowOfTheArchitecture) {
    for (size_t i = 1; i < std::size(kCardConstants); ++i)
        EXPECT_LT(kCardConstants[i - 1].capability, kCardConstants[i].capability);
    EXPECT_EQ(constants_of(0).capability, 600u);
    EXPECT_EQ(constants_of(610).capability, 610u);
    EXPECT_EQ(constants_of(720).capability, 700u);
    EXPECT_EQ(constants_of(870).capability, 860u);
    EXPECT_EQ(constants_of(900).capability, 900u);
    EXPECT_EQ(constants_of(1210).capability, 1200u);
}

TEST(CardConstants, AreListedForTheHost) {
    EXPECT_EQ(get_extension(nullptr, nullptr), nullptr);
    EXPECT_EQ(get_extension(nullptr, "org.example/1"), nullptr);
    const auto* extension = static_cast<const tsr_estimate_constants*>(get_extension(nullptr, TSR_ESTIMATE_CONSTANTS));
    ASSERT_NE(extension, nullptr);
    tsr_device_info device{};
    for (const auto& [capability, expected] : {std::pair{610u, 7u}, std::pair{900u, 8u}}) {
        device.compute_capability = capability;
        tsr_estimate_constant listed[16] = {};
        ASSERT_EQ(extension->list(extension, &device, listed, 16), expected);
        EXPECT_STREQ(listed[0].name, "graph node");
        EXPECT_EQ(listed[0].value, constants_of(capability).graph_node.value * 1e6);
        for (uint32_t i = 0; i < expected; ++i) {
            EXPECT_TRUE(std::isfinite(listed[i].value));
            // A card and a date, or nothing.
            if (listed[i].measured) {
                EXPECT_NE(std::strstr(listed[i].measured, ", 20"), nullptr) << listed[i].measured;
            }
        }
        EXPECT_EQ(extension->list(extension, &device, listed, 3), 3u);
    }
}

TEST(CombineParts, FillTheCard) {
    // One token of 16 heads of 512: all of the card's multiprocessors have a block, on each card.
    for (const uint32_t processors : {30u, 82u, 108u, 132u, 170u}) {
        EXPECT_GE(16 * combine_parts(16, 512, processors), processors);
        EXPECT_LE(16 * combine_parts(16, 512, processors), 2 * processors + 16);
    }
    EXPECT_EQ(combine_parts(16, 512, 132), 16u);
    EXPECT_EQ(combine_parts(128, 512, 132), 3u);
    EXPECT_EQ(combine_parts(4 * 128, 512, 132), 1u);
    EXPECT_EQ(combine_parts(1, 64, 132), 2u);  // no more than there are
    EXPECT_EQ(combine_parts(0, 7, 0), 1u);
}

TEST(Estimates, CountWhatJoinsPartialSums) {
    tsr_device_info device{};
    device.processors = 132;
    device.clock_hz = 1.98e9;
    device.memory_bandwidth = 3350e9;
    device.compute_capability = 900;
    device.l2_bytes = 50 << 20;
    cpu::Work work;
    work.bytes_one_row = work.bytes_all_rows = 1000;
    work.bytes_one_row_full = work.bytes_all_rows_full = 70e6;
    Cost cost;
    cost.launches = 2;
    tsr_kernel_plan without{}, with{};
    write_estimate(work, cost, device, without);
    const CardConstants& card = constants_of(900);
    cost.partial_bytes_one_row_full = 264.0 * 16 * 514 * 4;  // of 60 k tokens on this card
    write_estimate(work, cost, device, with);
    EXPECT_EQ(with.seconds_one_row, without.seconds_one_row);
    EXPECT_EQ(with.seconds_all_rows_full, without.seconds_all_rows_full);
    EXPECT_NEAR(with.seconds_one_row_full - without.seconds_one_row_full,
                2 * card.memory_latency.value +
                    2 * cost.partial_bytes_one_row_full / (3350e9 * card.memory_share.value * card.cached_rate.value),
                1e-9);
    device.l2_bytes = 6 << 20;  // has no room for them
    tsr_kernel_plan uncached{};
    write_estimate(work, cost, device, uncached);
    EXPECT_GT(uncached.seconds_one_row_full, with.seconds_one_row_full + 2e-6);
}

}  // namespace
}  // namespace tessera::cuda_ops
