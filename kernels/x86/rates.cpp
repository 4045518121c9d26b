// The table of rates, in G multiply-adds/s of one core at 3.1 GHz: what was measured, times 3.1 GHz over the clock that
// `tessera devices` told.
//
// Products: TSR_TEST_PLUGIN=cpu_avx512 TSR_TEST_CPU_FLAGS='...' bench_matmul 1 512 "" 16, packed; column by column
//   AVX2                 Zen 3 at 3.1 GHz
//   AVX2 with VNNI       Zen 5, its vectors of 512 bits not used
//   AVX-512              Xeon at 2.5 GHz without VNNI: as AVX2
//   AVX-512 with VNNI    the same Xeon
//   AMX                  Xeon (2 vCPUs, 4.1 GHz), 2026-11-26: without AMX, which steps of few rows do not use, and with
//   it
// Of formats from q8_KV on only the last was measured, and AVX2 on the same processor, beside formats whose codes are
// multiplied alike: the other columns are those formats', times what the two differ by there.
#include "rates.hpp"

#include <tessera/formats/block_list.hpp>

#include <algorithm>
#include <iterator>

namespace tessera::x86 {

namespace {

constexpr double kGiga = 1e9;

// Of the rate of vectors of 512 bits, those of 256 on the same processor: of codes 0.56 to 0.72, of f16 and bf16 0.49
// (bench_matmul 1 512 FORMAT 16 of both plugins, the Xeon with AMX, 2026-11-26).
constexpr double half_vectors(tsr_type weights) noexcept {
    return weights == TSR_TYPE_F32 || weights == TSR_TYPE_F16 || weights == TSR_TYPE_BF16 ? 0.49 : 0.7;
}

struct ProductRates {
    tsr_type weights;
    // AVX2, AVX2 with VNNI, AVX-512, AVX-512 with VNNI, AMX: few rows, many rows.
    double giga[6];
};

constexpr ProductRates kProducts[] = {
    {TSR_TYPE_F32, {16, 16, 52, 52, 52, 52}},           {TSR_TYPE_F16, {16, 16, 52, 52, 52, 52}},
    {TSR_TYPE_BF16, {16, 16, 52, 52, 52, 52}},          {TSR_TYPE_Q4_0, {100, 115, 100, 155, 144, 158}},
    {TSR_TYPE_Q4_1, {95, 115, 95, 147, 129, 145}},      {TSR_TYPE_Q5_0, {95, 115, 95, 147, 142, 152}},
    {TSR_TYPE_Q5_1, {90, 115, 90, 140, 126, 140}},      {TSR_TYPE_Q8_0, {60, 115, 60, 120, 125, 155}},
    {TSR_TYPE_Q2_K, {75, 115, 75, 120, 103, 103}},      {TSR_TYPE_Q3_K, {90, 115, 90, 140, 102, 102}},
    {TSR_TYPE_Q4_K, {90, 115, 90, 140, 129, 145}},      {TSR_TYPE_Q5_K, {90, 115, 90, 140, 129, 142}},
    {TSR_TYPE_Q6_K, {90, 115, 90, 140, 104, 104}},      {TSR_TYPE_IQ2_XXS, {63, 115, 63, 120, 131, 145}},
    {TSR_TYPE_IQ2_XS, {63, 115, 63, 120, 103, 103}},    {TSR_TYPE_IQ3_XXS, {63, 115, 63, 120, 123, 136}},
    {TSR_TYPE_IQ1_S, {80, 115, 80, 124, 133, 149}},     {TSR_TYPE_IQ4_NL, {60, 115, 60, 120, 138, 167}},
    {TSR_TYPE_IQ3_S, {80, 115, 80, 124, 122, 133}},     {TSR_TYPE_IQ2_S, {63, 115, 63, 120, 107, 107}},
    {TSR_TYPE_IQ4_XS, {60, 115, 60, 120, 139, 156}},    {TSR_TYPE_IQ1_M, {80, 115, 80, 124, 105, 105}},
    {TSR_TYPE_MXFP4, {90, 115, 90, 140, 147, 157}},     {TSR_TYPE_Q6_0, {70, 115, 70, 120, 109, 109}},
    {TSR_TYPE_IQ2_K, {80, 115, 80, 124, 115, 115}},     {TSR_TYPE_IQ3_K, {63, 115, 63, 120, 112, 112}},
    {TSR_TYPE_IQ4_K, {55, 115, 55, 120, 103, 103}},     {TSR_TYPE_IQ5_K, {55, 115, 55, 120, 101, 101}},
    {TSR_TYPE_IQ6_K, {55, 115, 55, 120, 96, 96}},       {TSR_TYPE_IQ4_KS, {55, 115, 55, 120, 133, 153}},
    {TSR_TYPE_IQ2_KS, {80, 115, 80, 124, 115, 115}},    {TSR_TYPE_IQ5_KS, {55, 115, 55, 120, 118, 138}},
    {TSR_TYPE_IQ3_KS, {63, 115, 63, 120, 135, 144}},    {TSR_TYPE_IQ1_S_ROW, {80, 115, 80, 124, 131, 148}},
    {TSR_TYPE_IQ1_M_ROW, {80, 115, 80, 124, 104, 104}}, {TSR_TYPE_Q8_K_F16, {50, 115, 50, 120, 127, 145}},
    {TSR_TYPE_Q8_ROW, {50, 115, 50, 120, 138, 159}},    {TSR_TYPE_Q8_KV, {50, 115, 50, 120, 138, 159}},
    {TSR_TYPE_TQ2_0, {100, 115, 100, 150, 140, 153}},   {TSR_TYPE_IQ2_BN, {100, 115, 100, 150, 144, 158}},
    {TSR_TYPE_TQ1_0, {100, 115, 100, 150, 144, 157}},   {TSR_TYPE_IQ1_BN, {91, 105, 91, 137, 131, 147}},
    {TSR_TYPE_Q1_0, {100, 115, 100, 150, 144, 158}},    {TSR_TYPE_NVFP4, {66, 80, 66, 95, 102, 102}},
    {TSR_TYPE_IQ4_KSS, {55, 115, 55, 120, 132, 141}},   {TSR_TYPE_IQ2_KL, {63, 115, 63, 120, 125, 136}},
    {TSR_TYPE_IQ1_KT, {50, 90, 50, 96, 102, 107}},      {TSR_TYPE_IQ2_KT, {51, 92, 51, 98, 105, 111}},
    {TSR_TYPE_IQ3_KT, {51, 92, 51, 96, 103, 108}},      {TSR_TYPE_IQ4_KT, {51, 94, 51, 100, 112, 118}},
};

constexpr const ProductRates* find(tsr_type weights) noexcept {
    const auto* at = std::find_if(std::begin(kProducts), std::end(kProducts),
                                  [&](const ProductRates& row) { return row.weights == weights; });
    return at == std::end(kProducts) ? nullptr : at;
}

// Tiles are used where they are faster (kTakesTiles).
static_assert(std::all_of(std::begin(kProducts), std::end(kProducts),
                          [](const ProductRates& row) { return row.giga[5] >= row.giga[4]; }));

// Of a format that has no row: multiplied by what packed_any.hpp makes of its codes (of tq1_0, on the Xeon with AMX).
// With few rows it waits for codes to be taken apart; a second scale for 32 elements costs what it costs mxfp4 to be
// nvfp4.
constexpr Macs other_rates(Processor processor, tsr_type weights) noexcept {
    bool one_scale = true;
    formats::visit_block_format(weights,
                                [&]<class Block>() { one_scale = Block::kScaleElements == 32 && !Block::kOffsets; });
    const double many = processor == Processor::kAvx2 || processor == Processor::kAvx512 ? 50 : 85;
    return {5 * kGiga, (one_scale ? many : 0.7 * many) * kGiga};
}

}  // namespace

Macs product_rates(Processor processor, tsr_type weights) noexcept {
    const ProductRates* row = find(weights);
    if (!row) return other_rates(processor, weights);
    switch (processor) {
        case Processor::kAvx2:
            return {row->giga[0] * kGiga, row->giga[0] * kGiga};
        case Processor::kAvx2Vnni:
            return {row->giga[1] * kGiga, row->giga[1] * kGiga};
        case Processor::kAvx2BesideAmx:
            return {row->giga[4] * half_vectors(weights) * kGiga, row->giga[4] * half_vectors(weights) * kGiga};
        case Processor::kAvx512:
            return {row->giga[2] * kGiga, row->giga[2] * kGiga};
        case Processor::kAvx512Vnni:
            return {row->giga[3] * kGiga, row->giga[3] * kGiga};
        case Processor::kAmx:
            break;
    }
    return {row->giga[4] * kGiga, row->giga[5] * kGiga};
}

Macs column_rates(Processor processor) noexcept {
    // Few rows wait for the decoding of elements one block after another.
    const bool wide = processor >= Processor::kAvx512;
    return {3.5 * kGiga, (wide ? 18 : 10) * kGiga};
}

// bench_attention 1, on the machines above: about 60 % of what the multipliers can do.
AttentionRates attention_rates(Processor processor) noexcept {
    switch (processor) {
        case Processor::kAvx2:
            return {35 * kGiga, 60 * kGiga, 0};
        case Processor::kAvx2Vnni:
        case Processor::kAvx2BesideAmx:
            return {35 * kGiga, 69 * kGiga, 76 * kGiga};
        case Processor::kAvx512:
            return {68 * kGiga, 74 * kGiga, 0};
        case Processor::kAvx512Vnni:
        case Processor::kAmx:
            break;
    }
    return {68 * kGiga, 118 * kGiga, 130 * kGiga};
}

}  // namespace tessera::x86
