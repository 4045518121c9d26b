// What attention on tensor cores reads: queries, and tiles of the cache. In shared memory 8 elements of 16 bits are a
// vector; vector c of row r lies at place c ^ (r % 8), so that neither ldmatrix nor the copies meet conflicts of banks.
#pragma once

#include "../products/decode_f16.hpp"
#include "kernels/cuda/attention/cache_rows.hpp"
#include "kernels/cuda/attention/flash_rows.hpp"
#include "kernels/cuda/attention/flash_tiles.hpp"

namespace tessera::cuda_kernels {

template <class T>
inline constexpr bool kIsHalf = false;
template <>
inline constexpr bool kIsHalf<simt::half_t> = true;

SIMT_DEVICE bool multiple_of(const void* address, int bytes) {
    return reinterpret_cast<uintptr_t>(address) % static_cast<unsigned>(bytes) == 0;
}

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
    constexpr int kPairs = Tile::kDk / 64;       // of a lane
    constexpr int kAtOnce = kPairs > 4 ? 2 : 4;  // rows of a warp: loads of all first
    static_assert(Tile::kRows % (Tile::kWarps * kAtOnce) == 0);
    const int l = static_cast<int>(lane());
    const bool aligned = multiple_of(p.q, 8) && p.q_head % 8 == 0 && p.q_row % 8 == 0;
    for (int first = static_cast<int>(warp()) * kAtOnce; first < Tile::kRows; first += Tile::kWarps * kAtOnce) {
        Float2 q[kAtOnce][kPairs];
        SIMT_UNROLL
        for (int r = 0; r < kAtOnce; ++r) {
            const int index = rows.first + first + r;
            if (index < rows.total) {
                const float* from = query_of(p, rows, index) + 2 * l;
                SIMT_UNROLL
                for (int i = 0; i < kPairs; ++i) {
                    q[r][i] = aligned ? *reinterpret_cast<const Float2*>(from + 64 * i)
                                      : Float2{from[64 * i], from[64 * i + 1]};
                }
            } else {
                SIMT_UNROLL
                for (int i = 0; i < kPairs; ++i) q[r][i] = {0, 0};
            }
        }
        SIMT_UNROLL
        for (int r = 0; r < kAtOnce; ++r) {
            const int m = first + r;
            float largest = 0;
            SIMT_UNROLL
            for (int i = 0; i < kPairs; ++i) largest = fmaxf(largest, fmaxf(fabsf(q[r][i].x), fabsf(q[r][i].y)));
            const int exponent = static_cast<int>(bits_as<uint32_t>(warp_maximum(largest)) >> 23 & 255);
            const int factor = exponent == 0 || exponent == 255 ? 127 : minimum(268 - exponent, 253);
            const float up = bits_as<float>(static_cast<uint32_t>(factor) << 23);
            const float down = bits_as<float>(static_cast<uint32_t>(254 - factor) << 23);
            SIMT_UNROLL
            for (int i = 0; i < kPairs; ++i) {
                const int pair = l + 32 * i, vector = pair / 4 ^ m % 8;
                *reinterpret_cast<uint32_t*>(to + m * (Tile::kDk * 2) + vector * 16 + pair % 4 * 4) =
                    pack<Element>(q[r][i].x * up, q[r][i].y * up);
            }
            if (l == 0) row_data[m].scale = p.scale_log2 * down;
        }
    }
}

// Where tiles come from: caches of the elements of the products, which are copied as they are, or of other types.
enum class FlashCache { kDirect, kDecoded };

// Tiles of tokens of one sequence, first to last, each by all threads of the block: a row of the tile by eight of them,
// which copy neighbouring vectors, or decode neighbouring sub-blocks. Of blocks `load` copies a tile as it is cached,
// and `decode` decodes it; of other elements than those of products `decode` reads the cache itself.
template <class Tile, FlashCache kCache>
class FlashLoader {
  public:
    static constexpr int kRowsAtOnce = Tile::kThreads / 8;
    static constexpr int kPasses = (Tile::kTokens + kRowsAtOnce - 1) / kRowsAtOnce;
    static constexpr bool kDirect = kCache == FlashCache::kDirect;
    static constexpr int kTiles = kDirect ? Tile::kStages : Tile::kRawStages;
    static constexpr int kBytes = kDirect ? Tile::kStageBytes : Tile::kRawBytes;

