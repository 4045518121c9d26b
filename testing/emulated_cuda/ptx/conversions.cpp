// cvt (PTX ISA manual, "Data Movement and Conversion Instructions: cvt").
#include "halves.hpp"
#include "lanes.hpp"

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <limits>

namespace tessera::cuda::ptx {
namespace {

// Calls act.operator()<T>() with the C++ type of an integer type of PTX.
template <class Act>
Handler for_integer(Type type, const Act& act) {
    const bool is_signed = type.kind == Kind::kSigned;
    switch (type.bits) {
        case 8:
            return is_signed ? act.template operator()<int8_t>() : act.template operator()<uint8_t>();
        case 16:
            return is_signed ? act.template operator()<int16_t>() : act.template operator()<uint16_t>();
        case 32:
            return is_signed ? act.template operator()<int32_t>() : act.template operator()<uint32_t>();
        default:
            return is_signed ? act.template operator()<int64_t>() : act.template operator()<uint64_t>();
    }
}
// With that of a register.
template <class Act>
Handler for_width(uint32_t bits, const Act& act) {
    return bits == 16   ? act.template operator()<uint16_t>()
           : bits == 32 ? act.template operator()<uint32_t>()
                        : act.template operator()<uint64_t>();
}

constexpr std::string_view kIntegers = "u8 s8 u16 s16 u32 s32 u64 s64";

uint32_t register_bits(Type type) {
    return type.bits < 16 ? 16 : type.bits;
}

// A register's low bits as an integer of type N, extended to another register.
template <class N, class From, class To>
constexpr auto kNarrowed = [](From a) { return static_cast<To>(static_cast<N>(a)); };

void integer_to_integer(Coder& coder, Type to, Type from) {
    const uint32_t width = coder.width(coder.operand(0), register_bits(to));
    coder.write_wide(coder.operand(0), to);
    coder.read_wide(coder.operand(1), from);
    const uint32_t from_width = coder.width(coder.operand(1), from.bits);
    if (from_width < 16) coder.refuse("a number of 8 bits cannot stand here");
    if (width != register_bits(to) && !(to.bits == 8 && width == 32)) coder.refuse("the result's register is too wide");
    const Type narrow = to.bits <= from.bits ? to : from;
    coder.emit(for_integer(narrow, [&]<class N>() {
        return for_width(from_width, [&]<class From>() {
            return for_width(width, [&]<class To>() { return kElementwise<kNarrowed<N, From, To>, To, From>; });
        });
    }));
}

template <class N, class From, class To>
constexpr auto kToFloat = [](From a) { return static_cast<To>(static_cast<N>(a)); };

void integer_to_float(Coder& coder, Type to, Type from) {
    coder.write(coder.operand(0), to);
    coder.read_wide(coder.operand(1), from);
    const uint32_t from_width = coder.width(coder.operand(1), from.bits);
    if (from_width < 16) coder.refuse("a number of 8 bits cannot stand here");
    coder.emit(for_integer(from, [&]<class N>() {
        return for_width(from_width, [&]<class From>() {
            return to == kF32   ? kElementwise<kToFloat<N, From, float>, float, From>
                   : to == kF64 ? kElementwise<kToFloat<N, From, double>, double, From>
                                : Handler{};
        });
    }));
}

enum class Rounding { kNone, kNearest, kZero, kDown, kUp };
template <Rounding R, class T>
T rounded(T a) {
    switch (R) {
        case Rounding::kNearest:
            return std::nearbyint(a);
        case Rounding::kZero:
            return std::trunc(a);
        case Rounding::kDown:
            return std::floor(a);
        case Rounding::kUp:
            return std::ceil(a);
        default:
            return a;
    }
}

// Saturates; 0 for what is not a number.
template <Rounding R, bool Flush, class Float, class Integer>
constexpr auto kToInteger = [](Float a) {
    constexpr bool kSigned = std::is_signed_v<Integer>;
    // Both exact: powers of two.
    constexpr Float kEnd = static_cast<Float>(uint64_t{1} << (8 * sizeof(Integer) - 1)) * (kSigned ? 1 : 2);
    constexpr Float kBegin = kSigned ? -kEnd : Float{0};
    if (Flush && std::fabs(a) < std::numeric_limits<Float>::min()) a = 0;
    const Float whole = rounded<R>(a);
    const Float inside = whole >= kBegin && whole < kEnd ? whole : Float{0};
    const auto value = static_cast<Integer>(inside);
    return whole >= kEnd    ? std::numeric_limits<Integer>::max()
           : whole < kBegin ? std::numeric_limits<Integer>::min()
                            : value;
};

template <Rounding R, bool Flush>
void float_to_integer(Coder& coder, Type to, Type from) {
    coder.write_wide(coder.operand(0), to);
    const uint32_t width = coder.width(coder.operand(0), register_bits(to));
    if (width != register_bits(to)) coder.refuse("the result's register is too wide");
    if (from != kF32 && from != kF64) coder.refuse("not supported with these types");
    coder.read(coder.operand(1), from);
    coder.emit(for_integer(to, [&]<class Integer>() {
        using Held = std::conditional_t<sizeof(Integer) == 1,
                                        std::conditional_t<std::is_signed_v<Integer>, int16_t, uint16_t>, Integer>;
        return from == kF32 ? kElementwise<kToInteger<R, Flush, float, Integer>, Held, float>
                            : kElementwise<kToInteger<R, Flush, double, Integer>, Held, double>;
    }));
}

template <Rounding R, bool Flush, bool Saturate>
constexpr auto kToWhole = []<class T>(T a) {
    if (Flush && std::fabs(a) < std::numeric_limits<T>::min()) a = std::copysign(T{0}, a);
    const T value = rounded<R>(a);
    return Saturate ? (value > 0 ? (value < 1 ? value : T{1}) : T{0}) : value;
};

template <bool Whole>
void halves_to_floats(Warp& warp, const Instruction& i, uint32_t lanes) {
    float* const to = warp.at<float>(i.places[0]);
    const uint16_t* const from = warp.at<uint16_t>(i.places[1]);
    alignas(32) float values[kLanes];
    for (uint32_t l = 0; l < kLanes; l += 8)
        _mm256_store_ps(values + l, _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(from + l))));
    for (uint32_t l = 0; l < kLanes; ++l) to[l] = Whole || (lanes >> l & 1) ? values[l] : to[l];
}

