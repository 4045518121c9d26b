// What attention on tensor cores reads: queries, and tiles of the cache. In shared memory 8 elements of 16 bits are a
// chunk; chunk c of row r lies at place c ^ (r % 8), so that neither ldmatrix nor the copies meet conflicts of banks.
#pragma once

#include "../products/decode_f16.hpp"
#include "kernels/cuda/attention/flash_rows.hpp"
#include "kernels/cuda/attention/flash_tiles.hpp"

namespace tessera::cuda_kernels {

template <class T>
inline constexpr bool kIsHalf = false;
template <>
inline constexpr bool kIsHalf<simt::half_t> = true;

// What a block works on, kept in shared memory while all registers are needed: the rows of one sequence.
struct FlashRun {
    FlashRows rows;
    int32_t begin, end;  // rows of the tile
    int32_t missing;     // the first token whose page there is not
};

// Queries as 16-bit elements, row after row. Each row is multiplied with the power of two that brings its largest
// element to 2^14 .. 2^15: nothing overflows, and f16 loses small elements only beside ones 2^28 times as large. The
// factor is taken out again with the scale of the scores.
template <class Tile, class Element>
SIMT_DEVICE void load_queries(const Attention& p, const FlashRows& rows, FlashRow* row_data, unsigned char* to) {
    using namespace simt;
    constexpr int kPairs = Tile::kDk / 64;  // of a lane
    const int l = static_cast<int>(lane());
    for (int m = static_cast<int>(warp()); m < Tile::kRows; m += Tile::kWarps) {
        const int index = rows.first + m;
        float low[kPairs], high[kPairs], largest = 0;
        if (index < rows.total) {
            const float* q = query_of(p, rows, index);
            SIMT_UNROLL
            for (int i = 0; i < kPairs; ++i) {
                low[i] = q[2 * (l + 32 * i)];
                high[i] = q[2 * (l + 32 * i) + 1];
                largest = fmaxf(largest, fmaxf(fabsf(low[i]), fabsf(high[i])));
            }
        } else {
            SIMT_UNROLL
            for (int i = 0; i < kPairs; ++i) low[i] = high[i] = 0;
        }
        const int exponent = static_cast<int>(bits_as<uint32_t>(warp_maximum(largest)) >> 23 & 255);
        const int factor = exponent == 0 || exponent == 255 ? 127 : minimum(268 - exponent, 253);
        const float up = bits_as<float>(static_cast<uint32_t>(factor) << 23);
        const float down = bits_as<float>(static_cast<uint32_t>(254 - factor) << 23);
        SIMT_UNROLL
        for (int i = 0; i < kPairs; ++i) {
            const int pair = l + 32 * i, chunk = pair / 4 ^ m % 8;
            *reinterpret_cast<uint32_t*>(to + m * (Tile::kDk * 2) + chunk * 16 + pair % 4 * 4) =
                pack<Element>(low[i] * up, high[i] * up);
        }
        if (l == 0) row_data[m].scale = p.scale_log2 * down;
    }
}

// Where tiles come from: caches of the elements of the products, which are copied as they are, or of other types.
enum class FlashCache { kDirect, kDecoded };

// Tiles of tokens of one sequence, first to last, each by all threads of the block: a row of the tile by eight of them,
// which copy neighbouring chunks, or decode neighbouring pieces.
template <class Tile, FlashCache kCache>
class FlashLoader {
  public:
    static constexpr int kRowsAtOnce = Tile::kThreads / 8;
    static constexpr int kPasses = (Tile::kTokens + kRowsAtOnce - 1) / kRowsAtOnce;

    // Of tokens that have no page the first one goes to *missing.
    SIMT_DEVICE FlashLoader(const Attention& p, int sequence, int end, int32_t* missing)
        : p_(p), sequence_(sequence), end_(end), missing_(missing) {}

