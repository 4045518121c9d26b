// Comparison and selection (PTX ISA manual, "Comparison and Selection Instructions").
#include "lanes.hpp"

namespace tessera::cuda::ptx {
namespace {

enum class Compare { kEqual, kUnequal, kLess, kLessEqual, kGreater, kGreaterEqual, kNumbers, kNoNumber };

template <Compare C, bool OrNoNumber, class T>
bool compared(T a, T b) {
    const bool no_number = a != a || b != b;
    switch (C) {
        case Compare::kEqual:
            return a == b || (OrNoNumber && no_number);
        case Compare::kUnequal:
            return OrNoNumber || !no_number ? a != b : false;
        case Compare::kLess:
            return a < b || (OrNoNumber && no_number);
        case Compare::kLessEqual:
            return a <= b || (OrNoNumber && no_number);
        case Compare::kGreater:
            return a > b || (OrNoNumber && no_number);
        case Compare::kGreaterEqual:
            return a >= b || (OrNoNumber && no_number);
        case Compare::kNumbers:
            return !no_number;
        case Compare::kNoNumber:
            return no_number;
    }
}

// What a comparison is combined with, in Instruction::more.
enum Combine : uint32_t { kAlone, kAnd, kOr, kXor, kNegated = 4, kFlush = 8 };

template <class T>
T without_subnormal(T a) {
    if constexpr (sizeof(T) == 4 && std::is_floating_point_v<T>) {
        const auto bits = __builtin_bit_cast(uint32_t, a);
        return __builtin_bit_cast(float, (bits & 0x7F800000u) == 0 ? bits & 0x80000000u : bits);
    }
    return a;
}

template <Compare C, bool OrNoNumber, class T>
void compare(Warp& warp, const Instruction& i, uint32_t lanes) {
    const T* const a = warp.at<T>(i.places[2]);
    const T* const b = warp.at<T>(i.places[3]);
    uint32_t result = 0;
    if (i.more & kFlush) {
        for (uint32_t l = 0; l < kLanes; ++l)
            result |= static_cast<uint32_t>(compared<C, OrNoNumber>(without_subnormal(a[l]), without_subnormal(b[l])))
                      << l;
    } else {
        for (uint32_t l = 0; l < kLanes; ++l) result |= static_cast<uint32_t>(compared<C, OrNoNumber>(a[l], b[l])) << l;
    }
    uint32_t other = ~result;
    if (i.more & 3) {
        const uint32_t with = i.more & kNegated ? ~warp.bits(i.places[4]) : warp.bits(i.places[4]);
        const auto combined = [&](uint32_t bits) {
            return (i.more & 3) == kAnd ? bits & with : (i.more & 3) == kOr ? bits | with : bits ^ with;
        };
        result = combined(result);
        other = combined(other);
    }
    uint32_t& p = warp.bits(i.places[0]);
    p = (p & ~lanes) | (result & lanes);
    uint32_t& q = warp.bits(i.places[1]);
    q = (q & ~lanes) | (other & lanes);
}

template <Compare C, bool OrNoNumber>
Handler float_handler(Type type) {
    return both(type == kF32 ? compare<C, OrNoNumber, float> : compare<C, OrNoNumber, double>);
}
template <Compare C>
Handler integer_handler(Type type) {
    const bool is_signed = type.kind == Kind::kSigned;
    switch (type.bits) {
        case 16:
            return both(is_signed ? compare<C, false, int16_t> : compare<C, false, uint16_t>);
        case 32:
            return both(is_signed ? compare<C, false, int32_t> : compare<C, false, uint32_t>);
        default:
            return both(is_signed ? compare<C, false, int64_t> : compare<C, false, uint64_t>);
    }
}

Handler handler_of(Coder& coder, std::string_view name, Type type) {
    if (type.is_float()) {
        if (name == "eq") return float_handler<Compare::kEqual, false>(type);
        if (name == "ne") return float_handler<Compare::kUnequal, false>(type);
        if (name == "lt") return float_handler<Compare::kLess, false>(type);
        if (name == "le") return float_handler<Compare::kLessEqual, false>(type);
        if (name == "gt") return float_handler<Compare::kGreater, false>(type);
        if (name == "ge") return float_handler<Compare::kGreaterEqual, false>(type);
        if (name == "equ") return float_handler<Compare::kEqual, true>(type);
        if (name == "neu") return float_handler<Compare::kUnequal, true>(type);
        if (name == "ltu") return float_handler<Compare::kLess, true>(type);
        if (name == "leu") return float_handler<Compare::kLessEqual, true>(type);
        if (name == "gtu") return float_handler<Compare::kGreater, true>(type);
        if (name == "geu") return float_handler<Compare::kGreaterEqual, true>(type);
        if (name == "num") return float_handler<Compare::kNumbers, false>(type);
        if (name == "nan") return float_handler<Compare::kNoNumber, false>(type);
    } else {
        if (name == "eq") return integer_handler<Compare::kEqual>(type);
        if (name == "ne") return integer_handler<Compare::kUnequal>(type);
        if (type.kind == Kind::kBits) coder.refuse("bits are equal or not: ." + std::string(name));
        const bool is_unsigned = type.kind == Kind::kUnsigned;
        if (name == "lt" || (name == "lo" && is_unsigned)) return integer_handler<Compare::kLess>(type);
        if (name == "le" || (name == "ls" && is_unsigned)) return integer_handler<Compare::kLessEqual>(type);
        if (name == "gt" || (name == "hi" && is_unsigned)) return integer_handler<Compare::kGreater>(type);
        if (name == "ge" || (name == "hs" && is_unsigned)) return integer_handler<Compare::kGreaterEqual>(type);
    }
    coder.refuse("unknown comparison ." + std::string(name));
}

// setp.cmp{.bool}{.ftz}.type p{|q}, a, b{, {!}c}
void set_predicate(Coder& coder) {
    const std::string_view name = coder.word();
    uint32_t combine = coder.accept("and") ? kAnd : coder.accept("or") ? kOr : coder.accept("xor") ? kXor : kAlone;
    const bool flush = coder.accept("ftz");
    const Type type = coder.type("b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64");
    const size_t pair = coder.count() > 1 && coder.operand(1).joined ? 1 : 0;
    coder.expect_count(3 + pair + (combine ? 1 : 0));
    coder.write_predicate(coder.operand(0));
    coder.write_joined_predicate(pair);
    coder.read(coder.operand(1 + pair), type);
    coder.read(coder.operand(2 + pair), type);
    if (combine) {
        Operand with = coder.operand(3 + pair);
        if (with.negated) combine |= kNegated;
        with.negated = false;
        coder.read_predicate(with);
    }
    coder.instruction().more = flush ? combine | kFlush : combine;
    coder.emit(handler_of(coder, name, type));
}

template <class T>
void select(Warp& warp, const Instruction& i, uint32_t lanes) {
    T* const to = warp.at<T>(i.places[0]);
    const T* const a = warp.at<T>(i.places[1]);
    const T* const b = warp.at<T>(i.places[2]);
    const uint32_t which = warp.bits(i.places[3]);
    if (lanes == kAllLanes) {
#pragma GCC ivdep
        for (uint32_t l = 0; l < kLanes; ++l) to[l] = which >> l & 1 ? a[l] : b[l];
        return;
    }
#pragma GCC ivdep
    for (uint32_t l = 0; l < kLanes; ++l) {
        const T value = which >> l & 1 ? a[l] : b[l];
        to[l] = lanes >> l & 1 ? value : to[l];
    }
}

void select_by_predicate(Coder& coder) {
    const Type type = coder.type("b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64");
    coder.expect_count(4);
    for (size_t k = 0; k < 3; ++k) k == 0 ? coder.write(coder.operand(k), type) : coder.read(coder.operand(k), type);
    coder.read_predicate(coder.operand(3));
    coder.emit(both(type.bits == 16 ? select<uint16_t> : type.bits == 32 ? select<uint32_t> : select<uint64_t>));
}

}  // namespace

std::span<const Opcode> compare_opcodes() {
    static constexpr Opcode kOpcodes[] = {{"setp", set_predicate}, {"selp", select_by_predicate}};
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
