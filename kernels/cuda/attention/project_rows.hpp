// What kernels that project keys and values have in common.
#pragma once

#include "../rows.hpp"
#include "cache_rows.hpp"
#include "project.hpp"

namespace tessera::cuda_kernels {

// The latent rows that a block projects: `count` tokens of a page, as rows from `row` on of the window. No page: `page`
// is -1, and what is computed from it not-a-number.
struct LatentPage {
    int row, count, page;
};

// Page block_index().y of the window.
SIMT_DEVICE LatentPage latent_page(const Projection& p) {
    const int y = static_cast<int>(simt::block_index().y), index = p.window_page + y;
    // Its sequence: starts[low] <= index < starts[high].
    int low = 0, high = p.pages.sequences;
    if (index >= p.starts[high]) return {0, 0, -1};
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (p.starts[middle] <= index ? low : high) = middle;
    }
    const int first = (index - p.starts[low]) * kPageTokens;
    return {y * kPageTokens, simt::minimum(kPageTokens, p.ends[low] - first), page_of(p.pages, first, low)};
}

SIMT_DEVICE const char* latent_row(const Projection& p, const LatentPage& page, int token) {
    return at<char>(p.cache, page.page * p.page + token * p.token);
}

// Where output `o` of a token of the window goes.
template <class T>
SIMT_DEVICE T* projected(const Projection& p, const LatentPage& page, int token, int output) {
    const int of_head = p.nk + p.nv, head = output / of_head, i = output % of_head;
    const int64_t row = page.row + token;
    if (i < p.nk) return static_cast<T*>(p.k) + (row * p.heads + head) * (p.nk + p.unprojected) + i;
    return static_cast<T*>(p.v) + (row * p.heads + head) * p.nv + i - p.nk;
}

// The last elements of each key, those of the latent row as they are; by the blocks past the outputs, a head each.
template <class T, class Convert>
SIMT_DEVICE void copy_unprojected(const Projection& p, const LatentPage& page, int head, Convert&& convert) {
    const int blocks = (p.unprojected + kCacheBlock - 1) / kCacheBlock, dk = p.nk + p.unprojected;
    for (int i = static_cast<int>(simt::thread_index().x); i < page.count * blocks;
         i += static_cast<int>(simt::block_size().x)) {
        const int token = i / blocks, block = i % blocks;
        T* to = static_cast<T*>(p.k) + (int64_t{page.row + token} * p.heads + head) * dk + p.nk;
        const int count = simt::minimum(kCacheBlock, p.unprojected - block * kCacheBlock);
        if (page.page < 0) {
            for (int e = 0; e < count; ++e) to[block * kCacheBlock + e] = convert(simt::bits_as<float>(0x7FFFFFFFu));
            continue;
        }
        decode_cached_block(p.type, latent_row(p, page, token), p.latent + block * kCacheBlock, count,
                            [&](int e, float value) { to[block * kCacheBlock + e] = convert(value); });
    }
}

}  // namespace tessera::cuda_kernels
