// Parts of rows of any type that can be cached on their way to shared memory as f32: `load` asks for them, `store`
// decodes what has come, so that a product lies between both. Rows are spread over the kRawThreads threads of a block.
#pragma once

#include "../formats/sub_block_small.hpp"
#include "../matmul/multiply_f32.hpp"
#include "cache.hpp"

namespace tessera::cuda_kernels {

inline constexpr int kRawThreads = 128;

// What a thread takes at once: 16 bytes of floats, or a sub-block of 16 codes.
template <int kType>
struct RawUnit {
    static constexpr int kElements = 16, kWords = 6;

    // Unit number `unit` of a row.
    SIMT_DEVICE static void load(uint32_t* words, const char* row, int unit, bool) {
        const SubBlock p = Format<kType>::load(row, unit);
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) words[i] = p.codes[i];
        words[4] = simt::bits_as<uint32_t>(p.scale);
        words[5] = simt::bits_as<uint32_t>(p.offset);
    }
    SIMT_DEVICE static void store(float* to, const uint32_t* words) {
        using namespace simt;
        const SubBlock p{{words[0], words[1], words[2], words[3]}, bits_as<float>(words[4]), bits_as<float>(words[5])};
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            *reinterpret_cast<Float4*>(to + 4 * i) = {value_of(p, p.codes[i], 0), value_of(p, p.codes[i], 1),
                                                      value_of(p, p.codes[i], 2), value_of(p, p.codes[i], 3)};
        }
    }
};

struct RawFloats {
    static constexpr int kWords = 4;

    // aligned: rows begin at multiples of 16 bytes, else of an element.
    template <class Element>
    SIMT_DEVICE static void load(uint32_t* words, const char* from, bool aligned) {
        using namespace simt;
        if (aligned) {
            const UInt4 v = load_global<UInt4>(from);
            words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
            return;
        }
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            if constexpr (sizeof(Element) == 4) {
                words[i] = load_global<uint32_t>(from + 4 * i);
            } else {
                words[i] = load_global<uint16_t>(from + 4 * i) |
                           static_cast<uint32_t>(load_global<uint16_t>(from + 4 * i + 2)) << 16;
            }
        }
    }
    template <class Half>
    SIMT_DEVICE static void store_halves(float* to, const uint32_t* words) {
        using namespace simt;
        SIMT_UNROLL
        for (int i = 0; i < 4; i += 2) {
            *reinterpret_cast<Float4*>(to + 2 * i) = {unpack_low<Half>(words[i]), unpack_high<Half>(words[i]),
                                                      unpack_low<Half>(words[i + 1]), unpack_high<Half>(words[i + 1])};
        }
    }
};
template <>
struct RawUnit<TSR_TYPE_F32> : RawFloats {
    static constexpr int kElements = 4;
    SIMT_DEVICE static void load(uint32_t* words, const char* row, int unit, bool aligned) {
        RawFloats::load<float>(words, row + int64_t{unit} * 16, aligned);
    }
    SIMT_DEVICE static void store(float* to, const uint32_t* words) {
        using namespace simt;
        *reinterpret_cast<Float4*>(to) = {bits_as<float>(words[0]), bits_as<float>(words[1]), bits_as<float>(words[2]),
                                          bits_as<float>(words[3])};
    }
};
template <>
struct RawUnit<TSR_TYPE_F16> : RawFloats {
    static constexpr int kElements = 8;
    SIMT_DEVICE static void load(uint32_t* words, const char* row, int unit, bool aligned) {
        RawFloats::load<simt::half_t>(words, row + int64_t{unit} * 16, aligned);
    }
    SIMT_DEVICE static void store(float* to, const uint32_t* words) { store_halves<simt::half_t>(to, words); }
};
template <>
struct RawUnit<TSR_TYPE_BF16> : RawFloats {
    static constexpr int kElements = 8;
    SIMT_DEVICE static void load(uint32_t* words, const char* row, int unit, bool aligned) {
        RawFloats::load<simt::bfloat16_t>(words, row + int64_t{unit} * 16, aligned);
    }
    SIMT_DEVICE static void store(float* to, const uint32_t* words) { store_halves<simt::bfloat16_t>(to, words); }
};

// Which types a kernel's rows can have: the fewer, the fewer registers it needs.
enum class RawTypes { kAll, kF32, kHalves, kBlocks };

