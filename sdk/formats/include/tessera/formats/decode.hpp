// Blocks to f32, in plain C++. Every product of a scale and a code is exact in f32 (at most 24 significant bits), so
// the result does not depend on whether the compiler fuses a multiplication with the addition after it.
#pragma once

#include <tessera/formats/blocks.hpp>
#include <tessera/formats/freestanding.hpp>
#include <tessera/formats/half.hpp>

namespace tessera::formats {

// One block to its 32 or 256 values; blocks of formats with a scale a row are given that. `out` and `block` do not
// overlap.

inline void decode(const BlockQ4_0& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 16; ++j) {
        out[j] = d * static_cast<float>((block.qs[j] & 15) - 8);
        out[j + 16] = d * static_cast<float>((block.qs[j] >> 4) - 8);
    }
}

inline void decode(const BlockQ4_1& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float m = f16_to_f32(block.m);
    for (int j = 0; j < 16; ++j) {
        out[j] = d * static_cast<float>(block.qs[j] & 15) + m;
        out[j + 16] = d * static_cast<float>(block.qs[j] >> 4) + m;
    }
}

// The code (0..31) of element `j` of a block of q5_0 or q5_1.
template <class Block>
inline int five_bit_code(const Block& block, int j) noexcept {
    const int low = j < 16 ? block.qs[j] & 15 : block.qs[j - 16] >> 4;
    return low | (block.qh[j / 8] >> (j % 8) & 1) << 4;
}

inline void decode(const BlockQ5_0& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(five_bit_code(block, j) - 16);
}

inline void decode(const BlockQ5_1& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float m = f16_to_f32(block.m);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(five_bit_code(block, j)) + m;
}

inline void decode(const BlockQ8_0& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(block.qs[j]);
}

// Code of element j, 0 to 63.
inline int six_bit_code(const BlockQ6_0& block, int j) noexcept {
    const int i = j % 16, high = block.qh[i % 8] >> (4 * (i / 8));
    return j < 16 ? (block.qs[i] & 15) | (high & 3) << 4 : (block.qs[i] >> 4) | (high & 12) << 2;
}

inline void decode(const BlockQ6_0& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(six_bit_code(block, j) - 32);
}

inline void decode(const BlockMxfp4& block, float* out) noexcept {
    const float d = half_e8m0_to_f32(block.e);
    for (int j = 0; j < 16; ++j) {
        out[j] = d * static_cast<float>(kMxfp4Values[block.qs[j] & 15]);
        out[j + 16] = d * static_cast<float>(kMxfp4Values[block.qs[j] >> 4]);
    }
}

inline void decode(const BlockQ8KF16& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < kSuperBlock; ++j) out[j] = d * static_cast<float>(block.qs[j]);
}

inline void decode(const BlockQ8Row& block, float row_scale, float* out) noexcept {
    for (int j = 0; j < kSmallBlock; ++j) out[j] = row_scale * static_cast<float>(block.qs[j]);
}

inline void decode(const BlockIq4Nl& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 16; ++j) {
        out[j] = d * static_cast<float>(kIq4Values[block.qs[j] & 15]);
        out[j + 16] = d * static_cast<float>(kIq4Values[block.qs[j] >> 4]);
    }
}

inline void decode(const BlockIq4Xs& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int group = 0; group < 8; ++group, out += 32) {
        const float scale = d * static_cast<float>(iq4xs_scale(block, group));
        const uint8_t* qs = block.qs + 16 * group;
        for (int j = 0; j < 16; ++j) {
            out[j] = scale * static_cast<float>(kIq4Values[qs[j] & 15]);
            out[j + 16] = scale * static_cast<float>(kIq4Values[qs[j] >> 4]);
        }
    }
}

inline void decode(const BlockQ2K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    for (int group = 0; group < 16; ++group) {
        const float scale = d * static_cast<float>(block.scales[group] & 15);
        const float min = dmin * static_cast<float>(block.scales[group] >> 4);
        const uint8_t* qs = block.qs + 32 * (group / 8) + 16 * (group % 2);
        const int shift = 2 * (group / 2 % 4);
        for (int j = 0; j < 16; ++j) *out++ = scale * static_cast<float>(qs[j] >> shift & 3) - min;
    }
}

inline void decode(const BlockQ3K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int group = 0; group < 16; ++group) {
        const float scale = d * static_cast<float>(q3k_scale(block.scales, group));
        const uint8_t* qs = block.qs + 32 * (group / 8) + 16 * (group % 2);
        const uint8_t* high = block.hmask + 16 * (group % 2);
        const int shift = 2 * (group / 2 % 4);
        for (int j = 0; j < 16; ++j) {
            const int code = (qs[j] >> shift & 3) | (high[j] >> (group / 2) & 1) << 2;
            *out++ = scale * static_cast<float>(code - 4);
        }
    }
}

inline void decode(const BlockQ4K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    for (int group = 0; group < 8; ++group) {
        const ScaleMin packed = k_scale_min(block.scales, group);
        const float scale = d * static_cast<float>(packed.scale);
        const float min = dmin * static_cast<float>(packed.min);
        const uint8_t* qs = block.qs + 32 * (group / 2);
        const int shift = 4 * (group % 2);
        for (int j = 0; j < 32; ++j) *out++ = scale * static_cast<float>(qs[j] >> shift & 15) - min;
    }
}

inline void decode(const BlockQ5K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    for (int group = 0; group < 8; ++group) {
        const ScaleMin packed = k_scale_min(block.scales, group);
        const float scale = d * static_cast<float>(packed.scale);
        const float min = dmin * static_cast<float>(packed.min);
        const uint8_t* qs = block.qs + 32 * (group / 2);
        const int shift = 4 * (group % 2);
        for (int j = 0; j < 32; ++j) {
            const int code = (qs[j] >> shift & 15) | (block.qh[j] >> group & 1) << 4;
            *out++ = scale * static_cast<float>(code) - min;
        }
    }
}

inline void decode(const BlockQ6K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int group = 0; group < 16; ++group) {
        const float scale = d * static_cast<float>(block.scales[group]);
        const int half = group / 8;         // which 128 elements
        const int within = group % 8 * 16;  // first element inside them
        const uint8_t* ql = block.ql + 64 * half + within % 64;
        const uint8_t* qh = block.qh + 32 * half + within % 32;
        const int shift_low = within < 64 ? 0 : 4;
        const int shift_high = 2 * (within / 32);
        for (int j = 0; j < 16; ++j) {
            const int code = (ql[j] >> shift_low & 15) | (qh[j] >> shift_high & 3) << 4;
            *out++ = scale * static_cast<float>(code - 32);
        }
    }
}

}  // namespace tessera::formats