    // Asks for the page of the tile that begins at `token`, which the next load is of.
    SIMT_DEVICE void expect(int token) {
        if (token < end_) page_ = key_page(p_, token, sequence_);
    }

    // Tokens past the end become zeros: pages hold anything there, and weights of 0 times NaN would be NaN.
    SIMT_DEVICE void load(int token, unsigned char* stage) {
        using namespace simt;
        const int page = page_;
        expect(token + Tile::kTokens);
        const int thread = static_cast<int>(thread_index().x);
        if (page < 0 && thread == 0) *missing_ = minimum(*missing_, token);
        if constexpr (kCache == FlashCache::kDirect) {
            SIMT_UNROLL
            for (int pass = 0; pass < kPasses; ++pass) load_pass(pass, token, page, stage);
        } else {
            SIMT_KEEP_LOOP
            for (int pass = 0; pass < kPasses; ++pass) load_pass(pass, token, page, stage);
        }
    }

  private:
    SIMT_DEVICE void load_pass(int pass, int token, int page, unsigned char* stage) const {
        const int row = static_cast<int>(simt::thread_index().x) / 8 + pass * kRowsAtOnce;
        if (Tile::kTokens % kRowsAtOnce != 0 && row >= Tile::kTokens) return;
        const bool there = token + row < end_ && page >= 0;
        const int64_t in_page = (token + row) % kPageTokens;
        load_row<Tile::kDk>(stage, row, p_.k_type, p_.k,
                            there ? at<char>(p_.k, page * p_.k_page + in_page * p_.k_token) : nullptr);
        if constexpr (!Tile::kPrefix) {
            load_row<Tile::kDv>(stage + Tile::kKeyBytes, row, p_.v_type, p_.v,
                                there ? at<char>(p_.v, page * p_.v_page + in_page * p_.v_token) : nullptr);
        }
    }

    // The head's kElements of the row `from` of the cache at `cache`; nullptr: zeros.
    template <int kElements>
    SIMT_DEVICE static void load_row(unsigned char* to, int row, int type, const void* cache, const char* from) {
        using namespace simt;
        const int part = static_cast<int>(thread_index().x) % 8, head = static_cast<int>(block_index().y);
        to += row * (kElements * 2);
        if constexpr (kCache == FlashCache::kDirect) {
            const char* first = from ? from + (head * kElements + part * 8) * 2 : static_cast<const char*>(cache);
            SIMT_UNROLL
            for (int i = 0; i < kElements / 64; ++i)
                copy_async16(to + (part ^ row % 8) * 16 + i * 128, first + i * 128, from ? 16 : 0);
        } else {
            switch (type) {
#define TESSERA_CASE(id) \
    case TSR_TYPE_##id:  \
        return decode_row<kElements, TSR_TYPE_##id>(to, row, part, head, from);
                TESSERA_CACHED_TYPES(TESSERA_CASE)
#undef TESSERA_CASE
                default:
                    return;
            }
        }
    }

    template <int kElements, int kType>
    SIMT_DEVICE static void decode_row(unsigned char* to, int row, int part, int head, const char* from) {
        using namespace simt;
        constexpr int kPieces = kElements / 16;
        SIMT_UNROLL
        for (int i = 0; i < (kPieces + 7) / 8; ++i) {
            const int piece = part + i * 8;
            if (kPieces % 8 != 0 && piece >= kPieces) break;
            uint32_t words[8] = {};
            if (from) decode_to_f16<kType>(from, head * kPieces + piece, words);
            *reinterpret_cast<UInt4*>(to + (2 * piece ^ row % 8) * 16) = {words[0], words[1], words[2], words[3]};
            *reinterpret_cast<UInt4*>(to + (2 * piece + 1 ^ row % 8) * 16) = {words[4], words[5], words[6], words[7]};
        }
    }

    const Attention& p_;
    int sequence_, end_;
    int32_t* missing_;
    int page_ = -1;
};

}  // namespace tessera::cuda_kernels
