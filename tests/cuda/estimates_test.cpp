// Estimates of products of many rows on cards before 8.0: the rate of dp4a, the share of it that each format reaches
// (docs/measurements/cuda-products.md), and 0.8 for what no instruction count shows.
#include "plugins/cuda/tile_product.hpp"

#include <gtest/gtest.h>

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
    write_product_estimate(work, type, 4096, 0, device, card, 512, 1, plan);
    return work.macs_all_rows / plan.seconds_all_rows / device.processors / device.clock_hz;
}

TEST(ProductEstimates, TakeTheShareOfDp4aThatTheFormatReaches) {
    // tools/cuda_sass BUILD --products, of code for 75@61.
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

}  // namespace
}  // namespace tessera::cuda_ops
