// Logic, shifts, fields and bytes (PTX ISA manual, "Logic and Shift Instructions").
#include "lanes.hpp"

#include <algorithm>
#include <bit>

namespace tessera::cuda::ptx {
namespace {

constexpr auto kAnd = []<class T>(T a, T b) { return static_cast<T>(a & b); };
constexpr auto kOr = []<class T>(T a, T b) { return static_cast<T>(a | b); };
constexpr auto kXor = []<class T>(T a, T b) { return static_cast<T>(a ^ b); };
constexpr auto kNot = []<class T>(T a) { return static_cast<T>(~a); };
constexpr auto kIsZero = []<class T>(T a) { return static_cast<T>(a == 0); };

void set_bits(Warp& warp, Place place, uint32_t lanes, uint32_t value) {
    uint32_t& bits = warp.bits(place);
    bits = (bits & ~lanes) | (value & lanes);
}

template <auto F, int Operands>
void of_predicates(Warp& warp, const Instruction& i, uint32_t lanes) {
    if constexpr (Operands == 1)
        set_bits(warp, i.places[0], lanes, F(warp.bits(i.places[1])));
    else
        set_bits(warp, i.places[0], lanes, F(warp.bits(i.places[1]), warp.bits(i.places[2])));
}

template <auto F, int Operands>
void logic(Coder& coder) {
    const Type type = coder.type("pred b16 b32 b64");
    coder.expect_count(1 + Operands);
    if (type == kPredicate) {
        coder.write_predicate(coder.operand(0));
        for (size_t k = 1; k <= Operands; ++k) coder.read_predicate(coder.operand(k));
        return coder.emit(both(of_predicates<F, Operands>));
    }
    coder.write(coder.operand(0), type);
    for (size_t k = 1; k <= Operands; ++k) coder.read(coder.operand(k), type);
    coder.emit(of_bits<F, Operands>(type));
}

void is_zero(Coder& coder) {
    const Type type = coder.type("b16 b32 b64");
    write_and_read(coder, type, 1);
    coder.emit(of_bits<kIsZero, 1>(type));
}

// Shifts by more than the width give 0, or copies of the sign.
template <class T>
constexpr auto kLeft = [](T a, uint32_t by) { return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(uint64_t{a} << by); };
template <class T>
constexpr auto kRight = [](T a, uint32_t by) {
    constexpr uint32_t kMost = 8 * sizeof(T) - 1;
    if constexpr (std::is_signed_v<T>)
        return static_cast<T>(a >> (by > kMost ? kMost : by));
    else
        return by > kMost ? T{0} : static_cast<T>(a >> by);
};

template <bool Right, class U, class S>
Handler shift_handler(Type type) {
    if constexpr (!Right)
        return kElementwise<kLeft<U>, U, U, uint32_t>;
    else if (type.kind == Kind::kSigned)
        return kElementwise<kRight<S>, S, S, uint32_t>;
    else
        return kElementwise<kRight<U>, U, U, uint32_t>;
}

template <bool Right>
void shift(Coder& coder) {
    const Type type = coder.type(Right ? "b16 b32 b64 u16 u32 u64 s16 s32 s64" : "b16 b32 b64");
    coder.expect_count(3);
    coder.write(coder.operand(0), type);
    coder.read(coder.operand(1), type);
    coder.read(coder.operand(2), kU32);
    coder.emit(type.bits == 16   ? shift_handler<Right, uint16_t, int16_t>(type)
               : type.bits == 32 ? shift_handler<Right, uint32_t, int32_t>(type)
                                 : shift_handler<Right, uint64_t, int64_t>(type));
}

template <bool Left, bool Wrap>
constexpr auto kFunnel = [](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t by = Wrap ? c & 31u : c > 32 ? 32u : c;
    const uint64_t both = uint64_t{b} << 32 | a;
    return static_cast<uint32_t>(Left ? (both << by) >> 32 : both >> by);
};

void funnel_shift(Coder& coder) {
    const bool left = coder.accept("l");
    if (!left) coder.expect("r");
    const bool wrap = coder.accept("wrap");
    if (!wrap) coder.expect("clamp");
    coder.type("b32");
    write_and_read(coder, kB32, 3);
    if (left)
        return coder.emit(wrap ? of_one_type<kFunnel<true, true>, uint32_t, 3>()
                               : of_one_type<kFunnel<true, false>, uint32_t, 3>());
    coder.emit(wrap ? of_one_type<kFunnel<false, true>, uint32_t, 3>()
                    : of_one_type<kFunnel<false, false>, uint32_t, 3>());
}

// Position and length are the low 8 bits of their operands.
template <class T>
constexpr auto kExtract = [](T a, uint32_t position, uint32_t length) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    using U = std::make_unsigned_t<T>;
    position &= 0xFF;
    length &= 0xFF;
    if (length == 0) return T{0};
    const bool is_signed = std::is_signed_v<T>;
    const uint32_t last = position + length - 1 < kBits - 1 ? position + length - 1 : kBits - 1;
    const bool sign = is_signed && (static_cast<U>(a) >> last & 1) != 0;
    const U field = position >= kBits ? U{0} : static_cast<U>(static_cast<U>(a) >> position);
    const uint32_t held = position >= kBits ? 0 : length < kBits - position ? length : kBits - position;
    const U mask = held >= kBits ? ~U{0} : static_cast<U>((U{1} << held) - 1);
    return static_cast<T>((field & mask) | (sign ? ~mask : U{0}));
};
template <class T>
constexpr auto kInsert = [](T a, T b, uint32_t position, uint32_t length) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    position &= 0xFF;
    length &= 0xFF;
    if (position >= kBits) return b;
    const T ones = length >= kBits ? ~T{0} : static_cast<T>((T{1} << length) - 1);
    const T mask = static_cast<T>(ones << position);
    return static_cast<T>((b & ~mask) | (static_cast<T>(a << position) & mask));
};

