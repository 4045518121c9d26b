// What instructions compute, against formulas of the PTX ISA manual written out here, on random numbers and edges.
#include "kernels.hpp"

#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <random>

namespace tessera::cuda::ptx {
namespace {

using Formula = std::function<uint32_t(uint32_t a, uint32_t b, uint32_t c)>;

float number(uint32_t bits) {
    return std::bit_cast<float>(bits);
}
uint32_t bits(float value) {
    return std::bit_cast<uint32_t>(value);
}
int32_t whole(uint32_t bits) {
    return static_cast<int32_t>(bits);
}

Words edges_and_random(bool floats) {
    Words words = floats ? Words{0,          0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000,
                                 0x00000001, 0x807FFFFF, 0x7F7FFFFF, 0x3F000000, 0x40200000, 0xC0200000}
                         : Words{0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x8000, 0xFF, 0x80};
    std::mt19937 random(7);
    while (words.size() < 96) {
        const auto word = static_cast<uint32_t>(random());
        if (!floats)
            words.push_back(word >> random() % 32);
        else  // exponents near one another
            words.push_back((word & 0x807FFFFF) | (120 + random() % 16) << 23);
    }
    return words;
}

// `instruction` makes %r4, or %f4, of %r1, %r2 and %r3, or %f1 and so on.
void check(const std::string& instruction, const Formula& formula, bool floats) {
    SCOPED_TRACE(instruction);
    const Words values = edges_and_random(floats);
    std::mt19937 random(3);
    Words in;
    for (size_t i = 0; i < 1024; ++i)
        for (int k = 0; k < 3; ++k) in.push_back(values[random() % values.size()]);
    const Ran ran =
        run(module_of("mad.wide.u32 %rd4, %r0, 12, %rd0;\n"
                      "ld.global.b32 %r1, [%rd4]; ld.global.b32 %r2, [%rd4+4]; ld.global.b32 %r3, [%rd4+8];\n"
                      "mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3; mov.b32 %f4, 0;\n" +
                      instruction + (floats ? "\nmov.b32 %r4, %f4;" : "") + "\nst.global.b32 [%rd3], %r4;"),
            in, Words(1024), 1024);
    ASSERT_EQ(ran.outcome.fault, Fault::kNone) << ran.outcome.report;
    for (size_t i = 0; i < 1024; ++i) {
        const uint32_t a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2], wanted = formula(a, b, c);
        if (floats && std::isnan(number(wanted)) && std::isnan(number(ran.out[i]))) continue;
        ASSERT_EQ(ran.out[i], wanted) << std::hex << a << ' ' << b << ' ' << c;
    }
}

TEST(PtxInstructions, OfIntegers) {
    const std::pair<const char*, Formula> cases[] = {
        {"sub.s32 %r4, %r1, %r2;", [](uint32_t a, uint32_t b, uint32_t) { return a - b; }},
        {"mul.hi.s32 %r4, %r1, %r2;",
         [](uint32_t a, uint32_t b, uint32_t) { return static_cast<uint32_t>(int64_t{whole(a)} * whole(b) >> 32); }},
        {"mul.hi.u32 %r4, %r1, %r2;",
         [](uint32_t a, uint32_t b, uint32_t) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); }},
        {"mad.lo.s32 %r4, %r1, %r2, %r3;", [](uint32_t a, uint32_t b, uint32_t c) { return a * b + c; }},
        {"mul.wide.s32 %rd5, %r1, %r2; shr.u64 %rd5, %rd5, 16; cvt.u32.u64 %r4, %rd5;",
         [](uint32_t a, uint32_t b, uint32_t) { return static_cast<uint32_t>(int64_t{whole(a)} * whole(b) >> 16); }},
        {"cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; mul.wide.s16 %r4, %h1, %h2;",
         [](uint32_t a, uint32_t b, uint32_t) {
             return static_cast<uint32_t>(int32_t{static_cast<int16_t>(a)} * static_cast<int16_t>(b));
         }},
        {"or.b32 %r2, %r2, 1; div.s32 %r4, %r1, %r2;",
         [](uint32_t a, uint32_t b, uint32_t) { return static_cast<uint32_t>(int64_t{whole(a)} / whole(b | 1)); }},
        {"or.b32 %r2, %r2, 1; rem.u32 %r4, %r1, %r2;", [](uint32_t a, uint32_t b, uint32_t) { return a % (b | 1); }},
        {"min.s32 %r4, %r1, %r2;", [](uint32_t a, uint32_t b, uint32_t) { return whole(a) < whole(b) ? a : b; }},
        {"max.u32 %r4, %r1, %r2;", [](uint32_t a, uint32_t b, uint32_t) { return a > b ? a : b; }},
        {"shl.b32 %r4, %r1, %r2;", [](uint32_t a, uint32_t b, uint32_t) { return b > 31 ? 0 : a << b; }},
        {"shr.s32 %r4, %r1, %r2;",
         [](uint32_t a, uint32_t b, uint32_t) { return static_cast<uint32_t>(whole(a) >> (b > 31 ? 31 : b)); }},
        {"shr.u32 %r4, %r1, %r2;", [](uint32_t a, uint32_t b, uint32_t) { return b > 31 ? 0 : a >> b; }},
        {"shf.l.wrap.b32 %r4, %r1, %r2, %r3;",
         [](uint32_t a, uint32_t b, uint32_t c) { return c % 32 ? b << c % 32 | a >> (32 - c % 32) : b; }},
        {"shf.r.clamp.b32 %r4, %r1, %r2, %r3;",
         [](uint32_t a, uint32_t b, uint32_t c) { return c >= 32 ? b
                                                         : c     ? a >> c | b << (32 - c)
                                                                 : a; }},
        {"bfe.u32 %r4, %r1, 5, 9;", [](uint32_t a, uint32_t, uint32_t) { return a >> 5 & 511; }},
        {"bfe.s32 %r4, %r1, 28, 9;",
         [](uint32_t a, uint32_t, uint32_t) { return static_cast<uint32_t>(whole(a) >> 28); }},
        {"bfe.s32 %r4, %r1, 3, 4;",
         [](uint32_t a, uint32_t, uint32_t) { return static_cast<uint32_t>(whole(a << 25) >> 28); }},
        {"bfi.b32 %r4, %r1, %r2, 8, 12;",
         [](uint32_t a, uint32_t b, uint32_t) { return (b & ~0xFFF00u) | (a << 8 & 0xFFF00u); }},
        {"prmt.b32 %r4, %r1, %r2, 0x6FC1;",
         [](uint32_t a, uint32_t b, uint32_t) {
             const auto byte = [&](int i) { return (i < 4 ? a >> 8 * i : b >> 8 * (i - 4)) & 0xFF; };
             const auto sign = [&](int i) { return byte(i) & 0x80 ? 0xFFu : 0u; };
             return byte(1) | sign(4) << 8 | sign(7) << 16 | byte(6) << 24;
         }},
        {"lop3.b32 %r4, %r1, %r2, %r3, 0xCA;", [](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | (~a & c); }},
        {"popc.b32 %r4, %r1;", [](uint32_t a, uint32_t, uint32_t) { return static_cast<uint32_t>(std::popcount(a)); }},
        {"clz.b32 %r4, %r1;",
         [](uint32_t a, uint32_t, uint32_t) { return static_cast<uint32_t>(std::countl_zero(a)); }},
        {"bfind.u32 %r4, %r1;",
         [](uint32_t a, uint32_t, uint32_t) { return a ? 31 - static_cast<uint32_t>(std::countl_zero(a)) : ~0u; }},
        {"dp4a.s32.u32 %r4, %r1, %r2, %r3;",
         [](uint32_t a, uint32_t b, uint32_t c) {
             for (int i = 0; i < 32; i += 8)
                 c += static_cast<uint32_t>(static_cast<int8_t>(a >> i) * static_cast<uint8_t>(b >> i));
             return c;
         }},
        {"dp2a.hi.s32.s32 %r4, %r1, %r2, %r3;",
         [](uint32_t a, uint32_t b, uint32_t c) {
             for (int i = 0; i < 2; ++i)
                 c += static_cast<uint32_t>(static_cast<int16_t>(a >> 16 * i) * static_cast<int8_t>(b >> (16 + 8 * i)));
             return c;
         }},
        {"cvt.s32.s8 %r4, %r1;",
         [](uint32_t a, uint32_t, uint32_t) { return static_cast<uint32_t>(static_cast<int8_t>(a)); }},
        {"cvt.u16.u32 %h1, %r1; cvt.s16.s8 %h1, %h1; cvt.u32.u16 %r4, %h1;",
         [](uint32_t a, uint32_t, uint32_t) { return uint32_t{static_cast<uint16_t>(static_cast<int8_t>(a))}; }},
        {"mov.b32 {%h1, %h2}, %r1; mov.b32 %r4, {%h2, %h1};",
         [](uint32_t a, uint32_t, uint32_t) { return a >> 16 | a << 16; }},
        {"setp.lt.s32 %p1|%p2, %r1, %r2; selp.b32 %r4, %r1, %r3, %p2;",
         [](uint32_t a, uint32_t b, uint32_t c) { return whole(a) < whole(b) ? c : a; }},
        {"setp.ne.b32 %p1, %r1, 0; setp.lo.and.u32 %p2, %r1, %r2, !%p1; @!%p2 mov.b32 %r3, 7; mov.b32 %r4, %r3;",
         [](uint32_t a, uint32_t b, uint32_t c) { return a == 0 && a < b ? c : 7; }},
    };
    for (const auto& [instruction, formula] : cases) check(instruction, formula, false);
}

