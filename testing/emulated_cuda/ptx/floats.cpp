// Floating-point arithmetic (PTX ISA manual, "Floating Point Instructions"). What cards approximate within documented
// errors is computed nearer to the exact value than that.
#include "arithmetic.hpp"
#include "lanes.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace tessera::cuda::ptx {
namespace {

// Subnormal numbers as zero of their sign.
template <bool Flush>
float flushed(float a) {
    if constexpr (!Flush) return a;
    const uint32_t bits = std::bit_cast<uint32_t>(a);
    return std::bit_cast<float>((bits & 0x7F800000u) == 0 ? bits & 0x80000000u : bits);
}
float saturated(float a) {
    return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f;  // 0 for what is not a number
}

enum class Towards { kDown, kUp, kZero };

// The f32 next to a b + c in that direction. The product of two f32 is exact in f64, and so is the error of its sum
// with c.
template <Towards Direction>
float fma_directed(float a, float b, float c) {
    const float near = __builtin_fmaf(a, b, c);
    const double product = double{a} * double{b}, sum = product + double{c};
    const double part = sum - product, error = (product - (sum - part)) + (double{c} - part);
    const double beyond = (sum - double{near}) + error;  // the exact value less `near`
    const bool down = Direction == Towards::kDown || (Direction == Towards::kZero && near > 0);
    if (Direction == Towards::kZero && near == 0) return near;
    if (std::isinf(near)) {
        const bool past = std::isfinite(sum) && (near > 0) == down;
        return past ? std::copysign(std::numeric_limits<float>::max(), near) : near;
    }
    if (!(down ? beyond < 0 : beyond > 0)) return near;
    if (near == 0) return std::bit_cast<float>(down ? 0x80000001u : 1u);
    // Numbers of one sign are ordered as their bits are.
    const auto bits = std::bit_cast<int32_t>(near);
    return std::bit_cast<float>(bits + ((bits < 0) == down ? 1 : -1));
}

struct Add {
    float operator()(float a, float b) const { return a + b; }
    double operator()(double a, double b) const { return a + b; }
};
struct Subtract {
    float operator()(float a, float b) const { return a - b; }
    double operator()(double a, double b) const { return a - b; }
};
struct Multiply {
    float operator()(float a, float b) const { return a * b; }
    double operator()(double a, double b) const { return a * b; }
};
struct Divide {
    float operator()(float a, float b) const { return a / b; }
    double operator()(double a, double b) const { return a / b; }
};
struct Fma {
    float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
    double operator()(double a, double b, double c) const { return __builtin_fma(a, b, c); }
};
template <Towards Direction>
struct FmaDirected {
    float operator()(float a, float b, float c) const { return fma_directed<Direction>(a, b, c); }
};
template <Towards Direction>
struct AddDirected {
    float operator()(float a, float b) const { return fma_directed<Direction>(a, 1.0f, b); }
};
template <Towards Direction>
struct SubtractDirected {
    float operator()(float a, float b) const { return fma_directed<Direction>(a, 1.0f, -b); }
};
template <Towards Direction>
struct MultiplyDirected {
    float operator()(float a, float b) const { return fma_directed<Direction>(a, b, -0.0f); }
};
// The one that is a number, if the other is none; -0 is less than 0.
template <class T>
T lesser(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
}
struct Minimum {
    float operator()(float a, float b) const { return lesser(a, b); }
    double operator()(double a, double b) const { return lesser(a, b); }
};
struct Maximum {
    float operator()(float a, float b) const { return -lesser(-a, -b); }
    double operator()(double a, double b) const { return -lesser(-a, -b); }
};
struct Negate {
    float operator()(float a) const { return -a; }
    double operator()(double a) const { return -a; }
};
struct Absolute {
    float operator()(float a) const { return std::fabs(a); }
    double operator()(double a) const { return std::fabs(a); }
};
struct Reciprocal {
    float operator()(float a) const { return 1.0f / a; }
    double operator()(double a) const { return 1.0 / a; }
};
struct Root {
    float operator()(float a) const { return __builtin_sqrtf(a); }
    double operator()(double a) const { return __builtin_sqrt(a); }
};
struct ReciprocalRoot {
    float operator()(float a) const { return static_cast<float>(1.0 / __builtin_sqrt(double{a})); }
    double operator()(double a) const { return 1.0 / __builtin_sqrt(a); }
};
// 2^a: the power of the nearest integer, times that of the rest by its Taylor series, to 1e-9.
struct Exponential {
    float operator()(float a) const {
        const float bounded = a > 200.0f ? 200.0f : a < -200.0f ? -200.0f : a == a ? a : 0.0f;
        const double whole = __builtin_rint(double{bounded}), x = (double{bounded} - whole) * 0.69314718055994531;
        const double series =
            1 + x * (1 + x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x * (1.0 / 120 + x * (1.0 / 720 + x / 5040))))));
        const auto exponent = static_cast<int64_t>(static_cast<int32_t>(whole));
        const float power = static_cast<float>(std::bit_cast<double>((exponent + 1023) << 52) * series);
        return a == a ? power : a;
    }
};
struct Logarithm {
    float operator()(float a) const { return static_cast<float>(std::log2(double{a})); }
};
struct Sine {
    float operator()(float a) const { return static_cast<float>(std::sin(double{a})); }
};
struct Cosine {
    float operator()(float a) const { return static_cast<float>(std::cos(double{a})); }
};
struct Tangent {
    float operator()(float a) const { return static_cast<float>(std::tanh(double{a})); }
};
struct CopySign {
    float operator()(float a, float b) const { return std::copysign(b, a); }
    double operator()(double a, double b) const { return std::copysign(b, a); }
};

