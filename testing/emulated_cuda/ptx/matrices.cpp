// ldmatrix and mma.sync (PTX ISA manual, "Warp Level Matrix Instructions").
#include "executor.hpp"
#include "lanes.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

namespace tessera::cuda::ptx {
namespace {

// Lanes 8 m to 8 m + 7 have the addresses of the rows of matrix m. Each lane gets two neighbours of row lane / 4, or,
// if transposed, of column lane / 4. Instruction::more: whether addresses have 32 bits.
template <uint32_t Matrices, bool Transposed>
void load_matrices(Warp& warp, const Instruction& i, uint32_t lanes) {
    if (!all_gathered(warp, i, lanes, true)) return;
    uint64_t addresses[kLanes];
    for (uint32_t l = 0; l < kLanes; ++l)
        addresses[l] =
            (i.more ? uint64_t{warp.at<uint32_t>(i.places[Matrices])[l]} : warp.at<uint64_t>(i.places[Matrices])[l]) +
            i.immediate;
    alignas(64) uint16_t rows[kLanes][8];
    constexpr uint32_t kAsked = Matrices == 4 ? kAllLanes : (1u << 8 * Matrices % 32) - 1;
    warp.executor->load<16>(warp, Space::kShared, addresses, kAsked, Access::kRead, rows);
    for (uint32_t m = 0; m < Matrices; ++m) {
        uint32_t* const to = warp.at<uint32_t>(i.places[m]);
        for (uint32_t l = 0; l < kLanes; ++l) {
            const uint32_t row = l / 4, column = l % 4 * 2;
            const uint16_t first = Transposed ? rows[8 * m + column][row] : rows[8 * m + row][column];
            const uint16_t second = Transposed ? rows[8 * m + column + 1][row] : rows[8 * m + row][column + 1];
            to[l] = first | static_cast<uint32_t>(second) << 16;
        }
    }
}

template <bool Transposed>
Run load_run(uint32_t matrices) {
    return matrices == 1   ? load_matrices<1, Transposed>
           : matrices == 2 ? load_matrices<2, Transposed>
                           : load_matrices<4, Transposed>;
}

void translate_load(Coder& coder) {
    coder.expect("sync");
    coder.expect("aligned");
    coder.expect("m8n8");
    const uint32_t matrices = coder.accept("x1") ? 1 : coder.accept("x2") ? 2 : 4;
    if (matrices == 4) coder.expect("x4");
    const bool transposed = coder.accept("trans");
    if (accept_space(coder) != Space::kShared) coder.refuse("expected .shared");
    coder.type("b16");
    coder.expect_count(2);
    const auto parts = coder.parts(coder.operand(0));
    if (parts.size() != matrices) coder.refuse("expected " + std::to_string(matrices) + " registers");
    for (const Operand& part : parts) coder.write(part, kB32);
    coder.instruction().more = coder.read_address(coder.operand(1)) == 32;
    coder.emit(both(transposed ? load_run<true>(matrices) : load_run<false>(matrices)));
}

struct Half {
    using Element = uint16_t;
    using Sum = float;
    static float wide(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
};
struct Brain {
    using Element = uint16_t;
    using Sum = float;
    static float wide(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};
struct Signed {
    using Element = int8_t;
    using Sum = int32_t;
    static int32_t wide(int8_t value) { return value; }
};
struct Unsigned {
    using Element = uint8_t;
    using Sum = int32_t;
    static int32_t wide(uint8_t value) { return value; }
};

// d = a b + c of m16n8kK. Lane l holds of each register of `a` the elements that fill 32 bits from column l % 4 of such
// on, of row l / 4 or 8 below it; further registers, those of the second half of K. Of `b` likewise, rows and columns
// exchanged; of `c` two neighbours of row l / 4 and two of 8 below it.
template <class A, class B, uint32_t K>
void multiply(Warp& warp, const Instruction& i, uint32_t lanes) {
    if (!all_gathered(warp, i, lanes, true)) return;
    using Sum = typename A::Sum;
    constexpr uint32_t kPack = 4 / sizeof(typename A::Element), kHalf = 4 * kPack;
    constexpr uint32_t kB = K / kHalf, kA = 2 * kB;
    const Place* const places = i.has_list ? &warp.executor->program().lists[i.more] : i.places.data();
    Sum a[16][K], b[K][8], c[16][8];
    const auto elements = [&]<class Number>(Number, Place place, uint32_t l, auto&& put) {
        typename Number::Element values[kPack];
        std::memcpy(values, warp.at<uint32_t>(place) + l, 4);
        for (uint32_t e = 0; e < kPack; ++e) put(e, Number::wide(values[e]));
    };
    for (uint32_t l = 0; l < kLanes; ++l) {
        const uint32_t row = l / 4, column = l % 4;
        for (uint32_t q = 0; q < kA; ++q)
            elements(A{}, places[4 + q], l,
                     [&](uint32_t e, Sum value) { a[row + q % 2 * 8][column * kPack + q / 2 * kHalf + e] = value; });
        for (uint32_t q = 0; q < kB; ++q)
            elements(B{}, places[4 + kA + q], l,
                     [&](uint32_t e, Sum value) { b[column * kPack + q * kHalf + e][row] = value; });
        for (uint32_t q = 0; q < 4; ++q)
            c[row + q / 2 * 8][column * 2 + q % 2] = warp.at<Sum>(places[4 + kA + kB + q])[l];
    }
    for (uint32_t m = 0; m < 16; ++m) {
        for (uint32_t k = 0; k < K; ++k) {
            for (uint32_t n = 0; n < 8; ++n) {
                if constexpr (std::is_same_v<Sum, int32_t>)
                    c[m][n] =
                        static_cast<int32_t>(static_cast<uint32_t>(c[m][n]) + static_cast<uint32_t>(a[m][k] * b[k][n]));
                else
                    c[m][n] += a[m][k] * b[k][n];
            }
        }
    }
    for (uint32_t q = 0; q < 4; ++q) {
        Sum* const to = warp.at<Sum>(places[q]);
        for (uint32_t l = 0; l < kLanes; ++l) to[l] = c[l / 4 + q / 2 * 8][l % 4 * 2 + q % 2];
    }
    warp.executor->matrix_products() += 1;
}

Run multiply_run(Coder& coder, uint32_t k, Type result, std::string_view a, std::string_view b) {
    if (result == kF32 && a == "f16" && b == "f16") {
        if (k == 8) return multiply<Half, Half, 8>;
        if (k == 16) return multiply<Half, Half, 16>;
    }
    if (result == kF32 && a == "bf16" && b == "bf16") {
        if (k == 8) return multiply<Brain, Brain, 8>;
        if (k == 16) return multiply<Brain, Brain, 16>;
    }
    if (result == kS32 && (a == "s8" || a == "u8") && (b == "s8" || b == "u8")) {
        const bool x = a == "s8", y = b == "s8";
        if (k == 16)
            return x ? (y ? multiply<Signed, Signed, 16> : multiply<Signed, Unsigned, 16>)
                     : (y ? multiply<Unsigned, Signed, 16> : multiply<Unsigned, Unsigned, 16>);
        if (k == 32)
            return x ? (y ? multiply<Signed, Signed, 32> : multiply<Signed, Unsigned, 32>)
                     : (y ? multiply<Unsigned, Signed, 32> : multiply<Unsigned, Unsigned, 32>);
    }
    coder.refuse("not supported with these types and this shape");
}

void translate_multiply(Coder& coder) {
    coder.expect("sync");
    coder.expect("aligned");
    const uint32_t k = coder.accept("m16n8k8") ? 8 : coder.accept("m16n8k16") ? 16 : coder.accept("m16n8k32") ? 32 : 0;
    if (k == 0) coder.refuse("a shape that is not supported: ." + std::string(coder.peek()));
    coder.expect("row");
    coder.expect("col");
    const Type result = coder.type("f32 s32");
    const std::string_view a = coder.word(), b = coder.word();
    if (coder.type() != result) coder.refuse("result and summand differ in their types");
    coder.expect_count(4);
    const uint32_t pack = result == kF32 ? 2 : 4, of_b = k / (4 * pack);
    const size_t counts[4] = {4, 2 * of_b, of_b, 4};
    for (size_t o = 0; o < 4; ++o) {
        const auto parts = coder.parts(coder.operand(o));
        if (parts.size() != counts[o])
            coder.refuse("expected " + std::to_string(counts[o]) + " registers, found " + std::to_string(parts.size()));
        for (const Operand& part : parts) {
            if (o == 0)
                coder.write(part, result);
            else
                coder.read(part, o == 3 ? result : kB32);
        }
    }
    coder.emit(both(multiply_run(coder, k, result, a, b)));
}

}  // namespace

std::span<const Opcode> matrix_opcodes() {
    static constexpr Opcode kOpcodes[] = {{"ldmatrix", translate_load}, {"mma", translate_multiply}};
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
