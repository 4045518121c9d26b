// Sums of the reference algorithms. Plain C++, so that the oracle of the tests is easy to verify.
#pragma once

#include <tessera/cpu/hadamard.hpp>
#include <tessera/cpu/rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace tessera::plain {

// Elements that are decoded at a time, on the stack. A multiple of every block.
inline constexpr int64_t kStrip = 256;

// Rows that share one decoded strip of a weight.
inline constexpr int64_t kRowsAtOnce = 16;

// Products of floats are exact in double. Eight partial sums, so that a compiler can use vectors without changing the
// order of additions.
inline double dot(const float* a, const float* b, int64_t n) noexcept {
    double lane[8] = {};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int64_t j = 0; j < 8; ++j) lane[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
    }
    double sum = 0;
    for (; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    for (int64_t j = 0; j < 4; ++j) sum += lane[j] + lane[j + 4];
    return sum;
}

// Multiplies each block of the row with Sylvester's Hadamard matrix, made orthonormal. In double, and not by the code
// that kernels use.
inline void hadamard(float* x, int64_t elements) {
    const int64_t n = cpu::hadamard_block(elements);
    std::vector<double> block(static_cast<size_t>(n));
    for (float* end = x + elements; x < end; x += n) {
        std::copy_n(x, n, block.begin());
        for (int64_t distance = n / 2; distance > 0; distance /= 2) {
            for (int64_t i = 0; i < n; ++i) {
                if (i & distance) continue;
                double &a = block[static_cast<size_t>(i)], &b = block[static_cast<size_t>(i + distance)];
                const double sum = a + b;
                b = a - b;
                a = sum;
            }
        }
        for (int64_t i = 0; i < n; ++i) {
            x[i] = static_cast<float>(block[static_cast<size_t>(i)] / std::sqrt(static_cast<double>(n)));
        }
    }
}

}  // namespace tessera::plain
