// Dot products of 64 elements at once, for products of one row with the formats that models use most: what a lane takes
// of a row of the weight, from shared memory, and of the activations, which are the same for several rows.
//
// Compared with sub-blocks (sub_block.hpp), codes stay where they lie in their bytes: nibbles and pairs of bits are
// masked, not shifted, and what a mask leaves in the upper bits counts 4, 16 or 64 times, for which dot products and
// scales of activations make up. Halves of ranges are not taken from codes but, times the sum of the activations, from
// products.
#pragma once

#include "sub_block_bits.hpp"

namespace tessera::cuda_kernels {

// A row of activations (arguments.hpp) where a lane reads it: at its unit of a k-tile of 32 units.
struct LaneRow {
    const char *codes, *scales, *sums;

    SIMT_DEVICE void next() {
        codes += 32 * 64;
        scales += 32 * 8;
        sums += 32 * 16;
    }
};

// WideUnit<type> for each type of has_wide_unit():
//
//   kKTileBytes       of 32 units; a multiple of 16
//   WideUnit(lane)   what is the same for all units of a lane; all lanes of the warp make one
//   begin()          bytes from the beginning of a k-tile to what add() reads
//   row(...)         the activations of the lane's unit of the first k-tile, for load()
//   load(row)        the activations of a unit
//   add(from, x, sum)  sum + the dot product of the unit of the weight at `from` and x
template <int kType>
struct WideUnit;

namespace wide_units {

using simt::fmaf;
using simt::load_global;
using sub_block_bits::byte_permute;
using sub_block_bits::centred;
using sub_block_bits::get;

SIMT_DEVICE int dot(uint32_t codes, uint32_t x, int sum) {
    if constexpr (SIMT_ARCH >= 610) return simt::dp4a(static_cast<int>(codes), static_cast<int>(x), sum);
    return sum;
}
SIMT_DEVICE int dot16(const uint32_t (&codes)[4], const simt::UInt4& x, int sum) {
    sum = dot(codes[0], x.x, sum);
    sum = dot(codes[1], x.y, sum);
    sum = dot(codes[2], x.z, sum);
    return dot(codes[3], x.w, sum);
}
// Of the low nibbles of 16 bytes, 0 to 15.
SIMT_DEVICE int dot_low(const uint32_t* words, const simt::UInt4& x, int sum) {
    uint32_t codes[4];
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) codes[i] = words[i] & 0x0F0F0F0Fu;
    return dot16(codes, x, sum);
}
// Of the high ones less 8, times 16.
SIMT_DEVICE int dot_high(const uint32_t* words, const simt::UInt4& x, int sum) {
    uint32_t codes[4];
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) codes[i] = centred(words[i] & 0xF0F0F0F0u);
    return dot16(codes, x, sum);
}
SIMT_DEVICE float real(int value) {
    return static_cast<float>(value);
}

// Units that are neighbours in a row: 64 activations in the order of the elements.
struct Neighbours {
    SIMT_DEVICE static LaneRow row(const char* row, unsigned scales_begin, unsigned sums_begin, unsigned lane) {
        return {row + 64 * lane, row + scales_begin + 8 * lane, row + sums_begin + 16 * lane};
    }
    struct Codes {
        simt::UInt4 of[4];
    };
    SIMT_DEVICE static Codes load_codes(const LaneRow& row) {
        Codes codes;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) codes.of[i] = load_global<simt::UInt4>(row.codes + 16 * i);
        return codes;
    }
};

}  // namespace wide_units

// Two blocks, 36 bytes at a multiple of 4: words are read as they lie, and those of the first block are moved by two
// bytes.
template <>
struct WideUnit<TSR_TYPE_Q4_0> : wide_units::Neighbours {
    static constexpr int kKTileBytes = 32 * 36;
    struct Activations {
        Codes codes;
        float scales[2], middles[2];
    };
    SIMT_DEVICE WideUnit(unsigned lane) : begin_(36 * lane) {}
    SIMT_DEVICE unsigned begin() const { return begin_; }
    SIMT_DEVICE Activations load(const LaneRow& row) const {
        using namespace wide_units;
        Activations x;
        x.codes = load_codes(row);
        const auto scales = load_global<simt::Float2>(row.scales);
        const auto sums = load_global<simt::Float4>(row.sums);
        x.scales[0] = scales.x * 0.0625f, x.scales[1] = scales.y * 0.0625f;
        x.middles[0] = -8 * sums.x, x.middles[1] = -8 * sums.z;  // of the high nibbles dot_high takes it
        return x;
    }
    SIMT_DEVICE float add(const char* from, const Activations& x, float sum) const {
        using namespace wide_units;
        uint32_t w[9];
        SIMT_UNROLL
        for (int i = 0; i < 9; ++i) w[i] = get<uint32_t>(from + 4 * i);
        const float scales[2] = {simt::unpack_low<simt::half_t>(w[0]), simt::unpack_high<simt::half_t>(w[4])};
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) w[i] = byte_permute(w[i], w[i + 1], 0x5432);
        SIMT_UNROLL
        for (int b = 0; b < 2; ++b) {
            const uint32_t* words = w + 5 * b;
            const int product = dot_high(words, x.codes.of[2 * b + 1], 16 * dot_low(words, x.codes.of[2 * b], 0));
            sum = fmaf(scales[b], fmaf(real(product), x.scales[b], x.middles[b]), sum);
        }
        return sum;
    }

  private:
    unsigned begin_;
};

