// Kernels that do nothing but multiply, or read, for the rates that a card reaches: of mma (16 x 8 x 16 of f16, 16 x 8 x
// 32 of int8), dp4a, f32, and memory.
#include "rates.hpp"

#include <tessera/cuda/simt.hpp>

using tessera::test::ChaseArguments;
using tessera::test::kRateChains;
using tessera::test::kReadsInFlight;
using tessera::test::kRateThreads;
using tessera::test::RateArguments;
using tessera::test::ReadArguments;

namespace {

SIMT_DEVICE unsigned place() {
    return simt::block_index().x * static_cast<unsigned>(kRateThreads) + simt::thread_index().x;
}

}  // namespace

// Does nothing: what is left is what a kernel costs.
SIMT_KERNEL(32, 1) no_work(RateArguments r) {
    (void)r;
}

// One thread, of which each load waits for the one before; goes on where the launch before has ended.
SIMT_KERNEL(32, 1) chase_loads(ChaseArguments c) {
    if (simt::thread_index().x > 0) return;
    unsigned at = *c.at;
    for (int step = 0; step < c.steps; ++step) at = c.next[at];
    *c.at = at;
}

SIMT_KERNEL(256, 4) read_rate(ReadArguments r) {
    using namespace simt;
    const auto* from = static_cast<const UInt4*>(r.from);
    const long long threads = static_cast<long long>(grid_size().x) * kRateThreads;
    unsigned sum = 0;
    for (long long i = place(); i < r.count; i += kReadsInFlight * threads) {
        UInt4 values[kReadsInFlight];
        SIMT_UNROLL
        for (int k = 0; k < kReadsInFlight; ++k) values[k] = load_global<UInt4>(from + i + k * threads);
        SIMT_UNROLL
        for (int k = 0; k < kReadsInFlight; ++k) sum += values[k].x ^ values[k].y ^ values[k].z ^ values[k].w;
    }
    r.out[place()] = sum;
}

SIMT_KERNEL(256, 2) f32_rate(RateArguments r) {
    using namespace simt;
    float sums[kRateChains];
    const float factor = 0.999f + 1e-6f * static_cast<float>(thread_index().x);
    SIMT_UNROLL
    for (int i = 0; i < kRateChains; ++i) sums[i] = static_cast<float>(i);
    for (int step = 0; step < r.steps; ++step) {
        SIMT_UNROLL
        for (int i = 0; i < kRateChains; ++i) sums[i] = fmaf(sums[i], factor, 1.f);
    }
    float sum = 0;
    SIMT_UNROLL
    for (int i = 0; i < kRateChains; ++i) sum += sums[i];
    r.out[place()] = bits_as<unsigned>(sum);
}

#if SIMT_ARCH >= 610
SIMT_KERNEL(256, 2) dp4a_rate(RateArguments r) {
    using namespace simt;
    int sums[kRateChains];
    const int a = static_cast<int>(0x01020304u + thread_index().x), b = 0x01FF02FE;
    SIMT_UNROLL
    for (int i = 0; i < kRateChains; ++i) sums[i] = i;
    for (int step = 0; step < r.steps; ++step) {
        SIMT_UNROLL
        for (int i = 0; i < kRateChains; ++i) sums[i] = dp4a(a, b + step, sums[i]);
    }
    int sum = 0;
    SIMT_UNROLL
    for (int i = 0; i < kRateChains; ++i) sum += sums[i];
    r.out[place()] = static_cast<unsigned>(sum);
}
#endif

#if SIMT_ARCH >= 800
namespace {

// Chains of one mma, with fragments that differ from thread to thread; the sum of what they give.
template <class T, class Multiply>
SIMT_DEVICE T mma_chains(int steps, uint32_t first_a, uint32_t first_b, uint32_t by_thread, Multiply&& multiply) {
    using namespace simt;
    T sums[kRateChains][4];
    uint32_t a[4], b[2];
    SIMT_UNROLL
    for (unsigned i = 0; i < 4; ++i) a[i] = first_a + thread_index().x * by_thread + i;
    SIMT_UNROLL
    for (unsigned i = 0; i < 2; ++i) b[i] = first_b + thread_index().x * by_thread + i;
    SIMT_UNROLL
    for (int i = 0; i < kRateChains; ++i) {
        SIMT_UNROLL
        for (int j = 0; j < 4; ++j) sums[i][j] = 0;
    }
    for (int step = 0; step < steps; ++step) {
        SIMT_UNROLL
        for (int i = 0; i < kRateChains; ++i) multiply(sums[i], a, b);
    }
    T sum = 0;
    SIMT_UNROLL
    for (int i = 0; i < kRateChains; ++i) sum += sums[i][0] + sums[i][1] + sums[i][2] + sums[i][3];
    return sum;
}

}  // namespace

SIMT_KERNEL(256, 2) f16_rate(RateArguments r) {
    const float sum = mma_chains<float>(
        r.steps, 0x3C003800u, 0x3400B400u, 0x00010001u,
        [](float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { simt::mma_f16(c, a, b); });
    r.out[place()] = simt::bits_as<unsigned>(sum);
}

SIMT_KERNEL(256, 2) s8_rate(RateArguments r) {
    const int32_t sum = mma_chains<int32_t>(
        r.steps, 0x01FF0304u, 0xFF020103u, 0x01010101u,
        [](int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { simt::mma_s8(c, a, b); });
    r.out[place()] = static_cast<uint32_t>(sum);
}
#endif
