// Integer arithmetic (PTX ISA manual, "Integer Arithmetic Instructions").
#include "arithmetic.hpp"
#include "lanes.hpp"

#include <limits>
#include <type_traits>

namespace tessera::cuda::ptx {
namespace {

// Computes in a type in which nothing overflows but by wrapping.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;
template <class T>
using Double = std::conditional_t<
    std::is_signed_v<T>, std::conditional_t<sizeof(T) == 8, Wide, std::conditional_t<sizeof(T) == 4, int64_t, int32_t>>,
    std::conditional_t<sizeof(T) == 8, UnsignedWide, std::conditional_t<sizeof(T) == 4, uint64_t, uint32_t>>>;

constexpr auto kAdd = []<class T>(T a, T b) { return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b)); };
constexpr auto kSubtract = []<class T>(T a, T b) { return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b)); };
constexpr auto kMultiply = []<class T>(T a, T b) { return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b)); };
constexpr auto kMultiplyHigh = []<class T>(T a, T b) {
    return static_cast<T>((Double<T>(a) * Double<T>(b)) >> (8 * sizeof(T)));
};
constexpr auto kMultiplyAdd = []<class T>(T a, T b, T c) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b) + Wrapping<T>(c));
};
constexpr auto kMultiplyHighAdd = []<class T>(T a, T b, T c) {
    return static_cast<T>(Wrapping<T>((Double<T>(a) * Double<T>(b)) >> (8 * sizeof(T))) + Wrapping<T>(c));
};
constexpr auto kMinimum = []<class T>(T a, T b) { return a < b ? a : b; };
constexpr auto kMaximum = []<class T>(T a, T b) { return a > b ? a : b; };
constexpr auto kNegate = []<class T>(T a) { return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a)); };
constexpr auto kAbsolute = []<class T>(T a) { return a < 0 ? static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a)) : a; };
// By zero: the manual leaves it open.
template <class T>
constexpr bool undivided(T a, T b) {
    return b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min());
}
constexpr auto kDivide = []<class T>(T a, T b) {
    if (undivided(a, b)) return b == 0 ? static_cast<T>(-1) : a;
    return static_cast<T>(a / b);
};
constexpr auto kRemainder = []<class T>(T a, T b) {
    if (undivided(a, b)) return b == 0 ? a : static_cast<T>(0);
    return static_cast<T>(a % b);
};
constexpr auto kDifference = []<class T>(T a, T b, T c) {
    return static_cast<T>(Wrapping<T>(a < b ? b : a) - Wrapping<T>(a < b ? a : b) + Wrapping<T>(c));
};

constexpr std::string_view kIntegers = "u16 s16 u32 s32 u64 s64";

template <auto F, int Operands>
void plain(Coder& coder) {
    const Type type = coder.type(kIntegers);
    write_and_read(coder, type, Operands);
    coder.emit(of_integers<F, Operands>(type));
}
template <auto F, int Operands>
void plain_unsigned(Coder& coder) {
    const Type type = coder.type(kIntegers);
    write_and_read(coder, type, Operands);
    coder.emit(of_bits<F, Operands>(type));
}

template <auto F, int Operands, FloatOperation Float>
void either(Coder& coder) {
    const Type last = coder.last_type();
    if (last == kF32 || last == kF64) return translate_float(coder, Float);
    if (last.is_float()) return translate_half(coder, Float);
    plain<F, Operands>(coder);
}

template <class W, class T, bool Add>
Handler wide_handler() {
    constexpr auto product = [](T a, T b) { return static_cast<W>(static_cast<W>(a) * static_cast<W>(b)); };
    constexpr auto sum = [](T a, T b, W c) {
        return static_cast<W>(Wrapping<W>(static_cast<W>(a) * static_cast<W>(b)) + Wrapping<W>(c));
    };
    if constexpr (Add)
        return kElementwise<sum, W, T, T, W>;
    else
        return kElementwise<product, W, T, T>;
}