// Two blocks, 68 bytes at a multiple of 4, as of q4_0.
template <>
struct WideUnit<TSR_TYPE_Q8_0> : wide_units::Neighbours {
    static constexpr int kKTileBytes = 32 * 68;
    struct Activations {
        Codes codes;
        simt::Float2 scales;
    };
    SIMT_DEVICE WideUnit(unsigned lane) : begin_(68 * lane) {}
    SIMT_DEVICE unsigned begin() const { return begin_; }
    SIMT_DEVICE Activations load(const LaneRow& row) const {
        return {load_codes(row), wide_units::load_global<simt::Float2>(row.scales)};
    }
    SIMT_DEVICE float add(const char* from, const Activations& x, float sum) const {
        using namespace wide_units;
        uint32_t w[17];
        SIMT_UNROLL
        for (int i = 0; i < 17; ++i) w[i] = get<uint32_t>(from + 4 * i);
        const float first = simt::unpack_low<simt::half_t>(w[0]), second = simt::unpack_high<simt::half_t>(w[8]);
        SIMT_UNROLL
        for (int i = 0; i < 8; ++i) w[i] = byte_permute(w[i], w[i + 1], 0x5432);
        const uint32_t a[4] = {w[0], w[1], w[2], w[3]}, b[4] = {w[4], w[5], w[6], w[7]};
        const uint32_t c[4] = {w[9], w[10], w[11], w[12]}, d[4] = {w[13], w[14], w[15], w[16]};
        sum = fmaf(first, real(dot16(b, x.codes.of[1], dot16(a, x.codes.of[0], 0))) * x.scales.x, sum);
        return fmaf(second, real(dot16(d, x.codes.of[3], dot16(c, x.codes.of[2], 0))) * x.scales.y, sum);
    }

  private:
    unsigned begin_;
};

// Two groups of a block: the low and the high nibbles of 32 bytes.
template <>
struct WideUnit<TSR_TYPE_Q4_K> : wide_units::Neighbours {
    static constexpr int kKTileBytes = 8 * sizeof(formats::BlockQ4K);
    struct Activations {
        Codes codes;
        float scales[2], sums[2], middle;
    };
    unsigned codes_begin;
    // Both groups' six bits lie together, of groups 0 to 3 in one word, else in two: where, and which bits of each.
    unsigned first_shift, second_shift;
    uint32_t first_bits, second_bits;

    SIMT_DEVICE WideUnit(unsigned lane)
        : codes_begin(16 + 32 * (lane % 4)),
          first_shift(16 * (lane % 2) + (lane % 4 < 2 ? 0 : 2)),
          second_shift(16 * (lane % 2)),
          first_bits(lane % 4 < 2 ? 0x3F3F : 0x3030),
          second_bits(lane % 4 < 2 ? 0 : 0x0F0F),
          begin_(lane / 4 * sizeof(formats::BlockQ4K)) {}
    SIMT_DEVICE unsigned begin() const { return begin_; }
    SIMT_DEVICE Activations load(const LaneRow& row) const {
        using namespace wide_units;
        Activations x;
        x.codes = load_codes(row);
        const auto scales = load_global<simt::Float2>(row.scales);
        const auto sums = load_global<simt::Float4>(row.sums);
        x.scales[0] = scales.x, x.scales[1] = scales.y * 0.0625f;
        x.sums[0] = sums.x + sums.y, x.sums[1] = sums.z + sums.w;
        x.middle = 8 * x.sums[1];  // which dot_high takes
        return x;
    }
    SIMT_DEVICE float add(const char* from, const Activations& x, float sum) const {
        using namespace wide_units;
        uint32_t head[4], w[8];
        sub_block_bits::get_words<16>(from, head);
        sub_block_bits::get_words<16>(from + codes_begin, w);
        const uint32_t scales = (head[1] >> first_shift & first_bits) | (head[3] >> second_shift & second_bits);
        const uint32_t minima = (head[2] >> first_shift & first_bits) | (head[3] >> second_shift >> 4 & second_bits);
        const int low = dot_low(w + 4, x.codes.of[1], dot_low(w, x.codes.of[0], 0));
        const int high = dot_high(w + 4, x.codes.of[3], dot_high(w, x.codes.of[2], 0));
        float product = real(scales & 255) * (real(low) * x.scales[0]);
        product = fmaf(real(scales >> 8 & 255), fmaf(real(high), x.scales[1], x.middle), product);
        const float minimum = fmaf(real(minima >> 8 & 255), x.sums[1], real(minima & 255) * x.sums[0]);
        sum = fmaf(simt::unpack_low<simt::half_t>(head[0]), product, sum);
        return fmaf(-simt::unpack_high<simt::half_t>(head[0]), minimum, sum);
    }