void extract(Coder& coder) {
    const Type type = coder.type("u32 s32 u64 s64");
    coder.expect_count(4);
    coder.write(coder.operand(0), type);
    coder.read(coder.operand(1), type);
    coder.read(coder.operand(2), kU32);
    coder.read(coder.operand(3), kU32);
    const auto of = []<class T>() { return kElementwise<kExtract<T>, T, T, uint32_t, uint32_t>; };
    if (type.bits == 32) return coder.emit(type == kS32 ? of.operator()<int32_t>() : of.operator()<uint32_t>());
    coder.emit(type == kS64 ? of.operator()<int64_t>() : of.operator()<uint64_t>());
}

void insert(Coder& coder) {
    const Type type = coder.type("b32 b64");
    coder.expect_count(5);
    coder.write(coder.operand(0), type);
    coder.read(coder.operand(1), type);
    coder.read(coder.operand(2), type);
    coder.read(coder.operand(3), kU32);
    coder.read(coder.operand(4), kU32);
    coder.emit(type == kB32 ? kElementwise<kInsert<uint32_t>, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>
                            : kElementwise<kInsert<uint64_t>, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t>);
}

// The selector of prmt.b32 for what stands behind the type.
enum class Permute { kPlain, kForward4, kBackward4, kReplicate8, kEdgeLeft, kEdgeRight, kReplicate16 };
template <Permute Mode>
constexpr auto kPermute = [](uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t s = selector;
    if constexpr (Mode != Permute::kPlain) {
        const uint32_t n = selector & 3u;
        s = 0;
        for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t byte = Mode == Permute::kForward4     ? n + i
                                  : Mode == Permute::kBackward4  ? (n - i) & 7u
                                  : Mode == Permute::kReplicate8 ? n
                                  : Mode == Permute::kEdgeLeft   ? (i > n ? i : n)
                                  : Mode == Permute::kEdgeRight  ? (i < n ? i : n)
                                                                 : (n & 1u) * 2 + i % 2;
            s |= byte << 4 * i;
        }
    }
    // In words of 32 bits and without a loop, so that lanes become elements of vectors.
    uint32_t result = 0;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t chosen = s >> 4 * i;
        const uint32_t byte = (chosen & 4u ? b : a) >> 8 * (chosen & 3u) & 0xFFu;
        const uint32_t sign = (0u - (byte >> 7)) & 0xFFu;
        result |= (chosen & 8u ? sign : byte) << 8 * i;
    }
    return result;
};