constexpr bool is_raw_type(RawTypes types, tsr_type type) {
    switch (types) {
        case RawTypes::kF32:
            return type == TSR_TYPE_F32;
        case RawTypes::kHalves:
            return type == TSR_TYPE_F16 || type == TSR_TYPE_BF16;
        case RawTypes::kBlocks:
            return type != TSR_TYPE_F32 && type != TSR_TYPE_F16 && type != TSR_TYPE_BF16;
        default:
            return true;
    }
}

// kRows rows of kLength elements each; in shared memory they are kStride floats apart. Rows of 16 elements are given
// out so that eight lanes have eight of them, longer ones so that neighbouring lanes have neighbouring parts.
template <int kRows, int kLength, int kStride, RawTypes kTypes>
class RawRows {
  public:
    // first: element of the row, a multiple of 16. aligned: rows of floats begin at multiples of 16 bytes. row(i): the
    // first byte of row i; nullptr: zeros.
    template <class Row>
    SIMT_DEVICE void load(int type, int first, bool aligned, Row&& row) {
        for_type(type, [&](auto known) { load_of<RawUnit<decltype(known)::kType>>(first, aligned, row); });
    }
    SIMT_DEVICE void store(int type, float* to) const {
        for_type(type, [&](auto known) { store_of<RawUnit<decltype(known)::kType>>(to); });
    }

  private:
    struct Place {
        int row, unit;
    };
    template <int kOf>
    struct Known {
        static constexpr int kType = kOf;
    };

    template <class Body>
    SIMT_DEVICE static void for_type(int type, Body&& body) {
        if constexpr (kTypes == RawTypes::kF32) return body(Known<TSR_TYPE_F32>{});
        switch (type) {
#define TESSERA_CASE(id)                                                                \
    case TSR_TYPE_##id:                                                                 \
        if constexpr (is_raw_type(kTypes, TSR_TYPE_##id)) body(Known<TSR_TYPE_##id>{}); \
        return;
            TESSERA_CACHED_TYPES(TESSERA_CASE)
#undef TESSERA_CASE
            default:
                return;
        }
    }
    template <class Unit, class Row>
    SIMT_DEVICE void load_of(int first, bool aligned, Row&& row) {
        SIMT_UNROLL
        for (int i = 0; i < kUnits<Unit>; ++i) {
            const Place p = place<Unit>(i);
            uint32_t* words = words_ + i * Unit::kWords;
            const char* from = p.row < kRows ? row(p.row) : nullptr;
            if (from) {
                Unit::load(words, from, first / Unit::kElements + p.unit, aligned);
            } else {
                SIMT_UNROLL
                for (int w = 0; w < Unit::kWords; ++w) words[w] = 0;
            }
        }
        // Else registers would keep from load to load what other types need.
        SIMT_UNROLL
        for (int w = kUnits<Unit> * Unit::kWords; w < kWords; ++w) words_[w] = 0;
    }
    template <class Unit>
    SIMT_DEVICE void store_of(float* to) const {
        SIMT_UNROLL
        for (int i = 0; i < kUnits<Unit>; ++i) {
            const Place p = place<Unit>(i);
            if (p.row < kRows) Unit::store(to + p.row * kStride + p.unit * Unit::kElements, words_ + i * Unit::kWords);
        }
    }

    template <class Unit>
    static constexpr int kUnits = (kRows * kLength / Unit::kElements + kRawThreads - 1) / kRawThreads;

    template <class Unit>
    SIMT_DEVICE static Place place(int i) {
        using namespace simt;
        constexpr int kOfRow = kLength / Unit::kElements;
        if constexpr (kLength == kDepth) {
            constexpr int kRowsOfWarp = 32 / kOfRow;
            const int l = static_cast<int>(lane());
            return {l % kRowsOfWarp + static_cast<int>(warp()) * kRowsOfWarp + i * (kRawThreads / kOfRow),
                    l / kRowsOfWarp};
        } else {
            const int u = static_cast<int>(thread_index().x) + i * kRawThreads;
            return {u / kOfRow, u % kOfRow};
        }
    }
    template <int kType>
    static constexpr int kWordsOf = is_raw_type(kTypes, static_cast<tsr_type>(kType))
                                        ? kUnits<RawUnit<kType>>* RawUnit<kType>::kWords
                                        : 0;
    static constexpr int larger(int a, int b) {
        return a > b ? a : b;
    }
    static constexpr int kWords =
        larger(larger(kWordsOf<TSR_TYPE_F32>, kWordsOf<TSR_TYPE_F16>), kWordsOf<TSR_TYPE_Q8_0>);

    uint32_t words_[kWords];
};

}  // namespace tessera::cuda_kernels
