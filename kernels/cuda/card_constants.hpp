// What estimates take of cards that neither their driver nor their vendor says, by architecture: the one place for it.
// A card that has measured a constant (tools/gpu_acceptance, part "rates") replaces it here, with its name and the
// date.
#pragma once

#include <cstdint>
#include <iterator>

namespace tessera::cuda_ops {

struct CardConstant {
    double value;
    const char* measured;  // "RTX 3090, 2026-11-30"; nullptr: assumed
};
constexpr CardConstant assumed(double value) noexcept {
    return {value, nullptr};
}

struct CardConstants {
    uint32_t capability;  // of this one and of those above, up to that of the next row
    // Seconds that a kernel takes beside its bytes and operations: in a recording, by generation with a model of Lite's
    // shape (an empty one takes 0.45 us on an H200, the norm of one row 1.3), and of those launched one by one.
    CardConstant graph_node, launch;
    CardConstant memory_latency;  // seconds of a load that no cache answers
    CardConstant memory_share;    // of the memory's bandwidth that kernels reach
    CardConstant cached_rate;     // times that bandwidth: of what the second-level cache holds
    CardConstant product_share;  // of the rate that the instructions of products allow: what no instruction count shows
    CardConstant attention_share;  // of that of attention: what softmax, barriers and edges leave
    CardConstant mma_share;        // of the tensor cores' rate with f16 that mma.sync reaches
};

inline constexpr const char* kH200 = "H200, 2026-11-27";

inline constexpr CardConstants kCardConstants[] = {
    // capability, graph node, launch, memory latency, memory share, cached rate, product share, attention share, mma
    // share
    {600, assumed(3e-6), assumed(3e-6), assumed(600e-9), assumed(0.75), assumed(2), assumed(0.8), assumed(0.75),
     assumed(1)},
    {610, assumed(3e-6), assumed(3e-6), assumed(600e-9), assumed(0.75), assumed(2), assumed(0.8), assumed(0.75),
     assumed(1)},
    {700, assumed(3e-6), assumed(3e-6), assumed(600e-9), assumed(0.75), assumed(2), assumed(0.8), assumed(0.75),
     assumed(1)},
    {750, assumed(3e-6), assumed(3e-6), assumed(600e-9), assumed(0.75), assumed(2), assumed(0.8), assumed(0.75),
     assumed(1)},
    {800, assumed(3e-6), assumed(3e-6), assumed(600e-9), assumed(0.75), assumed(2), assumed(0.8), assumed(0.75),
     assumed(1)},
    {860, assumed(3e-6), assumed(3e-6), assumed(600e-9), assumed(0.75), assumed(2), assumed(0.8), assumed(0.75),
     assumed(1)},
    {890, assumed(3e-6), assumed(3e-6), assumed(600e-9), assumed(0.75), assumed(2), assumed(0.8), assumed(0.75),
     assumed(1)},
    // Their tensor cores have instructions of their own, which reach more than mma.sync.
    {900,
     {3.1e-6, kH200},
     {3.8e-6, kH200},
     {350e-9, kH200},
     {0.78, kH200},
     assumed(2),
     {0.22, kH200},
     {0.55, kH200},
     {0.60, kH200}},
    {1000, assumed(3e-6), assumed(3e-6), assumed(600e-9), assumed(0.75), assumed(2), assumed(0.8), assumed(0.75),
     assumed(1270 / 2048.0)},
    {1200, assumed(3e-6), assumed(3e-6), assumed(600e-9), assumed(0.75), assumed(2), assumed(0.8), assumed(0.75),
     assumed(1)},
};

// Of a compute capability; of one below all rows those of the first.
constexpr const CardConstants& constants_of(uint32_t capability) noexcept {
    size_t row = 0;
    while (row + 1 < std::size(kCardConstants) && kCardConstants[row + 1].capability <= capability) ++row;
    return kCardConstants[row];
}

}  // namespace tessera::cuda_ops