template <bool Whole, int Round>
void floats_to_halves(Warp& warp, const Instruction& i, uint32_t lanes) {
    auto* const to = warp.at<uint16_t>(i.places[0]);
    const float* const from = warp.at<float>(i.places[1]);
    alignas(16) uint16_t values[kLanes];
    for (uint32_t l = 0; l < kLanes; l += 8)
        _mm_store_si128(reinterpret_cast<__m128i*>(values + l), _mm256_cvtps_ph(_mm256_load_ps(from + l), Round));
    for (uint32_t l = 0; l < kLanes; ++l) to[l] = Whole || (lanes >> l & 1) ? values[l] : to[l];
}

constexpr auto kToBrain = [](float a) { return brain_of(double{a}); };
constexpr auto kFromBrain = [](uint16_t a) { return std::bit_cast<float>(uint32_t{a} << 16); };
constexpr auto kToBrains = [](float high, float low) {
    return static_cast<uint32_t>(brain_of(double{low})) | static_cast<uint32_t>(brain_of(double{high})) << 16;
};
constexpr auto kToHalves = [](float high, float low) {
    return static_cast<uint32_t>(std::bit_cast<uint16_t>(static_cast<_Float16>(low))) |
           static_cast<uint32_t>(std::bit_cast<uint16_t>(static_cast<_Float16>(high))) << 16;
};
constexpr auto kWiden = [](float a) { return double{a}; };
constexpr auto kNarrow = [](double a) { return static_cast<float>(a); };

struct How {
    Rounding whole = Rounding::kNone;            // .rni and so on: to an integer
    bool nearest = false, towards_zero = false;  // .rn, .rz: to a format
    bool flush = false, saturate = false;
};

template <Rounding R>
void same_float(Coder& coder, Type type, How how) {
    write_and_read(coder, type, 1);
    if (type == kF64) {
        if (how.flush || how.saturate) coder.refuse("not supported of f64");
        return coder.emit(kElementwise<kToWhole<R, false, false>, double, double>);
    }
    if (how.flush)
        return coder.emit(how.saturate ? kElementwise<kToWhole<R, true, true>, float, float>
                                       : kElementwise<kToWhole<R, true, false>, float, float>);
    coder.emit(how.saturate ? kElementwise<kToWhole<R, false, true>, float, float>
                            : kElementwise<kToWhole<R, false, false>, float, float>);
}

