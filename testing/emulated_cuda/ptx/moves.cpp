// mov and cvta (PTX ISA manual, "Data Movement and Conversion Instructions").
#include "executor.hpp"
#include "lanes.hpp"

#include <cstring>

namespace tessera::cuda::ptx {
namespace {

constexpr auto kSame = []<class T>(T a) { return a; };

void move_predicate(Warp& warp, const Instruction& i, uint32_t lanes) {
    uint32_t& bits = warp.bits(i.places[0]);
    bits = (bits & ~lanes) | (warp.bits(i.places[1]) & lanes);
}

// {a, b} of half the size, or four of a quarter, the first in the lowest bits.
template <class Whole, class Part>
void pack(Warp& warp, const Instruction& i, uint32_t lanes) {
    constexpr uint32_t kParts = sizeof(Whole) / sizeof(Part);
    Whole* const to = warp.at<Whole>(i.places[0]);
    for (uint32_t l = 0; l < kLanes; ++l) {
        if (!(lanes >> l & 1)) continue;
        Part parts[kParts];
        for (uint32_t k = 0; k < kParts; ++k) parts[k] = warp.at<Part>(i.places[1 + k])[l];
        std::memcpy(&to[l], parts, sizeof(Whole));
    }
}
template <class Whole, class Part>
void unpack(Warp& warp, const Instruction& i, uint32_t lanes) {
    constexpr uint32_t kParts = sizeof(Whole) / sizeof(Part);
    const Whole* const from = warp.at<Whole>(i.places[kParts]);
    for (uint32_t l = 0; l < kLanes; ++l) {
        if (!(lanes >> l & 1)) continue;
        Part parts[kParts];
        std::memcpy(parts, &from[l], sizeof(Whole));
        for (uint32_t k = 0; k < kParts; ++k) warp.at<Part>(i.places[k])[l] = parts[k];
    }
}

void move(Coder& coder) {
    const Type type = coder.type("pred b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64");
    coder.expect_count(2);
    const Operand &to = coder.operand(0), &from = coder.operand(1);
    if (type == kPredicate) {
        coder.write_predicate(to);
        coder.read_predicate(from);
        return coder.emit(both(move_predicate));
    }
    const Operand* const vector = to.kind == OperandKind::kVector     ? &to
                                  : from.kind == OperandKind::kVector ? &from
                                                                      : nullptr;
    if (!vector) {
        // Bits are moved, whatever they are of.
        coder.write(to, {Kind::kBits, type.bits});
        if (from.kind == OperandKind::kInteger && type.is_float()) coder.refuse("expected a floating-point number");
        coder.read(from, from.kind == OperandKind::kRegister ? Type{Kind::kBits, type.bits} : type);
        return coder.emit(of_bits<kSame, 1>(type));
    }
    const auto parts = coder.parts(*vector);
    if (type.kind != Kind::kBits || type.bits < 32 || (parts.size() != 2 && !(parts.size() == 4 && type.bits == 64)))
        coder.refuse("not packed or unpacked so");
    const Type part{Kind::kBits, static_cast<uint8_t>(type.bits / parts.size())};
    const bool packs = vector == &from;
    if (packs) coder.write(to, type);
    for (const Operand& operand : parts) packs ? coder.read(operand, part) : coder.write(operand, part);
    if (!packs) coder.read(from, type);
    if (type.bits == 32) return coder.emit(both(packs ? pack<uint32_t, uint16_t> : unpack<uint32_t, uint16_t>));
    if (part.bits == 16) return coder.emit(both(packs ? pack<uint64_t, uint16_t> : unpack<uint64_t, uint16_t>));
    coder.emit(both(packs ? pack<uint64_t, uint32_t> : unpack<uint64_t, uint32_t>));
}

template <uint64_t By>
constexpr auto kPlus = [](uint64_t a) { return a + By; };

// From an address in a space to a generic one, or back.
void convert_address(Coder& coder) {
    const bool back = coder.accept("to");
    const std::string_view space = coder.word();
    coder.expect("u64");
    write_and_read(coder, kU64, 1);
    if (space == "global" || space == "const") return coder.emit(kElementwise<kPlus<0>, uint64_t, uint64_t>);
    if (space == "shared" || space == "shared::cta")
        return coder.emit(back ? kElementwise<kPlus<0 - kSharedWindow>, uint64_t, uint64_t>
                               : kElementwise<kPlus<kSharedWindow>, uint64_t, uint64_t>);
    if (space == "local")
        return coder.emit(back ? kElementwise<kPlus<0 - kLocalWindow>, uint64_t, uint64_t>
                               : kElementwise<kPlus<kLocalWindow>, uint64_t, uint64_t>);
    coder.refuse("not supported: ." + std::string(space));
}

}  // namespace

std::span<const Opcode> move_opcodes() {
    static constexpr Opcode kOpcodes[] = {{"mov", move}, {"cvta", convert_address}};
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