  private:
    unsigned begin_;
};

// Every second 16 of 128 elements, e = 0 to 3: their lower four bits are in 16 and 16 bytes (0 and 2, 1 and 3), the
// upper two in 16 others. A block is at a multiple of 2. Blocks are 52.5 words, so that the lanes of neighbouring
// blocks would read the same banks of shared memory. Some lanes therefore begin with the second 16 bytes: their i-th 16
// elements are e = i ^ 1.
template <>
struct WideUnit<TSR_TYPE_Q6_K> {
    static constexpr int kKTileBytes = 8 * sizeof(formats::BlockQ6K);
    struct Activations {
        simt::UInt4 codes[4];
        float scales[4], middles[4];
    };
    bool exchanged;
    unsigned part, odd, begin_;
    int toward[2];  // -1, 0 or 1: from i to e, of i that are even and odd
    uint32_t masks[4], centre[2];
    int times[2];

    SIMT_DEVICE WideUnit(unsigned lane)
        : exchanged(exchanges(lane)),
          part(lane / 2 % 2),
          odd(lane % 2),
          begin_(lane / 4 * sizeof(formats::BlockQ6K)),
          toward{exchanged ? 1 : 0, exchanged ? -1 : 0},
          // The upper two bits of e lie 2 e bits from the lowest; of e = 3 they are the sign.
          masks{0x03030303u << 2 * toward[0], 0x03030303u << 2 * (1 + toward[1]), masks[0] << 4, masks[1] << 4},
          centre{exchanged ? 0x80808080u : 0u, exchanged ? 0u : 0x80808080u},
          times{exchanged ? 4 : 16, exchanged ? 16 : 4} {}
    SIMT_DEVICE unsigned begin() const { return begin_; }
    SIMT_DEVICE static LaneRow row(const char* row, unsigned scales_begin, unsigned sums_begin, unsigned lane) {
        const unsigned half = lane / 2, odd = lane % 2, e = exchanges(lane) ? 1 : 0;
        return {row + 128 * half + 16 * odd + 32 * e, row + scales_begin + 16 * half,
                row + sums_begin + 32 * half + 4 * odd + 8 * e};
    }
    SIMT_DEVICE Activations load(const LaneRow& row) const {
        using namespace wide_units;
        Activations x;
        const auto d = load_global<simt::Float4>(row.scales);
        // How often they count what they count, and by how much less than 32 products are too large.
        const float scales[4] = {d.x, d.y, d.z * 0.0625f, d.w * 0.0625f};
        const float middles[4] = {-32, -32, exchanged ? 8.f : -24.f, exchanged ? -24.f : 8.f};
        const char* codes[2] = {row.codes, row.codes + (exchanged ? -32 : 32)};  // of i = 0 and 1
        const char* sums[2] = {row.sums, row.sums + (exchanged ? -8 : 8)};
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            x.scales[i] = exchanged ? scales[i ^ 1] : scales[i];
            x.codes[i] = load_global<simt::UInt4>(codes[i % 2] + 64 * (i / 2));
            x.middles[i] = middles[i] * load_global<float>(sums[i % 2] + 16 * (i / 2));
        }
        return x;
    }
    SIMT_DEVICE float add(const char* from, const Activations& x, float sum) const {
        using namespace wide_units;
        const auto past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(from) & 2);
        const char* aligned = from - past;
        const uint32_t selector = 0x3210u + 0x1111u * past;
        uint32_t low[2][4], high[4], bits[4];
        words(aligned + 64 * part + 16 * odd + 32 * toward[0], selector, low[0]);
        words(aligned + 64 * part + 16 * odd + 32 * toward[1] + 32, selector, low[1]);
        words(aligned + 128 + 32 * part + 16 * odd, selector, high);
        int products[4];
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) bits[j] = i < 2 ? high[j] & masks[i] : high[j] & masks[i] ^ centre[i - 2];
            const int upper = dot16(bits, x.codes[i], 0) * times[i % 2];
            products[i] = i < 2 ? dot_low(low[i], x.codes[i], upper) : dot_high(low[i - 2], x.codes[i], upper);
        }
        const char* scales = from + 192 + 8 * part + odd;
        float product = 0;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i)
            product = fmaf(real(get<int8_t>(scales + 2 * toward[i % 2] + 2 * i)),
                           fmaf(real(products[i]), x.scales[i], x.middles[i]), product);
        return fmaf(sub_block_bits::half_at(from + 208), product, sum);
    }

  private:
    SIMT_DEVICE static bool exchanges(unsigned lane) { return lane / 4 % 2 != 0 && lane % 2 == 0; }
    // 16 bytes that begin at `aligned` or two bytes later. No block ends within the word that is read beyond them.
    SIMT_DEVICE static void words(const char* aligned, uint32_t selector, uint32_t (&to)[4]) {
        using namespace wide_units;
        uint32_t w[5];
        SIMT_UNROLL
        for (int i = 0; i < 5; ++i) w[i] = get<uint32_t>(aligned + 4 * i);
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) to[i] = byte_permute(w[i], w[i + 1], selector);
    }
};

