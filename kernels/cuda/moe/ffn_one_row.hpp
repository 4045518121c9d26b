// Feed-forward networks of few rows with the formats and the alignment of one_row.hpp: as in ffn_few.hpp, but several
// rows of the weight a warp, and the first part of the next ones is on its way before the last part of these is
// multiplied.
#pragma once

#include "../matmul/one_row.hpp"
#include "ffn_few.hpp"

namespace tessera::cuda_kernels {

// Grid: x the hidden elements by 32, y the maximum of rows or fewer, z the slots.
template <int kType, class Vector>
SIMT_DEVICE void multiply_gate_up_rows(const GateUp& a) {
    using namespace simt;
    constexpr int kOutputs = ffn_outputs_of_warp(kType), kStep = kGateUpWarps * kOutputs;
    using Stream = WideStreamOf<kType, kOutputs, Vector>;
    SIMT_SHARED(UInt4, parts, kGateUpWarps * Stream::kSharedBytes / 16);
    SIMT_SHARED(float, hidden, 64);
    const unsigned block = block_index().x, slot = block_index().z;
    const int bytes = row_bytes_of<kType>(a.k), begin = static_cast<int>(warp()) * kOutputs;
    if (!a.chosen.ids) {  // which expert it is, is known
        SIMT_UNROLL
        for (int i = 0; i < 32; i += kStep) {
            const int64_t first = 32 * static_cast<int64_t>(block) + begin + i;
            if (begin + i < 32) {
                ask_for_rows(at<char>(a.gate, first * a.gate_row), a.gate_row, kOutputs, bytes);
                ask_for_rows(at<char>(a.up, first * a.up_row), a.up_row, kOutputs, bytes);
            }
        }
    }
    const RowRange range = awaited_rows(a.rows);
    const WideUnit<kType> unit(lane());
    for (int row = static_cast<int>(block_index().y); row < range.end - range.begin;
         row += static_cast<int>(grid_size().y)) {
        const int expert = expert_of_slot(a.chosen, range.begin + row, static_cast<int>(slot));
        if (expert < 0 || expert >= a.chosen.experts) continue;
        Stream stream;
        // Rows i and so on of 32 of gate and 32 of up.
        const auto begin_with = [&](int i) {
            const unsigned output = 32 * block + static_cast<unsigned>(i) % 32, of = static_cast<unsigned>(expert);
            const char* first = i < 32 ? at<char>(a.gate, output * a.gate_row + of * a.gate_expert)
                                       : at<char>(a.up, output * a.up_row + of * a.up_expert);
            const char* rows[kOutputs];
            SIMT_UNROLL
            for (int r = 0; r < kOutputs; ++r) rows[r] = first + r * (i < 32 ? a.gate_row : a.up_row);
            stream.begin(rows, bytes);
        };
        begin_with(begin);
        for (int i = begin; i < 64; i += kStep) {
            float sums[kOutputs] = {};
            add_products<kType, Vector>(stream, unit, a.k, at<char>(a.x, row * a.x_row), sums,
                                        reinterpret_cast<char*>(parts) + warp() * Stream::kSharedBytes, [&] {
                                            if (i + kStep < 64) begin_with(i + kStep);
                                        });
            const float sum = sums_of_rows(sums);
            if (has_sum<kOutputs>()) hidden[i + static_cast<int>(row_of_sum<kOutputs>())] = sum;
        }
        sync_block();
        if (warp() == 0) {
            const float gate = hidden[lane()];
            write_activation(gate / (1.f + expf(-gate)) * hidden[32 + lane()],
                             at<char>(a.hidden, (row * static_cast<unsigned>(a.chosen.slots) + slot) * a.hidden_row),
                             static_cast<int>(block), a.hidden_elements, a.sums != 0, a.interleaved != 0);
        }
        sync_block();  // the next row's elements come after these have been read
    }
}

// The first slot from `slot` on that has an expert, or the number of slots; `invalid` becomes true if there is an
// invalid one before it.
SIMT_DEVICE int slot_with_expert(const Chosen& c, int row, int slot, int& expert, bool& invalid) {
    for (; slot < c.slots; ++slot) {
        expert = expert_of_slot(c, row, slot);
        if (expert >= 0 && expert < c.experts) break;
        if (expert >= c.experts) invalid = true;
    }
    return slot;
}

// Grid: x the outputs by kDownWarps times ffn_outputs_of_warp(), y the maximum of rows or fewer.
template <int kType, class Vector>
SIMT_DEVICE void multiply_down_rows(const Down& a) {
    using namespace simt;
    constexpr int kOutputs = ffn_outputs_of_warp(kType);
    using Stream = WideStreamOf<kType, kOutputs, Vector>;
    SIMT_SHARED(UInt4, parts, kDownWarps * Stream::kSharedBytes / 16);
    const unsigned output = (block_index().x * kDownWarps + warp()) * kOutputs, n = static_cast<unsigned>(a.n);
    const int bytes = row_bytes_of<kType>(a.k);
    if (!a.chosen.ids && output < n)
        ask_for_rows(at<char>(a.weight, output * a.weight_row), a.weight_row,
                     minimum(static_cast<unsigned>(kOutputs), n - output), bytes);
    const RowRange range = awaited_rows(a.rows);
    if (output >= n) return;
    const WideUnit<kType> unit(lane());
    for (int row = static_cast<int>(block_index().y); row < range.end - range.begin;
         row += static_cast<int>(grid_size().y)) {
        Stream stream;
        const auto begin_with = [&](int expert) {
            const char* weight[kOutputs];
            rows_from(at<char>(a.weight, output * a.weight_row + static_cast<unsigned>(expert) * a.weight_expert),
                      a.weight_row, output, a.n, weight);
            stream.begin(weight, bytes);
        };
        float totals[kOutputs] = {};
        bool invalid = false;
        int expert = 0, slot = slot_with_expert(a.chosen, range.begin + row, 0, expert, invalid);
        if (slot < a.chosen.slots) begin_with(expert);
        while (slot < a.chosen.slots) {
            const int next = slot_with_expert(a.chosen, range.begin + row, slot + 1, expert, invalid);
            float sums[kOutputs] = {};
            add_products<kType, Vector>(
                stream, unit, a.k,
                at<char>(a.hidden, (static_cast<int64_t>(row) * a.chosen.slots + slot) * a.hidden_row), sums,
                reinterpret_cast<char*>(parts) + warp() * Stream::kSharedBytes, [&] {
                    if (next < a.chosen.slots) begin_with(expert);
                });
            const float factor =
                a.factors ? *at<float>(a.factors, (range.begin + row) * a.factors_row + slot * a.factors_slot) : 1.f;
            SIMT_UNROLL
            for (int r = 0; r < kOutputs; ++r) totals[r] = fmaf(factor, sums[r], totals[r]);
            slot = next;
        }
        const float total = sums_of_rows(totals);
        const unsigned mine = output + row_of_sum<kOutputs>();
        if (has_sum<kOutputs>() && mine < static_cast<unsigned>(a.n))
            at<float>(a.y, (range.begin + row) * a.y_row)[mine] = invalid ? bits_as<float>(0x7FC00000u) : total;
    }
}

template <int kType>
constexpr int down_rows_blocks() {
    return kType == TSR_TYPE_Q4_0 ? 5 : 4;
}

}  // namespace tessera::cuda_kernels

