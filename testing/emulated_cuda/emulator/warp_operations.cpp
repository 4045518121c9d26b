// What the last lane of a warp does for all of them.
#include "executor.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace tessera::cuda::emulator {
namespace {

using simt::emulated::Ballot;
using simt::emulated::Ldmatrix;
using simt::emulated::Mma;
using simt::emulated::Reduction;
using simt::emulated::Shuffle;

void shuffle(const Fiber* lanes, uint32_t population) {
    uint32_t values[32] = {};
    for (uint32_t i = 0; i < 32; ++i) {
        if (population >> i & 1) values[i] = static_cast<const Shuffle*>(lanes[i].arguments)->value;
    }
    for (uint32_t i = 0; i < 32; ++i) {
        if (!(population >> i & 1)) continue;
        auto& own = *static_cast<Shuffle*>(lanes[i].arguments);
        own.value = values[own.source];
    }
}

void ballot(const Fiber* lanes, uint32_t population) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; ++i) {
        if (population >> i & 1) result |= static_cast<const Ballot*>(lanes[i].arguments)->predicate << i;
    }
    for (uint32_t i = 0; i < 32; ++i) {
        if (population >> i & 1) static_cast<Ballot*>(lanes[i].arguments)->result = result;
    }
}

template <class Combine>
void reduce(const Fiber* lanes, uint32_t population, const Combine& combine) {
    float values[32] = {}, next[32];
    for (uint32_t i = 0; i < 32; ++i) {
        if (population >> i & 1) values[i] = static_cast<const Reduction*>(lanes[i].arguments)->value;
    }
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
        for (uint32_t i = 0; i < 32; ++i) next[i] = combine(values[i], values[i ^ mask]);
        std::memcpy(values, next, sizeof values);
    }
    for (uint32_t i = 0; i < 32; ++i) {
        if (population >> i & 1) static_cast<Reduction*>(lanes[i].arguments)->value = values[i];
    }
}

struct Half {
    static float wide(uint16_t bits) { return static_cast<float>(__builtin_bit_cast(_Float16, bits)); }
};
struct Bfloat16 {
    static float wide(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
};

// Fragments of mma.m16n8kK, K columns of `Bits` bits (PTX ISA manual, "Matrix Fragments for mma"): lane l holds row l /
// 4 and, of each half of K, the elements that follow from 4 bytes at column l % 4.
template <int K, class Element, class Sum, class Widen>
void multiply(const Fiber* lanes, const Widen& widen) {
    constexpr int kPack = 4 / sizeof(Element);
    static_assert(K == 8 * kPack);
    Sum a[16][K], b[K][8], c[16][8];
    for (int l = 0; l < 32; ++l) {
        const auto& mma = *static_cast<const Mma*>(lanes[l].arguments);
        const int row = l / 4, column = l % 4;
        Element elements[kPack];
        for (int q = 0; q < 4; ++q) {
            std::memcpy(elements, &mma.a[q], 4);
            for (int i = 0; i < kPack; ++i)
                a[row + q % 2 * 8][column * kPack + q / 2 * (K / 2) + i] = widen(elements[i]);
        }
        for (int q = 0; q < 2; ++q) {
            std::memcpy(elements, &mma.b[q], 4);
            for (int i = 0; i < kPack; ++i) b[column * kPack + q * (K / 2) + i][row] = widen(elements[i]);
        }
        for (int i = 0; i < 4; ++i)
            std::memcpy(&c[row + i / 2 * 8][column * 2 + i % 2], static_cast<const char*>(mma.accumulator) + 4 * i, 4);
    }
    for (int i = 0; i < 16; ++i) {
        for (int k = 0; k < K; ++k) {
            for (int j = 0; j < 8; ++j) {
                if constexpr (std::is_same_v<Sum, int32_t>)
                    c[i][j] =
                        static_cast<int32_t>(static_cast<uint32_t>(c[i][j]) + static_cast<uint32_t>(a[i][k] * b[k][j]));
                else
                    c[i][j] += a[i][k] * b[k][j];
            }
        }
    }
    for (int l = 0; l < 32; ++l) {
        const auto& mma = *static_cast<const Mma*>(lanes[l].arguments);
        for (int i = 0; i < 4; ++i)
            std::memcpy(static_cast<char*>(mma.accumulator) + 4 * i, &c[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2], 4);
    }
}

}  // namespace

void Executor::load_matrix(const Fiber* lanes) {
    const bool transposed = static_cast<const Ldmatrix*>(lanes[0].arguments)->transposed;
    for (uint32_t matrix = 0; matrix < 4; ++matrix) {
        const uint8_t* rows[8];
        uint64_t offsets[32] = {};
        for (uint32_t i = 0; i < 8; ++i) {
            rows[i] = static_cast<const uint8_t*>(static_cast<const Ldmatrix*>(lanes[matrix * 8 + i].arguments)->row);
            offsets[i] = reinterpret_cast<uintptr_t>(rows[i]) - reinterpret_cast<uintptr_t>(dynamic_);
        }
        if (counting_.enabled()) {
            uint32_t ideal = 0;
            outcome_.counters.shared_requests += 1;
            outcome_.counters.shared_wavefronts += wavefronts(offsets, 0xFF, 16, ideal);
            outcome_.counters.shared_ideal += ideal;
        }
        for (uint32_t l = 0; l < 32; ++l) {
            uint16_t pair[2];
            for (uint32_t e = 0; e < 2; ++e) {
                const uint8_t* const from =
                    transposed ? rows[l % 4 * 2 + e] + l / 4 * 2 : rows[l / 4] + (l % 4 * 2 + e) * 2;
                std::memcpy(&pair[e], from, 2);
            }
            std::memcpy(&static_cast<const Ldmatrix*>(lanes[l].arguments)->registers[matrix], pair, 4);
        }
    }
}

void Executor::operate(uint32_t w) {
    Fiber* const lanes = &fibers_[w * 32];
    const Warp& warp = warps_[w];
    const bool whole = warp.population == ~0u;
    switch (warp.operation) {
        case WarpOperation::kSync:
            return;
        case WarpOperation::kShuffle:
            return shuffle(lanes, warp.population);
        case WarpOperation::kBallot:
            return ballot(lanes, warp.population);
        case WarpOperation::kSum:
            return reduce(lanes, warp.population, [](float a, float b) { return a + b; });
        case WarpOperation::kMaximum:
            return reduce(lanes, warp.population, [](float a, float b) { return std::fmax(a, b); });
        default:
            break;
    }
    if (!whole)
        fail(Fault::kLaunchFailed, std::string(warp.site.operation) + " needs a warp of 32 lanes; this one has " +
                                       std::to_string(__builtin_popcount(warp.population)));
    switch (warp.operation) {
        case WarpOperation::kLdmatrix:
            return load_matrix(lanes);
        case WarpOperation::kMmaF16:
            outcome_.counters.matrix_products += 1;
            return multiply<16, uint16_t, float>(lanes, Half::wide);
        case WarpOperation::kMmaBf16:
            outcome_.counters.matrix_products += 1;
            return multiply<16, uint16_t, float>(lanes, Bfloat16::wide);
        case WarpOperation::kMmaS8:
            outcome_.counters.matrix_products += 1;
            return multiply<32, int8_t, int32_t>(lanes, [](int8_t v) { return int32_t{v}; });
        default:
            return;
    }
}

}  // namespace tessera::cuda::emulator
