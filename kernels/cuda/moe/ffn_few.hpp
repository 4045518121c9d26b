// Feed-forward networks of few rows with weights of block formats, in two kernels: gate, up, activation and conversion
// of the hidden elements for down; then down and the sum over experts.
#pragma once

#include "../matmul/few_rows_kernels.hpp"
#include "../matmul/quantise.hpp"
#include "ffn.hpp"

namespace tessera::cuda_kernels {

// The expert of a row's slot; -1: none; `experts`: the id is invalid.
SIMT_DEVICE int expert_of_slot(const Chosen& c, int row, int slot) {
    if (!c.ids) return 0;
    const int id = *at<int32_t>(c.ids, row * c.ids_row + slot * c.ids_slot);
    return id < -1 || id >= c.experts ? c.experts : id;
}

// Grid: x the hidden elements by 32, y the maximum of rows or fewer, z the slots.
template <int kType>
SIMT_DEVICE void multiply_gate_up(const GateUp& a) {
    using namespace simt;
    constexpr int kVectors = kKTileVectors<kType, 1>;
    SIMT_SHARED(UInt4, k_tiles, kGateUpWarps * kVectors);
    SIMT_SHARED(float, hidden, 64);
    const RowRange range = actual_rows(a.rows);
    const int block = static_cast<int>(block_index().x), slot = static_cast<int>(block_index().z);
    const int w = static_cast<int>(warp());
    for (int row = static_cast<int>(block_index().y); row < range.end - range.begin;
         row += static_cast<int>(grid_size().y)) {
        const int expert = expert_of_slot(a.chosen, range.begin + row, slot);
        if (expert < 0 || expert >= a.chosen.experts) continue;
        const ActivationRow x[1] = {ActivationRow::of(at<char>(a.x, row * a.x_row), a.k)};
        for (int i = w; i < 64; i += kGateUpWarps) {  // 32 of gate, 32 of up
            const int64_t output = 32 * block + i % 32;
            const char* weight = i < 32 ? at<char>(a.gate, output * a.gate_row + expert * a.gate_expert)
                                        : at<char>(a.up, output * a.up_row + expert * a.up_expert);
            float product[1] = {0};
            add_products<kType>(weight, a.k, x, product, k_tiles + w * kVectors);
            const float sum = warp_sum(product[0]);
            if (lane() == 0) hidden[i] = sum;
        }
        sync_block();
        if (w == 0) {
            const float gate = hidden[lane()];
            write_activation(gate / (1.f + expf(-gate)) * hidden[32 + lane()],
                             at<char>(a.hidden, (static_cast<int64_t>(row) * a.chosen.slots + slot) * a.hidden_row),
                             block, a.hidden_elements, a.sums != 0, a.interleaved != 0);
        }
        sync_block();  // the next row's elements come after these have been read
    }
}

// Grid: x the outputs by kDownWarps, y the maximum of rows or fewer.
template <int kType>
SIMT_DEVICE void multiply_down(const Down& a) {
    using namespace simt;
    constexpr int kVectors = kKTileVectors<kType, 1>;
    SIMT_SHARED(UInt4, k_tiles, kDownWarps * kVectors);
    const RowRange range = actual_rows(a.rows);
    const int output = static_cast<int>(block_index().x) * kDownWarps + static_cast<int>(warp());
    if (output >= a.n) return;
    for (int row = static_cast<int>(block_index().y); row < range.end - range.begin;
         row += static_cast<int>(grid_size().y)) {
        float sum = 0;
        for (int slot = 0; slot < a.chosen.slots; ++slot) {
            const int expert = expert_of_slot(a.chosen, range.begin + row, slot);
            if (expert < 0) continue;
            if (expert >= a.chosen.experts) {
                sum = bits_as<float>(0x7FC00000u);
                continue;
            }
            const ActivationRow x[1] = {ActivationRow::of(
                at<char>(a.hidden, (static_cast<int64_t>(row) * a.chosen.slots + slot) * a.hidden_row), a.k)};
            float product[1] = {0};
            add_products<kType>(at<char>(a.weight, output * a.weight_row + expert * a.weight_expert), a.k, x, product,
                                k_tiles + warp() * kVectors);
            const float factor =
                a.factors ? *at<float>(a.factors, (range.begin + row) * a.factors_row + slot * a.factors_slot) : 1.f;
            sum = fmaf(factor, warp_sum(product[0]), sum);
        }
        if (lane() == 0) *at<float>(a.y, (range.begin + row) * a.y_row + 4 * static_cast<int64_t>(output)) = sum;
    }
}

template <int kType>
constexpr int gate_up_blocks() {
    constexpr bool kLarge = Units<kType>::kSubBlocks > 2 || kType == TSR_TYPE_IQ5_K || kType == TSR_TYPE_IQ5_KS ||
                            kType == TSR_TYPE_IQ6_K || kType == TSR_TYPE_IQ3_S;
    return !kLarge && SIMT_ARCH >= 800 ? 3 : 2;
}

}  // namespace tessera::cuda_kernels

#define TESSERA_FFN(name, id)                                                                                         \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kGateUpWarps, (tessera::cuda_kernels::gate_up_blocks<TSR_TYPE_##id>()))   \
    gate_up_##name(tessera::cuda_kernels::GateUp a) {                                                                 \
        tessera::cuda_kernels::multiply_gate_up<TSR_TYPE_##id>(a);                                                    \
    }                                                                                                                 \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kDownWarps, (tessera::cuda_kernels::few_rows_blocks<TSR_TYPE_##id, 1>())) \
    down_##name(tessera::cuda_kernels::Down a) {                                                                      \
        tessera::cuda_kernels::multiply_down<TSR_TYPE_##id>(a);                                                       \
    }
#define TESSERA_FFN_OF(name, id) TESSERA_UNALIGNED(TESSERA_FFN, name, id)