template <class Operation, bool Flush, bool Saturate>
struct Single {
    template <class... T>
    float operator()(T... a) const {
        const float result = flushed<Flush>(Operation{}(flushed<Flush>(a)...));
        return Saturate ? saturated(result) : result;
    }
};

struct Modifiers {
    bool flush = false, saturate = false;
};

template <class Operation, int Operands>
Handler single(Modifiers m) {
    if (m.flush)
        return m.saturate ? of_one_type<Single<Operation, true, true>{}, float, Operands>()
                          : of_one_type<Single<Operation, true, false>{}, float, Operands>();
    return m.saturate ? of_one_type<Single<Operation, false, true>{}, float, Operands>()
                      : of_one_type<Single<Operation, false, false>{}, float, Operands>();
}

// Ends an opcode of .ftz.sat.f32 or .f64.
template <class Operation, int Operands, bool HasDouble = true>
void finish(Coder& coder, bool saturates) {
    Modifiers m;
    m.flush = coder.accept("ftz");
    if (saturates) m.saturate = coder.accept("sat");
    const Type type = coder.type(HasDouble ? "f32 f64" : "f32");
    write_and_read(coder, type, Operands);
    if (type == kF32) return coder.emit(single<Operation, Operands>(m));
    if (m.flush || m.saturate) coder.refuse("not supported of f64");
    if constexpr (HasDouble)
        coder.emit(of_one_type<Operation{}, double, Operands>());
    else
        coder.refuse("not supported of f64");
}

// Behind an optional rounding.
template <class Nearest, template <Towards> class Directed, int Operands>
void rounded(Coder& coder) {
    if (coder.accept("rm")) return finish<Directed<Towards::kDown>, Operands, false>(coder, true);
    if (coder.accept("rp")) return finish<Directed<Towards::kUp>, Operands, false>(coder, true);
    if (coder.accept("rz")) return finish<Directed<Towards::kZero>, Operands, false>(coder, true);
    coder.accept("rn");
    finish<Nearest, Operands>(coder, true);
}

void fma(Coder& coder) {
    const Type last = coder.last_type();
    if (last != kF32 && last != kF64) return translate_half(coder, FloatOperation::kFma);
    translate_float(coder, FloatOperation::kFma);
}

// .approx or a rounding to nearest, and then what `finish` ends.
template <class Operation, bool Exact>
void function(Coder& coder) {
    if (!coder.accept("approx")) {
        if (!Exact) coder.refuse("expected .approx");
        coder.expect("rn");
    }
    finish<Operation, 1, Exact>(coder, false);
}

void copy_sign(Coder& coder) {
    finish<CopySign, 2>(coder, false);
}

}  // namespace

void translate_float(Coder& coder, FloatOperation operation) {
    switch (operation) {
        case FloatOperation::kAdd:
            return rounded<Add, AddDirected, 2>(coder);
        case FloatOperation::kSubtract:
            return rounded<Subtract, SubtractDirected, 2>(coder);
        case FloatOperation::kMultiply:
            return rounded<Multiply, MultiplyDirected, 2>(coder);
        case FloatOperation::kFma:
            return rounded<Fma, FmaDirected, 3>(coder);
        case FloatOperation::kMinimum:
            return finish<Minimum, 2>(coder, false);
        case FloatOperation::kMaximum:
            return finish<Maximum, 2>(coder, false);
        case FloatOperation::kNegate:
            return finish<Negate, 1>(coder, false);
        case FloatOperation::kAbsolute:
            return finish<Absolute, 1>(coder, false);
        case FloatOperation::kDivide:
            if (!coder.accept("rn") && !coder.accept("approx")) coder.expect("full");
            return finish<Divide, 2>(coder, false);
    }
}

std::span<const Opcode> float_opcodes() {
    static constexpr Opcode kOpcodes[] = {
        {"fma", fma},
        {"rcp", function<Reciprocal, true>},
        {"sqrt", function<Root, true>},
        {"rsqrt", function<ReciprocalRoot, false>},
        {"ex2", function<Exponential, false>},
        {"lg2", function<Logarithm, false>},
        {"sin", function<Sine, false>},
        {"cos", function<Cosine, false>},
        {"tanh", function<Tangent, false>},
        {"copysign", copy_sign},
    };
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
