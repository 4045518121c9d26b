// Types of PTX (PTX ISA manual, "Fundamental Types").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::cuda::ptx {

enum class Kind : uint8_t { kNone, kBits, kUnsigned, kSigned, kFloat, kBrain, kPair, kBrainPair, kPredicate };

struct Type {
    Kind kind = Kind::kNone;
    uint8_t bits = 0;  // 0: of a predicate, or of no type

    bool operator==(const Type&) const = default;
    bool is_float() const noexcept { return kind >= Kind::kFloat && kind <= Kind::kBrainPair; }
    bool is_integer() const noexcept { return kind >= Kind::kBits && kind <= Kind::kSigned; }
    uint32_t bytes() const noexcept { return bits / 8u; }
};

inline constexpr Type kPredicate{Kind::kPredicate, 0};
inline constexpr Type kB16{Kind::kBits, 16}, kB32{Kind::kBits, 32}, kB64{Kind::kBits, 64};
inline constexpr Type kU16{Kind::kUnsigned, 16}, kU32{Kind::kUnsigned, 32}, kU64{Kind::kUnsigned, 64};
inline constexpr Type kS16{Kind::kSigned, 16}, kS32{Kind::kSigned, 32}, kS64{Kind::kSigned, 64};
inline constexpr Type kF16{Kind::kFloat, 16}, kF32{Kind::kFloat, 32}, kF64{Kind::kFloat, 64};
inline constexpr Type kF16x2{Kind::kPair, 32}, kBf16{Kind::kBrain, 16}, kBf16x2{Kind::kBrainPair, 32};

// Of "s32", "pred" and so on, without a point; Kind::kNone if it names no type.
inline Type type_named(std::string_view name) {
    if (name == "pred") return kPredicate;
    if (name == "f16x2") return kF16x2;
    if (name == "bf16") return kBf16;
    if (name == "bf16x2") return kBf16x2;
    if (name.size() < 2 || name.size() > 3) return {};
    Kind kind = Kind::kNone;
    switch (name[0]) {
        case 'b':
            kind = Kind::kBits;
            break;
        case 'u':
            kind = Kind::kUnsigned;
            break;
        case 's':
            kind = Kind::kSigned;
            break;
        case 'f':
            kind = Kind::kFloat;
            break;
        default:
            return {};
    }
    const std::string_view size = name.substr(1);
    const uint8_t bits = size == "8" ? 8 : size == "16" ? 16 : size == "32" ? 32 : size == "64" ? 64 : 0;
    if (bits == 0 || (kind == Kind::kFloat && bits == 8)) return {};
    return {kind, bits};
}

enum class Space : uint8_t { kGeneric, kGlobal, kConst, kShared, kLocal, kParam };

}  // namespace tessera::cuda::ptx
