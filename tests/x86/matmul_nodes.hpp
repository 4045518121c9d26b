// Weights of every format for tests of products, and what products should give.
#pragma once

#include "attention_nodes.hpp"
#include "tests/random_rows.hpp"

#include <tessera/ops.h>

#include <bit>
#include <string_view>

namespace tessera::tests {

inline bool is_plain(tsr_type type) {
    return cpu::format_size(type).elements == 1;
}

// A weight operand as f32, in its canonical order, of about the size that a model of `k` inputs has; its storage is
// then packed if asked.
inline std::vector<float> make_weight(Operand& operand, int64_t k, std::mt19937& random, bool packed) {
    tsr_tensor& t = operand.tensor;
    const auto elements = static_cast<size_t>(t.dims[0]), rows = static_cast<size_t>(t.dims[1] * t.dims[2]);
    fill_rows(t.type, operand.data(), elements, rows, 1.0f / std::sqrt(static_cast<float>(k)), random);
    std::vector<float> values(elements * rows);
    const size_t row_bytes = cpu::format_bytes(t.type, elements);
    for (size_t r = 0; r < rows; ++r) {
        cpu::decode_row(t.type, operand.data() + r * row_bytes, elements, &values[r * elements]);
    }
    if (packed) {
        const tsr_layout& layout = layout_of(t.type);
        const std::vector<char> canonical(operand.data(), operand.data() + row_bytes * rows);
        layout.pack(&layout, t.dims[0], t.dims[1] * t.dims[2] / layout.group_rows, canonical.data(), operand.data());
        t.layout = layout.name;
    }
    return values;
}

// A row as the integer kernels see it: blocks of 32 rounded to 127 steps of the largest magnitude.
inline std::vector<float> rounded(const float* x, size_t n) {
    std::vector<float> out(n);
    for (size_t b = 0; b < n; b += 32) {
        float largest = 0;
        for (size_t i = b; i < b + 32; ++i) largest = std::max(largest, std::fabs(x[i]));
        for (size_t i = b; i < b + 32; ++i) {
            out[i] = largest == 0 ? 0 : std::nearbyint(x[i] * (127.0f / largest)) * (largest / 127.0f);
        }
    }
    return out;
}

// What a weight of this type is multiplied with.
inline std::vector<float> seen_by(tsr_type type, const float* x, int64_t n) {
    return is_plain(type) ? std::vector<float>(x, x + n) : rounded(x, static_cast<size_t>(n));
}

inline double product(const float* weight, const float* x, int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += static_cast<double>(weight[i]) * x[i];
    return sum;
}

// ||got - wanted|| / ||wanted||, or by the root of `size` if that is larger: few outputs may happen to be small.
inline double error_of(const std::vector<double>& got, const std::vector<double>& wanted, double size = 0) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
        difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
        norm += wanted[i] * wanted[i];
    }
    const double e = std::sqrt(difference / std::max(norm, size));
    return e == e ? e : std::numeric_limits<double>::infinity();
}

// The ranges of a run whose rows are [begin, end), of TSR_RANGE_ROWS.
struct Ranges {
    tsr_range all[TSR_RANGE_COUNT] = {};
    Ranges(int32_t begin, int32_t end) { all[TSR_RANGE_ROWS] = {begin, end}; }
    operator const tsr_range*() const { return all; }
};

}  // namespace tessera::tests
