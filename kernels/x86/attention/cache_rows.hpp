// New rows into the pages of a cache: canonical rows, which any kernel can read, or in a layout of this plugin's.
#pragma once

#include "../kit.hpp"
#include "cache_write.hpp"

#include <tessera/cpu/page_table.hpp>

#include <cstring>

namespace tessera::x86::attention {

// One row of `elements` floats to `type`; the bits are those of encode_row for finite numbers. Others make their block
// of q8_0 NaN.
template <class Isa>
void encode_cache_row(tsr_type type, const float* x, int64_t elements, char* to) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    if (type == TSR_TYPE_F32) {
        std::memcpy(to, x, static_cast<size_t>(elements) * sizeof(float));
    } else if (type == TSR_TYPE_Q8_0) {
        for (int64_t i = 0; i < elements; i += 32, to += 34) {
            const float d = Isa::largest_of_floats(x + i, 32) / 127.0f;
            const uint16_t scale = f32_to_f16(d + d * 0.0f);  // an infinity gives NaN
            std::memcpy(to, &scale, 2);
            Isa::to_bytes(reinterpret_cast<int8_t*>(to + 2), x + i, d == 0.0f ? 0.0f : 1.0f / d);
        }
    } else if (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) {
        auto* halves = reinterpret_cast<uint16_t*>(to);
        int64_t i = 0;
        for (; i + kLanes <= elements; i += kLanes) {
            if (type == TSR_TYPE_F16)
                Isa::to_f16(halves + i, Isa::load(x + i));
            else
                Isa::to_bf16(halves + i, Isa::load(x + i));
        }
        for (; i < elements; ++i) halves[i] = type == TSR_TYPE_F16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
    } else {
        encode_row(type, x, static_cast<size_t>(elements), to);
    }
}

// As run_cache_write.
template <class Isa>
void run_cache_write(const CacheWrite& write, const tsr_run& run) {
    const tsr_node& node = *write.node;
    const Int16Pages& int16_pages = write.int16_pages;
    const BytePages& byte_pages = write.byte_pages;
    const View x = input(node, run, 0);
    const View positions = input(node, run, 1);
    const View sequences = input(node, run, 2);
    const View cache = output(node, run);
    const PageTable table(node, input(node, run, 3), cache.dim(2));
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const Share part = share(rows.end - rows.begin, run);
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        const int64_t position = positions.integer(r);
        const int64_t page = table.page(position, sequences.integer(r));
        const int64_t token = position % TSR_PAGE_TOKENS;
        if (int16_pages.lanes > 0) {
            int16_pages.write(x.floats(r), cache.data + page * int16_pages.page_bytes(), token);
        } else if (byte_pages.elements > 0) {
            char block[BytePages::kBlockBytes];
            for (int64_t b = 0; b < byte_pages.elements / BytePages::kBlock; ++b) {
                encode_cache_row<Isa>(TSR_TYPE_Q8_0, x.floats(r) + b * BytePages::kBlock, BytePages::kBlock, block);
                byte_pages.write_block(block, cache.data + page * byte_pages.page_bytes(), token, b);
            }
        } else {
            encode_cache_row<Isa>(cache.tensor->type, x.floats(r), x.dim(0), cache.row(token, page));
        }
    }
}

}  // namespace tessera::x86::attention