#define TESSERA_FFN_ONE_ROW_AS(name, id, suffix, Vector)                                                 \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kGateUpWarps, 2)                                             \
    gate_up_##name##suffix(tessera::cuda_kernels::GateUp a) {                                            \
        tessera::cuda_kernels::multiply_gate_up_rows<id, Vector>(a);                                     \
    }                                                                                                    \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kDownWarps, (tessera::cuda_kernels::down_rows_blocks<id>())) \
    down_##name##suffix(tessera::cuda_kernels::Down a) {                                                 \
        tessera::cuda_kernels::multiply_down_rows<id, Vector>(a);                                        \
    }
// As those of one_row.hpp.
#if SIMT_ARCH >= 610
#define TESSERA_FFN_ONE_ROW(name, id)                               \
    TESSERA_FFN_ONE_ROW_AS(name, TSR_TYPE_##id, _by16, simt::UInt4) \
    TESSERA_FFN_ONE_ROW_AS(name, TSR_TYPE_##id, _by8, simt::UInt2)
#define TESSERA_FFN_ONE_ROW_BY_8(name, id) TESSERA_FFN_ONE_ROW(name, id)
#define TESSERA_FFN_ONE_ROW_BY_16(name, id) TESSERA_FFN_ONE_ROW_AS(name, TSR_TYPE_##id, _by16, simt::UInt4)
#else
#define TESSERA_FFN_ONE_ROW(name, id)
#define TESSERA_FFN_ONE_ROW_BY_8(name, id) TESSERA_FFN(name, id)
#define TESSERA_FFN_ONE_ROW_BY_16(name, id) TESSERA_FFN(name, id)
#endif