void float_to_float(Coder& coder, Type to, Type from, How how) {
    if (to == from && (to == kF32 || to == kF64)) {
        switch (how.whole) {
            case Rounding::kNone:
                return same_float<Rounding::kNone>(coder, to, how);
            case Rounding::kNearest:
                return same_float<Rounding::kNearest>(coder, to, how);
            case Rounding::kZero:
                return same_float<Rounding::kZero>(coder, to, how);
            case Rounding::kDown:
                return same_float<Rounding::kDown>(coder, to, how);
            case Rounding::kUp:
                return same_float<Rounding::kUp>(coder, to, how);
        }
    }
    if (how.whole != Rounding::kNone || how.flush || how.saturate) coder.refuse("not supported with these types");
    const bool narrows = to.bits < from.bits || to == kF16x2 || to == kBf16x2;
    if (narrows != (how.nearest || how.towards_zero)) coder.refuse(narrows ? "expected a rounding" : "rounds nothing");
    if (how.towards_zero && to != kF16) coder.refuse("not supported: .rz");
    const Type held = to.bits == 16 ? kB16 : to.kind == Kind::kPair || to.kind == Kind::kBrainPair ? kB32 : to;
    coder.write(coder.operand(0), held);
    for (size_t k = 1; k < coder.count(); ++k) coder.read(coder.operand(k), from.bits == 16 ? kB16 : from);
    if (to == kF32 && from == kF16) return coder.emit({halves_to_floats<true>, halves_to_floats<false>});
    if (to == kF16 && from == kF32)
        return coder.emit(how.nearest ? Handler{floats_to_halves<true, _MM_FROUND_TO_NEAREST_INT>,
                                                floats_to_halves<false, _MM_FROUND_TO_NEAREST_INT>}
                                      : Handler{floats_to_halves<true, _MM_FROUND_TO_ZERO>,
                                                floats_to_halves<false, _MM_FROUND_TO_ZERO>});
    if (to == kF64 && from == kF32) return coder.emit(kElementwise<kWiden, double, float>);
    if (to == kF32 && from == kF64) return coder.emit(kElementwise<kNarrow, float, double>);
    if (to == kBf16 && from == kF32) return coder.emit(kElementwise<kToBrain, uint16_t, float>);
    if (to == kF32 && from == kBf16) return coder.emit(kElementwise<kFromBrain, float, uint16_t>);
    if (to == kBf16x2 && from == kF32) return coder.emit(kElementwise<kToBrains, uint32_t, float, float>);
    if (to == kF16x2 && from == kF32) return coder.emit(kElementwise<kToHalves, uint32_t, float, float>);
    coder.refuse("not supported with these types");
}

void convert(Coder& coder) {
    How how;
    if (coder.accept("rni")) how.whole = Rounding::kNearest;
    if (coder.accept("rzi")) how.whole = Rounding::kZero;
    if (coder.accept("rmi")) how.whole = Rounding::kDown;
    if (coder.accept("rpi")) how.whole = Rounding::kUp;
    how.nearest = coder.accept("rn");
    how.towards_zero = coder.accept("rz");
    how.flush = coder.accept("ftz");
    how.saturate = coder.accept("sat");
    const Type to = coder.type(), from = coder.type();
    const bool pair = to == kF16x2 || to == kBf16x2;
    coder.expect_count(pair ? 3 : 2);
    if (to.kind == Kind::kBits || from.kind == Kind::kBits || to == kPredicate || from == kPredicate)
        coder.refuse("bits are not converted");
    if (to.is_integer() && from.is_integer()) {
        if (how.saturate || how.nearest || how.towards_zero || how.whole != Rounding::kNone)
            coder.refuse("not supported of integers");
        return integer_to_integer(coder, to, from);
    }
    if (from.is_integer()) {
        if (!how.nearest) coder.refuse("expected .rn");
        if (how.saturate) coder.refuse("not supported: .sat");
        return integer_to_float(coder, to, from);
    }
    if (to.is_float()) return float_to_float(coder, to, from, how);
    if (how.nearest || how.towards_zero) coder.refuse("expected a rounding to integers");
    const auto with = [&]<Rounding R>() {
        how.flush ? float_to_integer<R, true>(coder, to, from) : float_to_integer<R, false>(coder, to, from);
    };
    switch (how.whole) {
        case Rounding::kNone:
            coder.refuse("expected a rounding to integers");
        case Rounding::kNearest:
            return with.operator()<Rounding::kNearest>();
        case Rounding::kZero:
            return with.operator()<Rounding::kZero>();
        case Rounding::kDown:
            return with.operator()<Rounding::kDown>();
        case Rounding::kUp:
            return with.operator()<Rounding::kUp>();
    }
}

}  // namespace

std::span<const Opcode> conversion_opcodes() {
    static constexpr Opcode kOpcodes[] = {{"cvt", convert}};
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
