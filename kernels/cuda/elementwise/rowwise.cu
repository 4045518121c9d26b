// add, mul, silu_mul, glu, add_id, weighted_sum, rope, scale, scale_by_position, sigmoid_mul and hadamard.
#include "../overlap.hpp"
#include "rowwise.hpp"

namespace tessera::cuda_kernels {
namespace {

// Grid: x the elements by kRowElements, y the maximum of rows or fewer, z the inner rows. y may be a or b: a thread
// writes the elements that it alone read.
template <class Function>
SIMT_DEVICE void for_pairs(const Pointwise& p, Function&& function) {
    using namespace simt;
    const RowRange range = awaited_rows(p.rows);
    const int inner = static_cast<int>(block_index().z);
    const int64_t i = inner % p.inner[0], j = inner / p.inner[0];
    const int begin = static_cast<int>(block_index().x) * kRowElements, end = minimum(begin + kRowElements, p.n);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const auto* a = at<float>(p.a, i * p.a_strides[0] + j * p.a_strides[1] + row * p.a_strides[2]);
        const auto* b = at<float>(p.b, i * p.b_strides[0] + j * p.b_strides[1] + row * p.b_strides[2]);
        auto* y = at<float>(p.y, i * p.y_strides[0] + j * p.y_strides[1] + row * p.y_strides[2]);
        constexpr int kElements = kRowElements / kRowThreads;  // of a thread; all are read before one is written
        const int first = begin + static_cast<int>(thread_index().x);
        float of_a[kElements] = {}, of_b[kElements] = {};
        SIMT_UNROLL
        for (int k = 0; k < kElements; ++k) {
            const int e = first + k * kRowThreads;
            if (e >= end) continue;
            of_a[k] = a[e];
            of_b[k] = b[e];
        }
        SIMT_UNROLL
        for (int k = 0; k < kElements; ++k) {
            const int e = first + k * kRowThreads;
            if (e < end) y[e] = function(of_a[k], of_b[k]);
        }
    }
}

// Elements `first` and `second` of a head.
struct RotatedPair {
    const float* x;
    float* y;
    int pair, first, second;
};
constexpr int kRotatedAhead = 2;  // of a thread

struct Angle {
    float sine, cosine;
};

// Sine and cosine of an angle in radians. Positions times frequencies need more digits than a float has, so the angle
// is reduced to a quarter circle in double; Taylor's series are then exact to a float's last place.
SIMT_DEVICE Angle sine_and_cosine(double angle) {
    constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    const double quarters = angle * 0.63661977236758134308 + kRound;
    const auto quadrant = static_cast<unsigned>(simt::bits_as<unsigned long long>(quarters)) & 3u;
    const double whole = quarters - kRound;
    const auto x = static_cast<float>(angle - whole * 1.57079632679489655800 - whole * 6.12323399573676603587e-17);
    const float s = x * x;
    const float sine = x + x * s * (-1.f / 6 + s * (1.f / 120 + s * (-1.f / 5040 + s * (1.f / 362880))));
    const float cosine =
        1.f + s * (-0.5f + s * (1.f / 24 + s * (-1.f / 720 + s * (1.f / 40320 - s * (1.f / 3628800)))));
    const float swapped_sine = quadrant & 1 ? cosine : sine, swapped_cosine = quadrant & 1 ? sine : cosine;
    return {quadrant & 2 ? -swapped_sine : swapped_sine, (quadrant + 1) & 2 ? -swapped_cosine : swapped_cosine};
}

// Of a whole number from 1: 2^e * m with m below 2, and ln m = 2 atanh((m - 1) / (m + 1)), to a float's last place.
SIMT_DEVICE double natural_logarithm(double whole) {
    const unsigned long long bits = simt::bits_as<unsigned long long>(whole);
    const int exponent = static_cast<int>(bits >> 52) - 1023;
    const double m = simt::bits_as<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
    const double s = (m - 1) / (m + 1), square = s * s;
    double sum = 0;
    for (int i = 19; i > 0; i -= 2) sum = sum * square + 1.0 / i;
    return exponent * 0.69314718055994530942 + 2 * s * sum;
}

SIMT_DEVICE float silu(float v) {
    return v / (1.f + simt::expf(-v));
}

// NaN stays NaN.
SIMT_DEVICE float within(float v, float limit) {
    return v > limit ? limit : v < -limit ? -limit : v;
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

SIMT_KERNEL(kRowThreads, 4) add(Pointwise p) {
    for_pairs(p, [](float a, float b) { return a + b; });
}

SIMT_KERNEL(kRowThreads, 4) mul(Pointwise p) {
    for_pairs(p, [](float a, float b) { return a * b; });
}

SIMT_KERNEL(kRowThreads, 4) silu_mul(Pointwise p) {
    for_pairs(p, [](float gate, float up) { return gate / (1.f + simt::expf(-gate)) * up; });
}

SIMT_KERNEL(kRowThreads, 4) glu(Glu p) {
    const float limit = p.limit, alpha = p.alpha;
    if (p.activation == 1) {
        for_pairs(p.pairs, [](float gate, float up) {
            // (1 + tanh(z)) / 2 is the sigmoid of 2 z.
            const float z = 1.5957691216057308f * gate * (1.f + 0.044715f * gate * gate);
            return gate / (1.f + simt::expf(-z)) * up;
        });
    } else if (p.activation == 2) {
        for_pairs(p.pairs, [=](float gate, float up) {
            const float g = gate > limit ? limit : gate;
            return g / (1.f + simt::expf(-alpha * g)) * (within(up, limit) + 1.f);
        });
    } else {
        for_pairs(p.pairs, [=](float gate, float up) {
            const float active = silu(gate);
            return limit == 0 ? active * up : (active > limit ? limit : active) * within(up, limit);
        });
    }
}

// Grid: x the elements by kRowElements, y the maximum of rows or fewer, z the slots. y may be x.
SIMT_KERNEL(kRowThreads, 4) add_id(AddId p) {
    using namespace simt;
    const RowRange range = actual_rows(p.rows);
    const int slot = static_cast<int>(block_index().z);
    const int begin = static_cast<int>(block_index().x) * kRowElements, end = minimum(begin + kRowElements, p.n);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const int id = *at<int32_t>(p.ids, row * p.ids_row + slot * p.ids_slot);
        const bool named = id >= 0 && id < p.experts;
        const auto* bias = at<float>(p.bias, named ? id * p.bias_row : 0);
        const auto* x = at<float>(p.x, row * p.x_row + slot * p.x_slot);
        auto* y = at<float>(p.y, row * p.y_row + slot * p.y_slot);
        for (int e = begin + static_cast<int>(thread_index().x); e < end; e += kRowThreads)
            y[e] = named ? x[e] + bias[e] : x[e];
    }
}

// Grid: x the elements by kRowElements, y the maximum of rows or fewer.
SIMT_KERNEL(kRowThreads, 4) weighted_sum(WeightedSum p) {
    using namespace simt;
    const RowRange range = awaited_rows(p.rows);
    const int begin = static_cast<int>(block_index().x) * kRowElements, end = minimum(begin + kRowElements, p.n);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        for (int e = begin + static_cast<int>(thread_index().x); e < end; e += kRowThreads) {
            float sum = 0;
            for (int slot = 0; slot < p.slots; ++slot) {
                const float weight = *at<float>(p.weights, row * p.weights_row + slot * p.weights_slot);
                sum = fmaf(weight, at<float>(p.x, row * p.x_row + slot * p.x_slot)[e], sum);
            }
            at<float>(p.y, row * p.y_row)[e] = sum;
        }
    }
}

