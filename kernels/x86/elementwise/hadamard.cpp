#include "rows.hpp"

#include <tessera/cpu/hadamard.hpp>
#include <tessera/cpu/rows.hpp>
#include <tessera/ops.h>

#include <immintrin.h>

#include <algorithm>
#include <cmath>

namespace tessera::x86 {
namespace {

constexpr int64_t kLanes = 8;

// Differences where `signs` has bits, sums elsewhere, of pairs that `swapped` has exchanged.
__m256 butterfly(__m256 v, __m256 swapped, __m256 signs) noexcept {
    return _mm256_add_ps(_mm256_xor_ps(v, signs), swapped);
}

// One block of n numbers, a power of two and at least kLanes: the distances 1, 2 and 4 inside each vector, then two
// distances at a time between vectors. `from` may be `to`.
void transform(const float* from, float* to, int64_t n) noexcept {
    const __m256 ones = _mm256_setr_ps(0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f);
    const __m256 twos = _mm256_setr_ps(0.0f, 0.0f, -0.0f, -0.0f, 0.0f, 0.0f, -0.0f, -0.0f);
    const __m256 fours = _mm256_setr_ps(0.0f, 0.0f, 0.0f, 0.0f, -0.0f, -0.0f, -0.0f, -0.0f);
    const __m256 scale = _mm256_set1_ps(1.0f / std::sqrt(static_cast<float>(n)));
    for (int64_t i = 0; i < n; i += kLanes) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(from + i), scale);
        v = butterfly(v, _mm256_permute_ps(v, 0b10'11'00'01), ones);
        v = butterfly(v, _mm256_permute_ps(v, 0b01'00'11'10), twos);
        v = butterfly(v, _mm256_permute2f128_ps(v, v, 1), fours);
        _mm256_storeu_ps(to + i, v);
    }
    int64_t half = kLanes;
    for (; 4 * half <= n; half *= 4) {
        for (int64_t first = 0; first < n; first += 4 * half) {
            for (float* x = to + first; x < to + first + half; x += kLanes) {
                const __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + half);
                const __m256 c = _mm256_loadu_ps(x + 2 * half), d = _mm256_loadu_ps(x + 3 * half);
                const __m256 sum_ab = _mm256_add_ps(a, b), difference_ab = _mm256_sub_ps(a, b);
                const __m256 sum_cd = _mm256_add_ps(c, d), difference_cd = _mm256_sub_ps(c, d);
                _mm256_storeu_ps(x, _mm256_add_ps(sum_ab, sum_cd));
                _mm256_storeu_ps(x + half, _mm256_add_ps(difference_ab, difference_cd));
                _mm256_storeu_ps(x + 2 * half, _mm256_sub_ps(sum_ab, sum_cd));
                _mm256_storeu_ps(x + 3 * half, _mm256_sub_ps(difference_ab, difference_cd));
            }
        }
    }
    if (half < n) {
        for (float* x = to; x < to + half; x += kLanes) {
            const __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + half);
            _mm256_storeu_ps(x, _mm256_add_ps(a, b));
            _mm256_storeu_ps(x + half, _mm256_sub_ps(a, b));
        }
    }
}

void run_hadamard(const tsr_node& node, const tsr_run& run) noexcept {
    const cpu::View x = cpu::input(node, run, 0);
    const cpu::View out = cpu::output(node, run);
    const int64_t block = cpu::hadamard_block(x.dim(0));
    const int64_t blocks = x.dim(0) / block;
    const cpu::RowList rows(*x.tensor, run);
    const cpu::Share part = cpu::share(rows.count() * blocks, run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const float* from = rows.floats(x, item / blocks) + item % blocks * block;
        float* to = rows.floats(out, item / blocks) + item % blocks * block;
        if (block >= kLanes) {
            transform(from, to, block);
        } else {
            if (from != to) std::copy_n(from, block, to);
            cpu::hadamard(to, block);
        }
    }
}

}  // namespace

constinit const RowOp kHadamard[] = {{TSR_OP_HADAMARD, run_row_op<run_hadamard>}, {}};

}  // namespace tessera::x86
