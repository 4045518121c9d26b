// Rows in the basis of a Hadamard matrix (Sylvester's construction): outliers are spread over all elements, so that
// blocks of few bits lose less precision (arXiv 2404.00456). Dot products of two rows do not change.
#pragma once

#include <cmath>
#include <cstdint>

namespace tessera::cpu {

// Elements that one matrix mixes: the largest power of two that divides a row, so a row is a whole number of blocks.
constexpr int64_t hadamard_block(int64_t elements) noexcept {
    return elements & -elements;
}

// Multiplies each block of the row with the matrix, which is orthonormal and symmetric: applied twice it is the
// identity.
inline void hadamard(float* x, int64_t elements) noexcept {
    const int64_t block = hadamard_block(elements);
    const float scale = 1.0f / std::sqrt(static_cast<float>(block));
    for (float* end = x + elements; x < end; x += block) {
        for (int64_t half = 1; half < block; half *= 2) {
            for (int64_t first = 0; first < block; first += 2 * half) {
                for (int64_t i = first; i < first + half; ++i) {
                    const float a = x[i], b = x[i + half];
                    x[i] = a + b;
                    x[i + half] = a - b;
                }
            }
        }
        for (int64_t i = 0; i < block; ++i) x[i] *= scale;
    }
}

}  // namespace tessera::cpu