// Grid: x the heads by kRopeHeads, y the maximum of rows or fewer. y may be x.
SIMT_KERNEL(kRopeThreads, 4) rope(Rope p) {
    using namespace simt;
    SIMT_SHARED(float, sines, kMaximumPairs);
    SIMT_SHARED(float, cosines, kMaximumPairs);
    const RowRange range = awaited_rows(p.rows);
    const int first_head = static_cast<int>(block_index().x) * kRopeHeads;
    const int heads = minimum(kRopeHeads, p.heads - first_head), thread = static_cast<int>(thread_index().x);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const auto place_of = [&](int i) {
            const int head = first_head + i / p.pairs, pair = i % p.pairs;
            return RotatedPair{at<float>(p.x, head * p.x_head + row * p.x_row),
                               at<float>(p.y, head * p.y_head + row * p.y_row), pair, p.neox ? pair : 2 * pair,
                               p.neox ? pair + p.pairs : 2 * pair + 1};
        };
        // The first ones are on their way while the angles are computed.
        float ahead[kRotatedAhead][2] = {};
        SIMT_UNROLL
        for (int k = 0; k < kRotatedAhead; ++k) {
            const int i = thread + k * kRopeThreads;
            if (i >= heads * p.pairs) continue;
            const RotatedPair place = place_of(i);
            ahead[k][0] = place.x[place.first];
            ahead[k][1] = place.x[place.second];
        }
        sync_block();  // the angles of the row before have been read
        if (thread < p.pairs) {
            const double position = *at<int32_t>(p.positions, row * p.position);
            double frequency = p.frequencies[thread];
            if (p.factors) frequency /= load_global<float>(at<float>(p.factors, 0) + thread);
            const Angle angle = sine_and_cosine(position * frequency);
            sines[thread] = angle.sine * p.magnitude;
            cosines[thread] = angle.cosine * p.magnitude;
        }
        sync_block();
        const auto rotate = [&](const RotatedPair& place, float a, float b) {
            place.y[place.first] = a * cosines[place.pair] - b * sines[place.pair];
            place.y[place.second] = a * sines[place.pair] + b * cosines[place.pair];
        };
        SIMT_UNROLL
        for (int k = 0; k < kRotatedAhead; ++k) {
            const int i = thread + k * kRopeThreads;
            if (i < heads * p.pairs) rotate(place_of(i), ahead[k][0], ahead[k][1]);
        }
        for (int i = thread + kRotatedAhead * kRopeThreads; i < heads * p.pairs; i += kRopeThreads) {
            const RotatedPair place = place_of(i);
            rotate(place, place.x[place.first], place.x[place.second]);
        }
    }
}

