// A layout of cache pages in q8_0: the codes of four tokens side by side, so that attention in bytes multiplies values
// where they lie. Pages have the same number of bytes as canonical ones.
//
// A page is TSR_PAGE_TOKENS rows, 64 bytes aligned: their f16 scales, [elements / 32][TSR_PAGE_TOKENS], then their
// codes, [TSR_PAGE_TOKENS / 4][elements][4], of each four tokens in the order 0 2 1 3: weights of two tokens in one
// lane become bytes in that order. No scale is negative.
#pragma once

#include "../kit.hpp"

#include <tessera/tensor.h>

#include <cstdint>

namespace tessera::x86 {

struct BytePages {
    static constexpr int64_t kBlock = 32;       // elements with one scale
    static constexpr int64_t kBlockBytes = 34;  // in canonical rows: an f16 scale and the codes
    static constexpr int64_t kTokens = 4;       // whose codes lie side by side

    int64_t elements = 0;  // of a row, a multiple of kBlock; 0: the cache is in another layout

    int64_t row_bytes() const noexcept { return elements / kBlock * kBlockBytes; }
    int64_t page_bytes() const noexcept { return TSR_PAGE_TOKENS * row_bytes(); }
    // [TSR_PAGE_TOKENS], of a block of its rows.
    static const uint16_t* scales(const char* page, int64_t block) noexcept {
        return reinterpret_cast<const uint16_t*>(page) + block * TSR_PAGE_TOKENS;
    }
    const int8_t* codes(const char* page) const noexcept {
        return reinterpret_cast<const int8_t*>(page) + elements / kBlock * TSR_PAGE_TOKENS * int64_t{sizeof(uint16_t)};
    }

    // Of the code of a token's first element, in codes(). Those of the next elements are kTokens apart.
    int64_t first_code(int64_t token) const noexcept {
        const int64_t within = token % kTokens;
        return (token - within) * elements + place_of(static_cast<int>(within));
    }
    // Of a token's code among those of its four.
    static constexpr int place_of(int within) noexcept { return within % 2 * 2 + within / 2; }

    // Block `block` of row `token` of a page, from a canonical one. Writes no byte of another row, so that rows can be
    // written by different threads.
    void write_block(const char* canonical, char* page, int64_t token, int64_t block) const noexcept;
};

// Whether rows of a cache can be in the layout.
constexpr bool takes_byte_pages(tsr_type type, int64_t elements) noexcept {
    return type == TSR_TYPE_Q8_0 && elements % BytePages::kBlock == 0 && elements > 0;
}

// Lives as long as the library; any thread.
const tsr_layout& byte_layout() noexcept;
// The layouts of a cache that can be in it, best first, for tsr_kernel_plan.
const char* const* byte_layout_names() noexcept;
// The pages of a cache; of no elements where it is in another layout. Compares names, so not for each run.
BytePages byte_pages_of(const tsr_tensor& cache) noexcept;

}  // namespace tessera::x86
