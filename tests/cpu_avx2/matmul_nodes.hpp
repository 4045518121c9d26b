// Weights of every format for tests of products, and what products should give.
#pragma once

#include "attention_nodes.hpp"
#include "plugins/cpu_avx2/layouts/layouts.hpp"
#include "plugins/cpu_avx2/matmul/matmul.hpp"
#include "plugins/cpu_avx2/moe/moe.hpp"

#include <tessera/ops.h>

#include <bit>
#include <string_view>

namespace tessera::tests {

inline constexpr tsr_type kAllTypes[] = {TSR_TYPE_F32,  TSR_TYPE_F16,  TSR_TYPE_BF16, TSR_TYPE_Q8_0,   TSR_TYPE_Q4_0,
                                         TSR_TYPE_Q4_1, TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q2_K,   TSR_TYPE_Q3_K,
                                         TSR_TYPE_Q4_K, TSR_TYPE_Q5_K, TSR_TYPE_Q6_K, TSR_TYPE_IQ4_NL, TSR_TYPE_IQ4_XS};

inline bool is_plain(tsr_type type) {
    return cpu::format_size(type).elements == 1;
}

inline const tsr_layout& layout_of(tsr_type type) {
    for (const tsr_layout* layout : cpu_avx2::weight_layouts()) {
        if (layout->type == type) return *layout;
    }
    throw std::runtime_error("no layout for this type");
}

inline const tsr_kernel& kernel_of(std::string_view op) {
    for (const auto list : {cpu_avx2::matmul_kernels(), cpu_avx2::matmul_id_kernels(), cpu_avx2::ffn_kernels()}) {
        for (const tsr_kernel* kernel : list) {
            if (op == kernel->op) return *kernel;
        }
    }
    throw std::runtime_error("no such kernel");
}

// Random bits, with scales that give weights of about the size that a model of `k` inputs has.
inline void fill_weights(tsr_type type, void* to, size_t elements, int64_t k, std::mt19937& random) {
    const float size = 1.0f / std::sqrt(static_cast<float>(k));
    if (is_plain(type)) {
        std::vector<float> values(elements);
        fill_normal(values.data(), elements, random, size);
        cpu::encode_row(type, values.data(), elements, to);
        return;
    }
    auto* bytes = static_cast<unsigned char*>(to);
    for (size_t i = 0; i < cpu::format_bytes(type, elements); ++i) bytes[i] = static_cast<unsigned char>(random());
    cpu::visit_block_format(type, [&]<class Block>() {
        std::uniform_real_distribution<float> spread(0.5f, 1.5f);
        const bool super = cpu::kBlockElements<Block> == cpu::kSuperBlock;
        for (size_t i = 0; i < elements / cpu::kBlockElements<Block>; ++i) {
            Block block;
            std::memcpy(&block, bytes + i * sizeof(Block), sizeof(Block));
            block.d = cpu::f32_to_f16(size * spread(random) / (super ? 256 : 16));
            if constexpr (requires { block.m; }) block.m = cpu::f32_to_f16(-size * spread(random));
            if constexpr (requires { block.dmin; }) block.dmin = cpu::f32_to_f16(size * spread(random) / 256);
            std::memcpy(bytes + i * sizeof(Block), &block, sizeof(Block));
        }
    });
}

// A weight operand as f32, in its canonical order; its storage is then packed if asked.
inline std::vector<float> make_weight(Operand& operand, int64_t k, std::mt19937& random, bool packed) {
    tsr_tensor& t = operand.tensor;
    const auto elements = static_cast<size_t>(t.dims[0] * t.dims[1] * t.dims[2]);
    fill_weights(t.type, operand.data(), elements, k, random);
    std::vector<float> values(elements);
    cpu::decode_row(t.type, operand.data(), elements, values.data());
    if (packed) {
        const tsr_layout& layout = layout_of(t.type);
        const std::vector<char> rows(operand.data(), operand.data() + cpu::format_bytes(t.type, elements));
        layout.pack(&layout, t.dims[0], t.dims[1] * t.dims[2] / layout.group_rows, rows.data(), operand.data());
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
