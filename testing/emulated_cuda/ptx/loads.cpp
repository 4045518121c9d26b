// ld and st (PTX ISA manual, "Data Movement and Conversion Instructions").
#include "executor.hpp"
#include "lanes.hpp"

#include <cstring>

namespace tessera::cuda::ptx {
namespace {

// Puts elements that lie `stride` bytes apart into a register, extended as their type says.
template <class Element, class Register>
void to_register(const uint8_t* from, uint32_t stride, void* to, uint32_t lanes) {
    auto* const values = static_cast<Register*>(to);
    for (uint32_t l = 0; l < kLanes; ++l) {
        Element element;
        std::memcpy(&element, from + l * stride, sizeof element);
        values[l] = lanes >> l & 1 ? static_cast<Register>(element) : values[l];
    }
}
template <class Element, class Register>
void from_register(const void* from, uint32_t stride, uint8_t* to) {
    const auto* const values = static_cast<const Register*>(from);
    for (uint32_t l = 0; l < kLanes; ++l) {
        const auto element = static_cast<Element>(values[l]);
        std::memcpy(to + l * stride, &element, sizeof element);
    }
}

using ToRegister = void (*)(const uint8_t*, uint32_t, void*, uint32_t);
using FromRegister = void (*)(const void*, uint32_t, uint8_t*);

struct Extension {
    Type element;
    uint32_t width;  // bits of the register
    ToRegister load;
    FromRegister store;
};
template <class Element, class Register>
constexpr Extension extension(Type type) {
    return {type, 8 * sizeof(Register), to_register<Element, Register>, from_register<Element, Register>};
}
template <class Element>
constexpr Extension of_width(Type type, uint32_t width) {
    return width == 16   ? extension<Element, uint16_t>(type)
           : width == 32 ? extension<Element, uint32_t>(type)
                         : extension<Element, uint64_t>(type);
}
// The low byte of Instruction::more is a place in this table; kStrong is beside it.
constexpr Extension kExtensions[] = {
    of_width<uint8_t>({Kind::kUnsigned, 8}, 16),
    of_width<uint8_t>({Kind::kUnsigned, 8}, 32),
    of_width<uint8_t>({Kind::kUnsigned, 8}, 64),
    of_width<int8_t>({Kind::kSigned, 8}, 16),
    of_width<int8_t>({Kind::kSigned, 8}, 32),
    of_width<int8_t>({Kind::kSigned, 8}, 64),
    of_width<uint16_t>(kU16, 16),
    of_width<uint16_t>(kU16, 32),
    of_width<uint16_t>(kU16, 64),
    of_width<int16_t>(kS16, 16),
    of_width<int16_t>(kS16, 32),
    of_width<int16_t>(kS16, 64),
    of_width<uint32_t>(kU32, 32),
    of_width<uint32_t>(kU32, 64),
    of_width<int32_t>(kS32, 32),
    of_width<int32_t>(kS32, 64),
    of_width<uint64_t>(kU64, 64),
    of_width<int64_t>(kS64, 64),
};

constexpr uint32_t kStrong = 1 << 8;

uint32_t find_extension(Coder& coder, Type type, uint32_t width) {
    const Type element{type.kind == Kind::kSigned ? Kind::kSigned : Kind::kUnsigned, type.bits};
    for (uint32_t i = 0; i < std::size(kExtensions); ++i) {
        if (kExtensions[i].element == element && kExtensions[i].width == width) return i;
    }
    coder.refuse("not supported with a register of " + std::to_string(width) + " bits");
}

template <class Register>
void find_addresses(const Warp& warp, Place place, uint64_t offset, uint64_t* addresses) {
    const Register* const base = warp.at<const Register>(place);
    // Of 32 bits: shared memory, where sums do not wrap.
    for (uint32_t l = 0; l < kLanes; ++l) addresses[l] = base[l] + offset;
}

template <uint32_t Bytes, Space From, bool ReadOnly, class Address>
void load(Warp& warp, const Instruction& i, uint32_t lanes) {
    alignas(64) uint64_t addresses[kLanes];
    alignas(64) uint8_t values[kLanes * Bytes];
    find_addresses<Address>(warp, i.places[i.writes], i.immediate, addresses);
    warp.executor->load<Bytes>(warp, From, addresses, lanes,
                               ReadOnly           ? Access::kReadOnly
                               : i.more & kStrong ? Access::kStrongRead
                                                  : Access::kRead,
                               values);
    const Extension& extension = kExtensions[i.more & 0xFF];
    const uint32_t size = extension.element.bytes();
    for (uint32_t k = 0; k < i.writes; ++k)
        extension.load(values + k * size, Bytes, warp.at<uint8_t>(i.places[k]), lanes);
}

template <uint32_t Bytes, Space To, class Address>
void store(Warp& warp, const Instruction& i, uint32_t lanes) {
    alignas(64) uint64_t addresses[kLanes];
    alignas(64) uint8_t values[kLanes * Bytes];
    find_addresses<Address>(warp, i.places[0], i.immediate, addresses);
    const Extension& extension = kExtensions[i.more & 0xFF];
    const uint32_t size = extension.element.bytes();
    for (uint32_t k = 0; k + 1 < i.reads; ++k)
        extension.store(warp.at<const uint8_t>(i.places[1 + k]), Bytes, values + k * size);
    warp.executor->store<Bytes>(warp, To, addresses, lanes, i.more & kStrong ? Access::kStrongWrite : Access::kWrite,
                                values);
}

template <uint32_t Bytes, Space S, bool ReadOnly>
Run load_run(uint32_t address_bits) {
    return address_bits == 32 ? load<Bytes, S, ReadOnly, uint32_t> : load<Bytes, S, ReadOnly, uint64_t>;
}
template <uint32_t Bytes, Space S>
Run store_run(uint32_t address_bits) {
    return address_bits == 32 ? store<Bytes, S, uint32_t> : store<Bytes, S, uint64_t>;
}

template <uint32_t Bytes>
Run load_from(Coder& coder, Space space, bool read_only, uint32_t address_bits) {
    if (read_only) return load_run<Bytes, Space::kGlobal, true>(address_bits);
    switch (space) {
        case Space::kGeneric:
            return load_run<Bytes, Space::kGeneric, false>(address_bits);
        case Space::kGlobal:
        case Space::kConst:
            return load_run<Bytes, Space::kGlobal, false>(address_bits);
        case Space::kShared:
            return load_run<Bytes, Space::kShared, false>(address_bits);
        case Space::kLocal:
            return load_run<Bytes, Space::kLocal, false>(address_bits);
        case Space::kParam:
            return load_run<Bytes, Space::kParam, false>(address_bits);
    }
    coder.refuse("not supported in this space");
}
template <uint32_t Bytes>
Run store_to(Coder& coder, Space space, uint32_t address_bits) {
    switch (space) {
        case Space::kGeneric:
            return store_run<Bytes, Space::kGeneric>(address_bits);
        case Space::kGlobal:
            return store_run<Bytes, Space::kGlobal>(address_bits);
        case Space::kShared:
            return store_run<Bytes, Space::kShared>(address_bits);
        case Space::kLocal:
            return store_run<Bytes, Space::kLocal>(address_bits);
        default:
            coder.refuse("cannot be written");
    }
}

// Cards cache as they like: none of these changes what is read.
void accept_hints(Coder& coder) {
    while (coder.peek().starts_with("L1::") || coder.peek().starts_with("L2::")) {
        if (coder.peek().ends_with("cache_hint")) coder.refuse("not supported: ." + std::string(coder.peek()));
        coder.word();
    }
}

struct Shape {
    Space space;
    Type type;
    uint32_t count = 1;
    bool read_only = false;
    bool strong = false;
};

Shape read_shape(Coder& coder, bool loads) {
    Shape shape{};
    const bool ordered = coder.accept("relaxed") || (loads ? coder.accept("acquire") : coder.accept("release"));
    if (ordered && !coder.accept("cta") && !coder.accept("gpu")) coder.expect("sys");
    shape.strong = ordered || (!coder.accept("weak") && coder.accept("volatile"));
    shape.space = accept_space(coder);
    for (const char* hint : {"ca", "cg", "cs", "lu", "cv", "wb", "wt"}) {
        if (coder.accept(hint)) break;
    }
    if (loads) shape.read_only = coder.accept("nc");
    if (shape.read_only && shape.space != Space::kGlobal) coder.refuse(".nc is of global memory");
    accept_hints(coder);
    shape.count = coder.accept("v2") ? 2 : coder.accept("v4") ? 4 : 1;
    shape.type = coder.type("b8 u8 s8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64");
    if (shape.type.bytes() * shape.count > 16) coder.refuse("more than 16 bytes");
    return shape;
}

template <class Pick>
Run of_size(uint32_t bytes, const Pick& pick) {
    switch (bytes) {
        case 1:
            return pick.template operator()<1>();
        case 2:
            return pick.template operator()<2>();
        case 4:
            return pick.template operator()<4>();
        case 8:
            return pick.template operator()<8>();
        default:
            return pick.template operator()<16>();
    }
}

// The registers of a vector or of one, all of one width.
uint32_t width_of_all(Coder& coder, std::span<const Operand> values, const Shape& shape) {
    if (values.size() != shape.count) coder.refuse("expected " + std::to_string(shape.count) + " registers");
    uint32_t width = 0;
    for (const Operand& value : values) {
        const uint32_t own = coder.width(value, shape.type.bits < 16 ? 16 : shape.type.bits);
        if (width != 0 && own != width) coder.refuse("registers of different sizes");
        width = own;
        if (value.kind == OperandKind::kRegister && value.type.is_float() && shape.type.is_integer() &&
            shape.type.kind != Kind::kBits)
            coder.refuse("an integer and a floating-point number are no operands of each other");
    }
    return width;
}

void translate_load(Coder& coder) {
    const Shape shape = read_shape(coder, true);
    coder.expect_count(2);
    const auto values = coder.parts(coder.operand(0));
    const uint32_t width = width_of_all(coder, values, shape);
    for (const Operand& value : values) coder.write_wide(value, shape.type);
    const uint32_t address_bits = coder.read_address(coder.operand(1));
    coder.instruction().more = find_extension(coder, shape.type, width) | (shape.strong ? kStrong : 0);
    coder.emit(both(of_size(shape.type.bytes() * shape.count, [&]<uint32_t Bytes>() {
        return load_from<Bytes>(coder, shape.space, shape.read_only, address_bits);
    })));
}

void translate_store(Coder& coder) {
    const Shape shape = read_shape(coder, false);
    coder.expect_count(2);
    const auto values = coder.parts(coder.operand(1));
    const uint32_t width = width_of_all(coder, values, shape);
    const uint32_t address_bits = coder.read_address(coder.operand(0));
    for (const Operand& value : values) {
        if (value.kind == OperandKind::kRegister || shape.type.bits > 8)
            coder.read_wide(value, shape.type);
        else
            coder.read_constant(value.bits & 0xFF, 2);
    }
    coder.instruction().more = find_extension(coder, shape.type, width) | (shape.strong ? kStrong : 0);
    coder.emit(both(of_size(shape.type.bytes() * shape.count,
                            [&]<uint32_t Bytes>() { return store_to<Bytes>(coder, shape.space, address_bits); })));
}

void nothing(Warp&, const Instruction&, uint32_t) {}

// prefetch{.space}.level [a]
void prefetch(Coder& coder) {
    accept_space(coder);
    if (!coder.accept("L1")) coder.expect("L2");
    coder.expect_count(1);
    coder.read_address(coder.operand(0));
    coder.emit(both(nothing));
}

}  // namespace

Space accept_space(Coder& coder) {
    if (coder.accept("global")) return Space::kGlobal;
    if (coder.accept("const")) return Space::kConst;
    if (coder.accept("shared") || coder.accept("shared::cta")) return Space::kShared;
    if (coder.accept("local")) return Space::kLocal;
    if (coder.accept("param") || coder.accept("param::entry")) return Space::kParam;
    return Space::kGeneric;
}

std::span<const Opcode> memory_opcodes() {
    static constexpr Opcode kOpcodes[] = {{"ld", translate_load}, {"st", translate_store}, {"prefetch", prefetch}};
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
