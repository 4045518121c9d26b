// Arithmetic of 16-bit floating-point numbers and of pairs of them (PTX ISA manual, "Half Precision Floating Point
// Instructions").
#include "halves.hpp"

#include "arithmetic.hpp"
#include "lanes.hpp"

#include <bit>

namespace tessera::cuda::ptx {
namespace {

// Sums of products of two such numbers are exact in f64, or so far from half way between two of them that the rounding
// to f64 does not show.
struct Half {
    static double wide(uint16_t bits) { return static_cast<double>(std::bit_cast<_Float16>(bits)); }
    static uint16_t narrow(double value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }
};
struct Brain {
    static double wide(uint16_t bits) { return double{std::bit_cast<float>(uint32_t{bits} << 16)}; }
    static uint16_t narrow(double value) { return brain_of(value); }
};

template <class Number, FloatOperation Operation>
struct One {
    uint16_t operator()(uint16_t a, uint16_t b, uint16_t c) const {
        const double x = Number::wide(a), y = Number::wide(b), z = Number::wide(c);
        if constexpr (Operation == FloatOperation::kAdd) return Number::narrow(x + y);
        if constexpr (Operation == FloatOperation::kSubtract) return Number::narrow(x - y);
        if constexpr (Operation == FloatOperation::kMultiply) return Number::narrow(x * y);
        if constexpr (Operation == FloatOperation::kFma) return Number::narrow(x * y + z);
        if constexpr (Operation == FloatOperation::kMinimum) return x != x ? b : y != y || x < y ? a : b;
        if constexpr (Operation == FloatOperation::kMaximum) return x != x ? b : y != y || x > y ? a : b;
        if constexpr (Operation == FloatOperation::kNegate) return a ^ 0x8000u;
        return a & 0x7FFFu;
    }
    uint16_t operator()(uint16_t a, uint16_t b) const { return (*this)(a, b, 0); }
    uint16_t operator()(uint16_t a) const { return (*this)(a, 0, 0); }
};

template <class Number, FloatOperation Operation>
struct Pair {
    template <class... T>
    uint32_t operator()(T... words) const {
        const One<Number, Operation> one;
        return one(static_cast<uint16_t>(words)...) | static_cast<uint32_t>(one(static_cast<uint16_t>(words >> 16)...))
                                                          << 16;
    }
};

template <FloatOperation Operation, int Operands>
void finish(Coder& coder) {
    const Type type = coder.type("f16 f16x2 bf16 bf16x2");
    coder.expect_count(1 + Operands);
    const Type bits = type.bits == 16 ? kB16 : kB32;
    coder.write(coder.operand(0), bits);
    for (size_t i = 1; i <= Operands; ++i) coder.read(coder.operand(i), bits);
    if (type == kF16) return coder.emit(of_one_type<One<Half, Operation>{}, uint16_t, Operands>());
    if (type == kBf16) return coder.emit(of_one_type<One<Brain, Operation>{}, uint16_t, Operands>());
    if (type == kF16x2) return coder.emit(of_one_type<Pair<Half, Operation>{}, uint32_t, Operands>());
    coder.emit(of_one_type<Pair<Brain, Operation>{}, uint32_t, Operands>());
}

}  // namespace

void translate_half(Coder& coder, FloatOperation operation) {
    switch (operation) {
        case FloatOperation::kAdd:
            coder.accept("rn");
            return finish<FloatOperation::kAdd, 2>(coder);
        case FloatOperation::kSubtract:
            coder.accept("rn");
            return finish<FloatOperation::kSubtract, 2>(coder);
        case FloatOperation::kMultiply:
            coder.accept("rn");
            return finish<FloatOperation::kMultiply, 2>(coder);
        case FloatOperation::kFma:
            coder.expect("rn");
            return finish<FloatOperation::kFma, 3>(coder);
        case FloatOperation::kMinimum:
            return finish<FloatOperation::kMinimum, 2>(coder);
        case FloatOperation::kMaximum:
            return finish<FloatOperation::kMaximum, 2>(coder);
        case FloatOperation::kNegate:
            return finish<FloatOperation::kNegate, 1>(coder);
        case FloatOperation::kAbsolute:
            return finish<FloatOperation::kAbsolute, 1>(coder);
        case FloatOperation::kDivide:
            coder.refuse("not supported of 16 bits");
    }
}

}  // namespace tessera::cuda::ptx