    // `ring` holds kTiles tiles. Of tokens that have no page the first one goes to *missing.
    SIMT_DEVICE FlashLoader(const Attention& p, int sequence, int end, int32_t* missing, unsigned char* ring)
        : p_(p), sequence_(sequence), end_(end), missing_(missing), ring_(ring) {
        if constexpr (!kDirect) {
            keys_ = raw_rows<Tile::kDk>(p.k, p.k_type, p.k_token, p.k_page);
            if constexpr (!Tile::kPrefix) values_ = raw_rows<Tile::kDv>(p.v, p.v_type, p.v_token, p.v_page);
        }
    }

    // Asks for the page of the tile that begins at `token`, which the next load is of.
    SIMT_DEVICE void expect(int token) {
        if (token < end_) page_ = key_page(p_, token, sequence_);
    }

    // Tokens past the end become zeros: pages hold anything there, and weights of 0 times NaN would be NaN.
    // To byte `to` of the ring.
    SIMT_DEVICE void load(int token, int to) {
        using namespace simt;
        const int page = page_;
        expect(token + Tile::kTokens);
        const int thread = static_cast<int>(thread_index().x);
        if (page < 0 && thread == 0) *missing_ = minimum(*missing_, token);
        if constexpr (kDirect) {
            SIMT_UNROLL
            for (int pass = 0; pass < kPasses; ++pass) load_pass(pass, token, page, ring_ + to);
        } else if (page >= 0) {
            const int count = minimum(Tile::kTokens, end_ - token);
            const int64_t in_page = token % kPageTokens;
            copy_raw(ring_ + to, keys_, at<char>(p_.k, page * p_.k_page + in_page * p_.k_token), p_.k_token, count);
            if constexpr (!Tile::kPrefix) {
                copy_raw(ring_ + to + Tile::kRawKeyBytes, values_,
                         at<char>(p_.v, page * p_.v_page + in_page * p_.v_token), p_.v_token, count);
            }
        }
    }

    // The tile at `token`, which is at `from` in the ring.
    SIMT_DEVICE void decode(int token, int from, unsigned char* stage) const {
        // All pages before *missing_ are there. Where rows are copied, nothing is asked for here.
        const bool any = token < *missing_;
        int page = 0;
        if (any && (keys_.row == 0 || (!Tile::kPrefix && values_.row == 0))) page = key_page(p_, token, sequence_);
        SIMT_KEEP_LOOP
        for (int pass = 0; pass < kPasses; ++pass) {
            const int row = static_cast<int>(simt::thread_index().x) / 8 + pass * kRowsAtOnce;
            if (Tile::kTokens % kRowsAtOnce != 0 && row >= Tile::kTokens) return;
            const bool there = any && token + row < end_;
            const int64_t in_page = (token + row) % kPageTokens;
            const char* key = at<char>(p_.k, page * p_.k_page + in_page * p_.k_token);
            decode_any<Tile::kDk>(stage, row, p_.k_type, there ? row_of(keys_, ring_ + from, row, key) : nullptr,
                                  keys_.row == 0);
            if constexpr (!Tile::kPrefix) {
                const char* value = at<char>(p_.v, page * p_.v_page + in_page * p_.v_token);
                decode_any<Tile::kDv>(stage + Tile::kKeyBytes, row, p_.v_type,
                                      there ? row_of(values_, ring_ + from + Tile::kRawKeyBytes, row, value) : nullptr,
                                      values_.row == 0);
            }
        }
    }

  private:
    // How rows are copied as they are cached: of the head's part of a row its bytes, and what is from one row to the
    // next in shared memory; 0: they are not.
    struct RawRows {
        int bytes = 0, row = 0;
    };
    template <int kElements>
    SIMT_DEVICE static RawRows raw_rows(const void* cache, int type, int64_t token, int64_t page) {
        int block = 0;
        switch (type) {
#define TESSERA_CASE(id, Name)                      \
    case TSR_TYPE_##id:                             \
        block = Format<TSR_TYPE_##id>::kBlockBytes; \
        break;
            TESSERA_CACHED_BLOCKS(TESSERA_CASE)
#undef TESSERA_CASE
            default:
                return {};
        }
        const int bytes = kElements / 32 * block;
        if (!multiple_of(cache, 16) || token % 2 != 0 || page % 16 != 0) return {};
        if constexpr (Tile::kPrefix) return token == bytes ? RawRows{bytes, bytes} : RawRows{};
        return {bytes, (bytes + 30) / 16 * 16};
    }