// Two groups of 32, whose nibbles choose levels; activations are interleaved (reads_interleaved()).
template <>
struct WideUnit<TSR_TYPE_IQ4_XS> : wide_units::Neighbours {
    static constexpr int kKTileBytes = 8 * sizeof(formats::BlockIq4Xs);
    struct Activations {
        Codes codes;
        simt::Float2 scales;
    };
    static constexpr Table16 kLevels = sub_block_bits::sum_table(formats::kIq4Values);
    static_assert(sub_block_bits::is_sum_table(kLevels, formats::kIq4Values, 0));
    unsigned codes_begin, low_shift, high_shift;
    uint32_t first_levels, second_levels;

    SIMT_DEVICE WideUnit(unsigned lane)
        : codes_begin(8 + 32 * (lane % 4)),
          low_shift(8 * (lane % 4)),
          high_shift(12 + 4 * (lane % 4)),
          // As values that the compiler does not know: it would load constants again for each look-up.
          first_levels(kLevels.words[0] ^ simt::thread_index().y),
          second_levels(kLevels.words[2] ^ simt::thread_index().y),
          begin_(lane / 4 * sizeof(formats::BlockIq4Xs)) {}
    SIMT_DEVICE unsigned begin() const { return begin_; }
    SIMT_DEVICE Activations load(const LaneRow& row) const {
        return {load_codes(row), wide_units::load_global<simt::Float2>(row.scales)};
    }
    SIMT_DEVICE float add(const char* from, const Activations& x, float sum) const {
        using namespace wide_units;
        uint32_t head[2], w[8];
        sub_block_bits::get_words<8>(from, head);
        sub_block_bits::get_words<8>(from + codes_begin, w);
        const uint32_t low = head[1] >> low_shift, high = head[0] >> high_shift;
        const int first = static_cast<int>((low & 0x0F) | (high & 0x30)) - 32;
        const int second = static_cast<int>((low & 0xF0) + 4 * (high & 0xC0)) - 512;  // times 16
        float product = real(first) * (real(dot_levels(w, x.codes.of[0], x.codes.of[1])) * x.scales.x);
        product =
            fmaf(real(second) * 0.0625f, real(dot_levels(w + 4, x.codes.of[2], x.codes.of[3])) * x.scales.y, product);
        return fmaf(simt::unpack_low<simt::half_t>(head[0]), product, sum);
    }

  private:
    SIMT_DEVICE int dot_levels(const uint32_t* w, const simt::UInt4& a, const simt::UInt4& b) const {
        using namespace wide_units;
        const uint32_t x[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        int sum = 0;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            const uint32_t upper = w[i] ^ 0x88888888u;
            sum = dot(byte_permute(first_levels, kLevels.words[1], w[i]), x[2 * i], sum);
            sum = dot(byte_permute(second_levels, kLevels.words[3], upper), x[2 * i], sum);
            sum = dot(byte_permute(first_levels, kLevels.words[1], w[i] >> 16), x[2 * i + 1], sum);
            sum = dot(byte_permute(second_levels, kLevels.words[3], upper >> 16), x[2 * i + 1], sum);
        }
        return sum;
    }
    unsigned begin_;
};

}  // namespace tessera::cuda_kernels
