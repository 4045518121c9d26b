// What is around products of many rows: segments of activations, the map of experts, the sum over experts.
#include "tile_rows.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

// The expert of a place; `experts` for id -1 and `experts` + 1 for one that is invalid.
SIMT_DEVICE int expert_of(const ExpertMap& m, int begin, int place) {
    const int row = place / m.slots, slot = place - row * m.slots;
    const int id = load_global<int32_t>(at<char>(m.ids, (begin + row) * m.ids_row + slot * m.ids_slot));
    return id == -1 ? m.experts : id < 0 || id >= m.experts ? m.experts + 1 : id;
}

SIMT_DEVICE int count_of_ones(unsigned bits) {
    bits -= bits >> 1 & 0x55555555u;
    bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
    return static_cast<int>(((bits + (bits >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24);
}

// The sum of `value` over the lanes before this one; `total`: over all.
SIMT_DEVICE int sum_before(int value, int& total) {
    const int l = static_cast<int>(lane());
    int sum = value;
    SIMT_UNROLL
    for (int step = 1; step < 32; step *= 2) {
        const int before = shuffle(sum, l >= step ? l - step : l);
        if (l >= step) sum += before;
    }
    total = shuffle(sum, 31);
    return sum - value;
}

template <bool kBrain>
SIMT_DEVICE void make_halves_of(const Segments& a) {
    SIMT_SHARED(unsigned, largest_of, kHalvesThreads / 32);
    const RowRange range = actual_rows(a.rows);
    const int t = static_cast<int>(thread_index().x), begin = a.relative ? 0 : range.begin;
    const int rows = a.tiles ? a.tiles[1] : (range.end - range.begin) * a.slots;
    const int padded = (a.k + kHalvesElements - 1) / kHalvesElements * kHalvesElements;
    for (int row = static_cast<int>(block_index().x); row < rows; row += static_cast<int>(grid_size().x)) {
        const auto* x =
            at<float>(a.x, a.tiles ? row * a.x_row : (begin + row / a.slots) * a.x_row + row % a.slots * a.x_slot);
        auto* to = at<char>(a.segments, row * a.segments_row);
        float scale = 1, inverse = 1;
        if constexpr (!kBrain) {
            unsigned largest = 0;
            for (int i = t; i < a.k; i += kHalvesThreads)
                largest = maximum(largest, bits_as<unsigned>(load_global<float>(x + i)) & 0x7FFFFFFFu);
            SIMT_UNROLL
            for (int mask = 16; mask > 0; mask /= 2) largest = maximum(largest, shuffle_xor(largest, mask));
            sync_block();  // those of the row before have been read
            if (lane() == 0) largest_of[warp()] = largest;
            sync_block();
            SIMT_UNROLL
            for (int w = 0; w < kHalvesThreads / 32; ++w) largest = maximum(largest, largest_of[w]);
            // Below 2^15; with what is not finite or tiny as it is.
            const int exponent = static_cast<int>(largest >> 23) - 127;
            const int up = exponent > -100 && exponent < 128 ? 14 - exponent : 0;
            inverse = bits_as<float>(static_cast<unsigned>(127 + minimum(up, 114)) << 23);
            scale = bits_as<float>(static_cast<unsigned>(127 - minimum(up, 114)) << 23);
        }
        using T = simt::bfloat16_t;
        for (int i = t; i < padded; i += kHalvesThreads) {
            const float value = i < a.k ? load_global<float>(x + i) * inverse : 0.f;
            auto* at_part = to + i / kHalvesElements * 64 * half_parts(kBrain) + i % kHalvesElements * 2;
            if constexpr (kBrain) {
                const T first = from_float<T>(value);
                store_global(at_part, first.bits);
                const float rest = value - to_float(first);
                store_global(at_part + 64, from_float<T>(rest == rest ? rest : 0.f).bits);
            } else {
                store_global(at_part, from_float<half_t>(value).bits);
            }
        }
        if (t == 0) store_global(to + padded / kHalvesElements * 64 * half_parts(kBrain), scale);
    }
}

// Eight elements of a lane, of 256 of a warp.
struct EightElements {
    float v[8];

    // `left`: of the row, a multiple of 32; zeros follow.
    SIMT_DEVICE void load(const float* block, int left) {
        const float* from = block + 8 * lane();
        if (8 * static_cast<int>(lane()) >= left) {
            SIMT_UNROLL
            for (int i = 0; i < 8; ++i) v[i] = 0;
        } else if (reinterpret_cast<uintptr_t>(from) % 16 == 0) {
            SIMT_UNROLL
            for (int i = 0; i < 2; ++i) {
                const auto four = load_global<Float4>(from + 4 * i);
                v[4 * i] = four.x, v[4 * i + 1] = four.y, v[4 * i + 2] = four.z, v[4 * i + 3] = four.w;
            }
        } else {
            SIMT_UNROLL
            for (int i = 0; i < 8; ++i) v[i] = load_global<float>(from + i);
        }
    }
    // The maximum of |x| over the warp, as an integer: what is not a number is larger than all others.
    SIMT_DEVICE unsigned largest() const {
        unsigned all = 0;
        SIMT_UNROLL
        for (int i = 0; i < 8; ++i) all = maximum(all, bits_as<unsigned>(v[i]) & 0x7FFFFFFFu);
        SIMT_UNROLL
        for (int mask = 16; mask > 0; mask /= 2) all = maximum(all, shuffle_xor(all, mask));
        return all;
    }
};

// The scale of 256 elements, bounded from below so that ratios of scales are finite.
SIMT_DEVICE float scale_of_block(unsigned largest, float least) {
    const float scale = bits_as<float>(largest) * (1.f / 127.f);
    return bits_as<unsigned>(scale) < bits_as<unsigned>(least) ? least : scale;
}

SIMT_DEVICE void write_block(const EightElements& x, float scale, float ratio, char* to) {
    const int l = static_cast<int>(lane());
    const float inverse = 1.f / scale;
    uint32_t words[2] = {};
    int sum = 0;
    SIMT_UNROLL
    for (int i = 0; i < 8; ++i) {
        const int code = minimum(127, maximum(-127, convert_to_int(x.v[i] * inverse)));
        words[i / 4] |= (static_cast<uint32_t>(code) & 255u) << 8 * (i % 4);
        sum += code;
    }
    store_global(to + l / 8 * kSegmentBytes + l % 8 * 8, UInt2{words[0], words[1]});
    sum += shuffle_xor(sum, 1);
    const int of16 = l / 2, of32 = l / 4;
    const auto write_sum = [&](int segment, int index) {
        store_global(to + segment * kSegmentBytes + kSegmentElements + 2 * index,
                     from_float<half_t>(static_cast<float>(sum)).bits);
    };
    if (l % 2 == 0) write_sum(1 + of16 / 8, of16 % 8);
    sum += shuffle_xor(sum, 2);
    if (l % 4 == 0) write_sum(3, of32);
    if (l == 0) store_global(to + kSegmentElements, UInt4{bits_as<uint32_t>(ratio), 0, 0, 0});
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;
using namespace simt;

#if SIMT_ARCH >= 610
// For products of int8. Grid: x the segments of a row by kSegmentWarps, y rows and slots, or fewer.
SIMT_KERNEL(32 * kSegmentWarps, 8) make_segments(Segments a) {
    const RowRange range = actual_rows(a.rows);
    const int segment = static_cast<int>(block_index().x) * kSegmentWarps + static_cast<int>(warp());
    if (segment >= segments_of(a.k)) return;
    const int rows = a.tiles ? a.tiles[1] : (range.end - range.begin) * a.slots, l = static_cast<int>(lane());
    const int element = segment * kSegmentElements + 2 * l, begin = a.relative ? 0 : range.begin;
    for (int row = static_cast<int>(block_index().y); row < rows; row += static_cast<int>(grid_size().y)) {
        const int64_t from = a.tiles ? row * a.x_row : (begin + row / a.slots) * a.x_row + row % a.slots * a.x_slot;
        const auto* x = at<float>(a.x, from);
        // k is a multiple of 32.
        const float first = element < a.k ? load_global<float>(x + element) : 0.f;
        const float second = element < a.k ? load_global<float>(x + element + 1) : 0.f;
        // As integers, so that what is not a number is larger than all others.
        unsigned largest = maximum(bits_as<unsigned>(first) & 0x7FFFFFFFu, bits_as<unsigned>(second) & 0x7FFFFFFFu);
        SIMT_UNROLL
        for (int mask = 8; mask > 0; mask /= 2) largest = maximum(largest, shuffle_xor(largest, mask));
        float scale = bits_as<float>(largest) * (1.f / 127.f);
        // Short mantissas: see kMagic. What is too small for that is zero.
        scale = largest < 0x0DA24260u ? 0.f : bits_as<float>(bits_as<unsigned>(scale) & 0xFFFFFFF8u);  // 1e-30
        const float inverse = scale > 0.f ? 1.f / scale : 0.f;
        const int codes[2] = {minimum(127, maximum(-127, convert_to_int(first * inverse))),
                              minimum(127, maximum(-127, convert_to_int(second * inverse)))};
        int sum = codes[0] + codes[1];
        SIMT_UNROLL
        for (int mask = 4; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
        auto* to = at<char>(a.segments, row * a.segments_row + segment * static_cast<int64_t>(kSegmentBytes));
        store_global(to + 2 * l, static_cast<uint16_t>((codes[0] & 255) | (codes[1] & 255) << 8));
        if (l % 16 == 0) store_global(to + kSegmentScales + l / 16 * 4, scale);
        if constexpr (SIMT_ARCH >= 800) {
            sum += shuffle_xor(sum, 8);
            if (l % 16 == 0) store_global(to + kSegmentSums + l / 16 * 4, two_bfloats(scale * static_cast<float>(sum)));
        } else {
            if (l % 8 == 0) store_global(to + kSegmentSums + l / 8 * 2, static_cast<int16_t>(sum));
        }
    }
}
#endif

#if SIMT_ARCH >= 800
// For tensor cores (RowLayout of tile_product.hpp). Rows of blocks of 256 elements, the last one
// filled up with zeros. A warp has a part of the blocks of a row. Grid: x the rows and slots, or fewer.
SIMT_KERNEL(kBlockThreads, 8) make_blocks(Segments a) {
    SIMT_SHARED(unsigned, largest_of, kBlockThreads / 32);
    constexpr int kWarps = kBlockThreads / 32;
    // Rows whose maximum is below it are zeros; the range of scales within a row.
    constexpr float kTiny = 1e-30f, kRange = 1.f / (1ull << 60);
    const RowRange range = actual_rows(a.rows);
    const int w = static_cast<int>(warp()), begin = a.relative ? 0 : range.begin;
    const int rows = a.tiles ? a.tiles[1] : (range.end - range.begin) * a.slots;
    const auto blocks = static_cast<int>(blocks_of(a.k));
    const int first = w * blocks / kWarps, end = (w + 1) * blocks / kWarps;
    for (int row = static_cast<int>(block_index().x); row < rows; row += static_cast<int>(grid_size().x)) {
        const auto* x =
            at<float>(a.x, a.tiles ? row * a.x_row : (begin + row / a.slots) * a.x_row + row % a.slots * a.x_slot);
        auto* to = at<char>(a.segments, row * a.segments_row);
        EightElements elements;
        unsigned largest = 0;
        for (int block = first; block < end; ++block) {
            elements.load(x + block * kBlockElements, a.k - block * kBlockElements);
            largest = maximum(largest, elements.largest());
        }
        sync_block();  // those of the row before have been read
        if (lane() == 0) largest_of[w] = largest;
        sync_block();
        SIMT_UNROLL
        for (int i = 0; i < kWarps; ++i) largest = maximum(largest, largest_of[i]);
        const bool zeros = largest < bits_as<unsigned>(kTiny);
        const float least = zeros ? 1.f : maximum(bits_as<float>(largest) * kRange, kTiny * 1e-3f);
        float before = 0;
        if (first > 0 && first < end) {
            elements.load(x + (first - 1) * kBlockElements, kBlockElements);
            before = scale_of_block(elements.largest(), least);
        }
        for (int block = first; block < end; ++block) {
            elements.load(x + block * kBlockElements, a.k - block * kBlockElements);
            const float scale = scale_of_block(elements.largest(), least);
            write_block(elements, scale, block == 0 ? 1.f : before / scale,
                        to + block * int64_t{kBlockSegments * kSegmentBytes});
            before = scale;
        }
        if (end == blocks && first < end && lane() == 0)
            store_global(to + blocks * int64_t{kBlockSegments * kSegmentBytes}, zeros ? 0.f : before);
    }
}

// Rows of halves, for products with f16 and with bf16. Grid: x the rows and slots, or fewer.
SIMT_KERNEL(kHalvesThreads, 8) make_halves_f16(Segments a) {
    make_halves_of<false>(a);
}
SIMT_KERNEL(kHalvesThreads, 8) make_halves_bf16(Segments a) {
    make_halves_of<true>(a);
}
#endif

// One block. Places of an expert are in the order of rows and slots: each of several warps has a part of the places,
// counts those of each expert, and then knows where its own begin.
SIMT_KERNEL(kMapThreads, 1) map_experts(ExpertMap m) {
    constexpr int kCounts = 5600;  // of all warps
    static_assert(kCounts >= 2 * (kMapExperts + 2));
    SIMT_SHARED(int, counts_of_warps, kCounts);
    SIMT_SHARED(int, counts, kMapExperts + 2);
    SIMT_SHARED(int, firsts, kMapExperts + 2);
    SIMT_SHARED(int, first_tiles, kMapExperts + 2);
    const RowRange range = actual_rows(m.rows);
    const int t = static_cast<int>(thread_index().x), groups = m.experts + 2;
    const int places = (range.end - range.begin) * m.slots, warps = minimum(kMapThreads / 32, kCounts / groups);
    const int of_warp = (places + 32 * warps - 1) / (32 * warps) * 32, w = static_cast<int>(warp());
    const int begin = w < warps ? minimum(w * of_warp, places) : places, end = minimum(begin + of_warp, places);
    int* const mine = counts_of_warps + w * groups;
    const unsigned before = (1u << lane()) - 1u;
    // Calls f(place, group, how many of the 32 places that are taken at once come before it in its group), and counts.
    const auto for_places = [&](const auto& f) {
        int next =
            begin + static_cast<int>(lane()) < end ? expert_of(m, range.begin, begin + static_cast<int>(lane())) : 0;
        for (int first = begin; first < end; first += 32) {
            const int p = first + static_cast<int>(lane()), group = next;
            next = p + 32 < end ? expert_of(m, range.begin, p + 32) : 0;
            unsigned same = vote_ballot(p < end);
            for (int bit = 1; bit < groups; bit *= 2) {
                const unsigned set = vote_ballot((group & bit) != 0);
                same &= group & bit ? set : ~set;
            }
            const int rank = count_of_ones(same & before);
            if (p < end) f(p, group, rank);
            sync_warp();
            if (p < end && rank == 0) mine[group] += count_of_ones(same);
            sync_warp();
        }
    };
    for (int i = t; i < warps * groups; i += kMapThreads) counts_of_warps[i] = 0;
    sync_block();
    for_places([](int, int, int) {});
    sync_block();
    for (int g = t; g < groups; g += kMapThreads) {
        int sum = 0;
        for (int i = 0; i < warps; ++i) {
            const int count = counts_of_warps[i * groups + g];
            counts_of_warps[i * groups + g] = sum;
            sum += count;
        }
        counts[g] = sum;
    }
    sync_block();
    if (w == 0) {
        int places_before = 0, tiles_before = 0;
        for (int first = 0; first < groups; first += 32) {
            const int g = first + t;
            const int count = g < groups ? counts[g] : 0, tiles = (count + m.tile_rows - 1) / m.tile_rows;
            int all_places, all_tiles;
            const int place = sum_before(count, all_places), tile = sum_before(tiles, all_tiles);
            if (g < groups) {
                firsts[g] = places_before + place;
                first_tiles[g] = tiles_before + tile;
            }
            places_before += all_places;
            tiles_before += all_tiles;
        }
        if (t == 0) m.tiles[0] = tiles_before;
    }
    sync_block();
    if (t == 0) m.tiles[1] = firsts[m.experts];
    for (int g = t; g < groups; g += kMapThreads) {
        int32_t* tile = m.tiles + kMapHead + kMapTile * first_tiles[g];
        for (int done = 0; done < counts[g]; done += m.tile_rows, tile += kMapTile) {
            tile[0] = g;
            tile[1] = firsts[g] + done;
            tile[2] = minimum(m.tile_rows, counts[g] - done);
        }
    }
    for_places([&](int place, int group, int rank) { m.places[firsts[group] + mine[group] + rank] = place; });
}

// Grid: x the elements by kSumElements, y the maximum of rows or fewer.
SIMT_KERNEL(kSumThreads, 4) sum_experts(ExpertSum a) {
    const RowRange range = actual_rows(a.rows);
    const int begin = static_cast<int>(block_index().x) * kSumElements, end = minimum(begin + kSumElements, a.n);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        for (int e = begin + static_cast<int>(thread_index().x); e < end; e += kSumThreads) {
            float sum = 0;
            for (int slot = 0; slot < a.slots; ++slot) {
                const int id = *at<int32_t>(a.ids, row * a.ids_row + slot * a.ids_slot);
                if (id == -1) continue;
                if (id < 0 || id >= a.experts) {
                    sum = bits_as<float>(0x7FC00000u);
                    continue;
                }
                const float weight = *at<float>(a.weights, row * a.weights_row + slot * a.weights_slot);
                sum = fmaf(weight, at<float>(a.x, (row - range.begin) * a.x_row + slot * a.x_slot)[e], sum);
            }
            at<float>(a.y, row * a.y_row)[e] = sum;
        }
    }
}