template <bool Add>
void wide(Coder& coder) {
    const Type type = coder.type("u16 s16 u32 s32");
    const Type result{type.kind, static_cast<uint8_t>(2 * type.bits)};
    coder.expect_count(Add ? 4 : 3);
    coder.write(coder.operand(0), result);
    coder.read(coder.operand(1), type);
    coder.read(coder.operand(2), type);
    if (Add) coder.read(coder.operand(3), result);
    const bool is_signed = type.kind == Kind::kSigned;
    if (type.bits == 32)
        return coder.emit(is_signed ? wide_handler<int64_t, int32_t, Add>() : wide_handler<uint64_t, uint32_t, Add>());
    coder.emit(is_signed ? wide_handler<int32_t, int16_t, Add>() : wide_handler<uint32_t, uint16_t, Add>());
}

void multiply(Coder& coder) {
    const Type last = coder.last_type();
    if (last == kF32 || last == kF64) return translate_float(coder, FloatOperation::kMultiply);
    if (last.is_float()) return translate_half(coder, FloatOperation::kMultiply);
    if (coder.accept("wide")) return wide<false>(coder);
    if (coder.accept("hi")) return plain<kMultiplyHigh, 2>(coder);
    coder.expect("lo");
    plain_unsigned<kMultiply, 2>(coder);
}

void multiply_add(Coder& coder) {
    const Type last = coder.last_type();
    if (last.is_float()) return translate_float(coder, FloatOperation::kFma);
    if (coder.accept("wide")) return wide<true>(coder);
    if (coder.accept("hi")) return plain<kMultiplyHighAdd, 3>(coder);
    coder.expect("lo");
    plain_unsigned<kMultiplyAdd, 3>(coder);
}

template <class A, class B>
constexpr auto kDot4 = [](uint32_t a, uint32_t b, uint32_t c) {
    for (int shift = 0; shift < 32; shift += 8)
        c += static_cast<uint32_t>(int32_t{static_cast<A>(a >> shift)} * int32_t{static_cast<B>(b >> shift)});
    return c;
};
template <class A, class B, int High>
constexpr auto kDot2 = [](uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 2; ++i)
        c += static_cast<uint32_t>(int32_t{static_cast<A>(a >> 16 * i)} *
                                   int32_t{static_cast<B>(b >> (16 * High + 8 * i))});
    return c;
};

Handler dot4(bool a, bool b) {
    if (a)
        return b ? of_one_type<kDot4<int8_t, int8_t>, uint32_t, 3>()
                 : of_one_type<kDot4<int8_t, uint8_t>, uint32_t, 3>();
    return b ? of_one_type<kDot4<uint8_t, int8_t>, uint32_t, 3>() : of_one_type<kDot4<uint8_t, uint8_t>, uint32_t, 3>();
}
template <int High>
Handler dot2(bool a, bool b) {
    if (a)
        return b ? of_one_type<kDot2<int16_t, int8_t, High>, uint32_t, 3>()
                 : of_one_type<kDot2<int16_t, uint8_t, High>, uint32_t, 3>();
    return b ? of_one_type<kDot2<uint16_t, int8_t, High>, uint32_t, 3>()
             : of_one_type<kDot2<uint16_t, uint8_t, High>, uint32_t, 3>();
}

template <bool Four>
void dot(Coder& coder) {
    bool high = false;
    if (!Four && !coder.accept("lo")) {
        coder.expect("hi");
        high = true;
    }
    const bool a = coder.type("u32 s32") == kS32, b = coder.type("u32 s32") == kS32;
    write_and_read(coder, kB32, 3);
    coder.emit(Four ? dot4(a, b) : high ? dot2<1>(a, b) : dot2<0>(a, b));
}

}  // namespace

std::span<const Opcode> integer_opcodes() {
    static constexpr Opcode kOpcodes[] = {
        {"add", either<kAdd, 2, FloatOperation::kAdd>},
        {"sub", either<kSubtract, 2, FloatOperation::kSubtract>},
        {"mul", multiply},
        {"mad", multiply_add},
        {"div", either<kDivide, 2, FloatOperation::kDivide>},
        {"rem", plain<kRemainder, 2>},
        {"min", either<kMinimum, 2, FloatOperation::kMinimum>},
        {"max", either<kMaximum, 2, FloatOperation::kMaximum>},
        {"neg", either<kNegate, 1, FloatOperation::kNegate>},
        {"abs", either<kAbsolute, 1, FloatOperation::kAbsolute>},
        {"sad", plain<kDifference, 3>},
        {"dp4a", dot<true>},
        {"dp2a", dot<false>},
    };
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