    // `count` rows, the first at `from`.
    SIMT_DEVICE static void copy_raw(unsigned char* to, const RawRows& rows, const char* from, int64_t stride,
                                     int count) {
        using namespace simt;
        if (rows.row == 0) return;
        const int thread = static_cast<int>(thread_index().x);
        if constexpr (Tile::kPrefix) {
            const int bytes = count * rows.row;
            for (int i = thread * 16; i < bytes; i += Tile::kThreads * 16)
                copy_async16(to + i, from + i, minimum(16, bytes - i));
        } else {
            from += static_cast<int>(block_index().y) * rows.bytes;
            for (int row = thread / 8; row < count; row += kRowsAtOnce) {
                const char* of_row = from + row * stride;
                const int past = static_cast<int>(reinterpret_cast<uintptr_t>(of_row) % 16);
                for (int i = thread % 8 * 16; i < past + rows.bytes; i += 8 * 16)
                    copy_async16(to + row * rows.row + i, of_row - past + i, minimum(16, past + rows.bytes - i));
            }
        }
    }
    // The head's part of a row: in the ring, or in the cache, where `cached` is the row of all heads.
    SIMT_DEVICE static const char* row_of(const RawRows& rows, const unsigned char* tile, int row, const char* cached) {
        if (rows.row == 0) return cached;
        const char* place = reinterpret_cast<const char*>(tile) + row * rows.row;
        if constexpr (Tile::kPrefix) return place;
        const auto address =
            reinterpret_cast<uintptr_t>(cached) + simt::block_index().y * static_cast<unsigned>(rows.bytes);
        return place + address % 16;
    }

    SIMT_DEVICE void load_pass(int pass, int token, int page, unsigned char* to) const {
        const int row = static_cast<int>(simt::thread_index().x) / 8 + pass * kRowsAtOnce;
        if (Tile::kTokens % kRowsAtOnce != 0 && row >= Tile::kTokens) return;
        const bool there = token + row < end_ && page >= 0;
        const int64_t in_page = (token + row) % kPageTokens;
        copy_row<Tile::kDk>(to, row, p_.k, there ? at<char>(p_.k, page * p_.k_page + in_page * p_.k_token) : nullptr);
        if constexpr (!Tile::kPrefix) {
            copy_row<Tile::kDv>(to + Tile::kKeyBytes, row, p_.v,
                                there ? at<char>(p_.v, page * p_.v_page + in_page * p_.v_token) : nullptr);
        }
    }

    // The head's kElements of the row `from` of the cache at `cache`; nullptr: zeros.
    template <int kElements>
    SIMT_DEVICE static void copy_row(unsigned char* to, int row, const void* cache, const char* from) {
        using namespace simt;
        const int part = static_cast<int>(thread_index().x) % 8, head = static_cast<int>(block_index().y);
        to += row * (kElements * 2);
        const char* first = from ? from + (head * kElements + part * 8) * 2 : static_cast<const char*>(cache);
        SIMT_UNROLL
        for (int i = 0; i < kElements / 64; ++i)
            copy_async16(to + (part ^ row % 8) * 16 + i * 128, first + i * 128, from ? 16 : 0);
    }

    // `all`: `from` is the row of all heads.
    template <int kElements>
    SIMT_DEVICE static void decode_any(unsigned char* to, int row, int type, const char* from, bool all) {
        const int part = static_cast<int>(simt::thread_index().x) % 8;
        const int head = all ? static_cast<int>(simt::block_index().y) : 0;
        to += row * (kElements * 2);
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

    template <int kElements, int kType>
    SIMT_DEVICE static void decode_row(unsigned char* to, int row, int part, int head, const char* from) {
        using namespace simt;
        constexpr int kSubBlocks = kElements / 16, kRounds = (kSubBlocks + 7) / 8;
        const auto decode = [&](int i) {
            const int sub_block = part + i * 8;
            if (kSubBlocks % 8 != 0 && sub_block >= kSubBlocks) return;
            uint32_t words[8] = {};
            if (from) decode_to_f16<kType>(from, head * kSubBlocks + sub_block, words);
            *reinterpret_cast<UInt4*>(to + (2 * sub_block ^ row % 8) * 16) = {words[0], words[1], words[2], words[3]};
            *reinterpret_cast<UInt4*>(to + (2 * sub_block + 1 ^ row % 8) * 16) = {words[4], words[5], words[6],
                                                                                  words[7]};
        };
        if constexpr (kType == TSR_TYPE_Q8_KV) {
            // The scale of the row beside an unrolled loop costs the wide kernels more registers than they have.
            SIMT_KEEP_LOOP
            for (int i = 0; i < kRounds; ++i) decode(i);
        } else {
            SIMT_UNROLL
            for (int i = 0; i < kRounds; ++i) decode(i);
        }
    }

    const Attention& p_;
    int sequence_, end_;
    int32_t* missing_;
    unsigned char* ring_;
    RawRows keys_, values_;
    int page_ = -1;
};

}  // namespace tessera::cuda_kernels