// Grid: x the elements by kRowElements, y the maximum of rows or fewer, z the inner rows. y may be x.
SIMT_KERNEL(kRowThreads, 4) scale_by_position(ScaleByPosition p) {
    using namespace simt;
    SIMT_SHARED(float, factor, 1);
    const RowRange range = awaited_rows(p.rows);
    const int inner = static_cast<int>(block_index().z), thread = static_cast<int>(thread_index().x);
    const int64_t i = inner % p.inner[0], j = inner / p.inner[0];
    const int begin = static_cast<int>(block_index().x) * kRowElements, end = minimum(begin + kRowElements, p.n);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        sync_block();  // the factor of the row before has been read
        if (thread == 0 && !p.positions) factor[0] = static_cast<float>(p.scale);
        if (thread == 0 && p.positions) {
            const int64_t periods = (*at<int32_t>(p.positions, row * p.position) + p.offset) / p.length;
            factor[0] =
                static_cast<float>(1 + p.scale * natural_logarithm(static_cast<double>(periods < 0 ? 1 : periods + 1)));
        }
        sync_block();
        const auto* x = at<float>(p.x, i * p.x_strides[0] + j * p.x_strides[1] + row * p.x_strides[2]);
        auto* y = at<float>(p.y, i * p.y_strides[0] + j * p.y_strides[1] + row * p.y_strides[2]);
        for (int e = begin + thread; e < end; e += kRowThreads) y[e] = x[e] * factor[0];
    }
}

// Grid: x the elements by kRowElements, y the maximum of rows or fewer, z the inner rows, of which b has a number each.
// y may be a.
SIMT_KERNEL(kRowThreads, 4) sigmoid_mul(Pointwise p) {
    using namespace simt;
    const RowRange range = awaited_rows(p.rows);
    const int inner = static_cast<int>(block_index().z);
    const int begin = static_cast<int>(block_index().x) * kRowElements, end = minimum(begin + kRowElements, p.n);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const auto* a = at<float>(p.a, inner * p.a_strides[0] + row * p.a_strides[2]);
        auto* y = at<float>(p.y, inner * p.y_strides[0] + row * p.y_strides[2]);
        const float gate = *at<float>(p.b, inner * p.b_strides[0] + row * p.b_strides[2]);
        const float factor = 1.f / (1.f + expf(-gate));
        for (int e = begin + static_cast<int>(thread_index().x); e < end; e += kRowThreads) y[e] = a[e] * factor;
    }
}

// Grid: x the elements by `part`, y the maximum of rows or fewer, z the inner rows. y may be x.
SIMT_KERNEL(kRowThreads, 4) hadamard(Hadamard h) {
    using namespace simt;
    SIMT_SHARED(float, values, kHadamardElements);
    const RowRange range = awaited_rows(h.rows);
    const int inner = static_cast<int>(block_index().z), thread = static_cast<int>(thread_index().x);
    const int64_t i = inner % h.inner[0], j = inner / h.inner[0];
    const int begin = static_cast<int>(block_index().x) * h.part, count = minimum(h.part, h.n - begin);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const auto* x = at<float>(h.x, i * h.x_strides[0] + j * h.x_strides[1] + row * h.x_strides[2]) + begin;
        auto* y = at<float>(h.y, i * h.y_strides[0] + j * h.y_strides[1] + row * h.y_strides[2]) + begin;
        sync_block();  // the values of the row before have been read
        for (int e = thread; e < count; e += kRowThreads) values[e] = x[e];
        for (int half = 1; half < h.block; half *= 2) {
            sync_block();
            for (int pair = thread; pair < count / 2; pair += kRowThreads) {
                const int first = pair / half * 2 * half + pair % half;
                const float a = values[first], b = values[first + half];
                values[first] = a + b;
                values[first + half] = a - b;
            }
        }
        sync_block();
        for (int e = thread; e < count; e += kRowThreads) y[e] = values[e] * h.scale;
    }
}