template <class Compute>
uint32_t directed(int rounding, const Compute& compute) {
    std::fesetround(rounding);
    const volatile float result = compute();
    std::fesetround(FE_TONEAREST);
    return bits(result);
}

TEST(PtxInstructions, OfFloats) {
    const auto fma_of = [](uint32_t a, uint32_t b, uint32_t c) {
        const volatile float x = number(a), y = number(b), z = number(c);
        return std::fma(x, y, z);
    };
    const auto clamped = [](float value, float least, float beyond) { return value >= least && value < beyond; };
    const std::pair<const char*, Formula> cases[] = {
        {"add.f32 %f4, %f1, %f2;", [](uint32_t a, uint32_t b, uint32_t) { return bits(number(a) + number(b)); }},
        {"add.ftz.f32 %f4, %f1, 0f00000000;",
         [](uint32_t a, uint32_t, uint32_t) {
             return bits(std::abs(number(a)) < 1.17549435e-38f ? 0.0f * number(a) + 0.0f : number(a));
         }},
        {"mul.f32 %f4, %f1, %f2;", [](uint32_t a, uint32_t b, uint32_t) { return bits(number(a) * number(b)); }},
        {"fma.rn.f32 %f4, %f1, %f2, %f3;", [=](uint32_t a, uint32_t b, uint32_t c) { return bits(fma_of(a, b, c)); }},
        {"fma.rm.f32 %f4, %f1, %f2, %f3;",
         [=](uint32_t a, uint32_t b, uint32_t c) { return directed(FE_DOWNWARD, [&] { return fma_of(a, b, c); }); }},
        {"fma.rp.f32 %f4, %f1, %f2, %f3;",
         [=](uint32_t a, uint32_t b, uint32_t c) { return directed(FE_UPWARD, [&] { return fma_of(a, b, c); }); }},
        {"fma.rz.f32 %f4, %f1, %f2, %f3;",
         [=](uint32_t a, uint32_t b, uint32_t c) { return directed(FE_TOWARDZERO, [&] { return fma_of(a, b, c); }); }},
        {"min.f32 %f4, %f1, %f2;",
         [](uint32_t a, uint32_t b, uint32_t) {
             if (number(a) == 0 && number(b) == 0) return a | b;
             return number(a) < number(b) ? a : b;
         }},
        {"neg.f32 %f4, %f1;", [](uint32_t a, uint32_t, uint32_t) { return a ^ 0x80000000; }},
        {"div.rn.f32 %f4, %f1, %f2;", [](uint32_t a, uint32_t b, uint32_t) { return bits(number(a) / number(b)); }},
        {"cvt.rn.f16.f32 %h1, %f1; cvt.f32.f16 %f4, %h1;",
         [](uint32_t a, uint32_t, uint32_t) { return bits(static_cast<float>(static_cast<_Float16>(number(a)))); }},
        {"cvt.rn.bf16.f32 %h1, %f1; cvt.f32.bf16 %f4, %h1;",
         [](uint32_t a, uint32_t, uint32_t) {
             return std::isnan(number(a)) ? a : (a + 0x7FFF + (a >> 16 & 1)) & 0xFFFF0000;
         }},
        {"cvt.rni.s32.f32 %r4, %f1; mov.b32 %f4, %r4;",
         [=](uint32_t a, uint32_t, uint32_t) {
             const float x = std::nearbyint(number(a));
             return clamped(x, -2147483648.f, 2147483648.f) ? static_cast<uint32_t>(static_cast<int32_t>(x))
                    : x > 0                                 ? 0x7FFFFFFFu
                                                            : 0x80000000u;
         }},
        {"cvt.rzi.u32.f32 %r4, %f1; mov.b32 %f4, %r4;",
         [=](uint32_t a, uint32_t, uint32_t) {
             const float x = number(a);
             return clamped(x, 0.f, 4294967296.f) ? static_cast<uint32_t>(x) : x > 0 ? ~0u : 0u;
         }},
        {"cvt.rmi.f32.f32 %f4, %f1;", [](uint32_t a, uint32_t, uint32_t) { return bits(std::floor(number(a))); }},
        {"cvt.sat.f32.f32 %f4, %f1;",
         [](uint32_t a, uint32_t, uint32_t) { return bits(number(a) > 0 ? std::min(number(a), 1.0f) : 0.0f); }},
        {"cvt.rn.f32.s32 %f4, %r1;", [](uint32_t a, uint32_t, uint32_t) { return bits(static_cast<float>(whole(a))); }},
        {"setp.leu.f32 %p1, %f1, %f2; selp.f32 %f4, %f1, %f3, %p1;",
         [](uint32_t a, uint32_t b, uint32_t c) { return number(a) > number(b) ? c : a; }},
        {"cvt.f64.f32 %fd1, %f1; fma.rn.f64 %fd1, %fd1, %fd1, %fd1; cvt.rn.f32.f64 %f4, %fd1;",
         [](uint32_t a, uint32_t, uint32_t) {
             const double x = number(a);
             return bits(static_cast<float>(std::fma(x, x, x)));
         }},
    };
    for (const auto& [instruction, formula] : cases) check(instruction, formula, true);
}

