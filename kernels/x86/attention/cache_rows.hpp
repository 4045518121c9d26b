// New rows into the pages of a cache: canonical rows, which any kernel can read, or in a layout of this plugin's.
#pragma once

#include "../kit.hpp"
#include "../row_conversion.hpp"
#include "cache_write.hpp"

#include <tessera/cpu/page_table.hpp>

namespace tessera::x86::attention {

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
                encode_floats<Isa>(TSR_TYPE_Q8_0, x.floats(r) + b * BytePages::kBlock, BytePages::kBlock, block);
                byte_pages.write_block(block, cache.data + page * byte_pages.page_bytes(), token, b);
            }
        } else {
            encode_floats<Isa>(cache.tensor->type, x.floats(r), x.dim(0), cache.row(token, page));
        }
    }
}

}  // namespace tessera::x86::attention
