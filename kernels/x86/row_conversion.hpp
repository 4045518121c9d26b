// Rows of any type to f32 and f32 to rows, on vectors for the types that most files and caches have.
#pragma once

#include "kit.hpp"

#include <tessera/cpu/formats.hpp>

#include <cstdint>
#include <cstring>

namespace tessera::x86 {

// Elements that a worker converts at a time, on the stack: whole blocks of every format.
inline constexpr int64_t kConvertedElements = 1024;
static_assert(kConvertedElements % cpu::kSuperBlock == 0);

// Halves of f16 or bf16 to f32.
template <class Isa, tsr_type kType>
void widen(const char* from, int64_t count, float* to) noexcept {
    static_assert(kType == TSR_TYPE_F16 || kType == TSR_TYPE_BF16);
    int64_t i = 0;
    for (; i + Isa::kLanes <= count; i += Isa::kLanes) {
        const auto* halves = reinterpret_cast<const uint16_t*>(from) + i;
        Isa::store(to + i, kType == TSR_TYPE_F16 ? Isa::from_f16(halves) : Isa::from_bf16(halves));
    }
    for (; i < count; ++i) {
        uint16_t bits;
        std::memcpy(&bits, from + 2 * i, sizeof bits);
        to[i] = kType == TSR_TYPE_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    }
}

// Elements first .. first + count of a row, of a type that can be decoded; both are whole blocks. The bits are those
// of decode_part.
template <class Isa>
void decode_floats(tsr_type type, const char* row, int64_t first, int64_t count, float* to) noexcept {
    switch (type) {
        case TSR_TYPE_F32:
            std::memcpy(to, row + 4 * first, static_cast<size_t>(count) * 4);
            return;
        case TSR_TYPE_F16:
            widen<Isa, TSR_TYPE_F16>(row + 2 * first, count, to);
            return;
        case TSR_TYPE_BF16:
            widen<Isa, TSR_TYPE_BF16>(row + 2 * first, count, to);
            return;
        default:
            decode_part(type, row, static_cast<size_t>(first), static_cast<size_t>(count), to);
    }
}

// `elements` floats, whole blocks, to `type`, which can be encoded; the bits are those of encode_row for finite
// numbers. Others make their block of q8_0, or row of q8_KV, NaN.
template <class Isa>
void encode_floats(tsr_type type, const float* x, int64_t elements, char* to) noexcept {
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
    } else if (type == TSR_TYPE_Q8_KV) {
        auto head = formats::BlockQ8KV::RowHead::of(Isa::largest_of_floats(x, elements));
        auto* codes = reinterpret_cast<int8_t*>(to + sizeof head);
        for (int64_t i = 0; i < elements; i += 32)
            Isa::to_bytes(codes + i, x + i, head.d == 0.0f ? 0.0f : 1.0f / head.d);
        for (int64_t i = 0; i < elements; ++i) head.sum += codes[i];
        std::memcpy(to, &head, sizeof head);
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

}  // namespace tessera::x86