// Within the errors that the manual documents.
TEST(PtxInstructions, ThatApproximate) {
    struct Case {
        const char* instruction;
        double (*exact)(double);
        double error;  // relative
    };
    const Case cases[] = {
        {"ex2.approx.f32 %f4, %f1;", [](double x) { return std::exp2(x); }, 1.0 / (1 << 22)},
        {"rcp.approx.f32 %f4, %f1;", [](double x) { return 1 / x; }, 1.0 / (1 << 22)},
        {"sqrt.approx.f32 %f4, %f1;", [](double x) { return std::sqrt(x); }, 1.0 / (1 << 22)},
        {"rsqrt.approx.f32 %f4, %f1;", [](double x) { return 1 / std::sqrt(x); }, 1.0 / (1 << 22)},
        {"tanh.approx.f32 %f4, %f1;", [](double x) { return std::tanh(x); }, 1.0 / (1 << 10)},
    };
    Words in;
    for (int i = 0; i < 1024; ++i) in.push_back(bits(static_cast<float>(0.003 + i * 0.0613)));
    for (const Case& c : cases) {
        const Ran ran =
            run(module_of(std::string("ld.global.f32 %f1, [%rd2];\n") + c.instruction + "\nst.global.f32 [%rd3], %f4;"),
                in, Words(1024), 1024);
        ASSERT_EQ(ran.outcome.fault, Fault::kNone) << ran.outcome.report;
        for (size_t i = 0; i < in.size(); ++i) {
            const double exact = c.exact(double{number(in[i])});
            ASSERT_NEAR(double{number(ran.out[i])}, exact, std::abs(exact) * c.error) << c.instruction << number(in[i]);
        }
    }
}

}  // namespace
}  // namespace tessera::cuda::ptx