void permute(Coder& coder) {
    coder.type("b32");
    Handler handler = of_one_type<kPermute<Permute::kPlain>, uint32_t, 3>();
    if (coder.accept("f4e")) handler = of_one_type<kPermute<Permute::kForward4>, uint32_t, 3>();
    if (coder.accept("b4e")) handler = of_one_type<kPermute<Permute::kBackward4>, uint32_t, 3>();
    if (coder.accept("rc8")) handler = of_one_type<kPermute<Permute::kReplicate8>, uint32_t, 3>();
    if (coder.accept("ecl")) handler = of_one_type<kPermute<Permute::kEdgeLeft>, uint32_t, 3>();
    if (coder.accept("ecr")) handler = of_one_type<kPermute<Permute::kEdgeRight>, uint32_t, 3>();
    if (coder.accept("rc16")) handler = of_one_type<kPermute<Permute::kReplicate16>, uint32_t, 3>();
    write_and_read(coder, kB32, 3);
    coder.emit(handler);
}

// Bit 4 a + 2 b + c of the table.
constexpr auto kTable = [](uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 8; ++i)
        result |= (0 - (table >> i & 1u)) & (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
};

void table(Coder& coder) {
    coder.type("b32");
    write_and_read(coder, kB32, 4);
    coder.emit(kElementwise<kTable, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>);
}

constexpr auto kCount = []<class T>(T a) { return static_cast<uint32_t>(std::popcount(a)); };
constexpr auto kLeading = []<class T>(T a) { return static_cast<uint32_t>(std::countl_zero(a)); };
constexpr auto kReverse = []<class T>(T a) {
    T result = 0;
    for (uint32_t i = 0; i < 8 * sizeof(T); ++i) result |= static_cast<T>((a >> i & 1) << (8 * sizeof(T) - 1 - i));
    return result;
};
// Of the highest bit that differs from the sign; ~0 if none does.
template <bool Distance>
constexpr auto kFind = []<class T>(T a) {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(a < 0 ? ~a : a);
    if (bits == 0) return ~0u;
    const auto zeros = static_cast<uint32_t>(std::countl_zero(bits));
    return Distance ? zeros : static_cast<uint32_t>(8 * sizeof(T)) - 1 - zeros;
};

template <auto F>
void count(Coder& coder) {
    const Type type = coder.type("b32 b64");
    coder.expect_count(2);
    coder.write(coder.operand(0), kU32);
    coder.read(coder.operand(1), type);
    coder.emit(type == kB32 ? kElementwise<F, uint32_t, uint32_t> : kElementwise<F, uint32_t, uint64_t>);
}

void reverse(Coder& coder) {
    const Type type = coder.type("b32 b64");
    write_and_read(coder, type, 1);
    coder.emit(of_bits<kReverse, 1>(type));
}

template <bool Distance>
Handler find_handler(Type type) {
    constexpr auto of = kFind<Distance>;
    if (type.bits == 32)
        return type == kS32 ? kElementwise<of, uint32_t, int32_t> : kElementwise<of, uint32_t, uint32_t>;
    return type == kS64 ? kElementwise<of, uint32_t, int64_t> : kElementwise<of, uint32_t, uint64_t>;
}

void find(Coder& coder) {
    const bool distance = coder.accept("shiftamt");
    const Type type = coder.type("u32 s32 u64 s64");
    coder.expect_count(2);
    coder.write(coder.operand(0), kU32);
    coder.read(coder.operand(1), type);
    coder.emit(distance ? find_handler<true>(type) : find_handler<false>(type));
}

}  // namespace

std::span<const Opcode> bit_opcodes() {
    static constexpr Opcode kOpcodes[] = {
        {"and", logic<kAnd, 2>}, {"or", logic<kOr, 2>},    {"xor", logic<kXor, 2>}, {"not", logic<kNot, 1>},
        {"cnot", is_zero},       {"shl", shift<false>},    {"shr", shift<true>},    {"shf", funnel_shift},
        {"bfe", extract},        {"bfi", insert},          {"prmt", permute},       {"lop3", table},
        {"popc", count<kCount>}, {"clz", count<kLeading>}, {"brev", reverse},       {"bfind", find},
    };
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
