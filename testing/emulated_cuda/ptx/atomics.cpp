// atom, red and fences (PTX ISA manual, "Parallel Synchronization and Communication Instructions").
#include "executor.hpp"
#include "lanes.hpp"

#include <cstring>

namespace tessera::cuda::ptx {
namespace {

enum class Operation { kAdd, kMinimum, kMaximum, kExchange, kCompareAndSwap, kAnd, kOr, kXor, kIncrement, kDecrement };

template <Operation O, class T>
T changed(T old, T a, T b) {
    if constexpr (O == Operation::kAdd) {
        if constexpr (std::is_floating_point_v<T>)
            return old + a;
        else
            return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(a));
    }
    if constexpr (O == Operation::kMinimum) return old < a ? old : a;
    if constexpr (O == Operation::kMaximum) return old > a ? old : a;
    if constexpr (O == Operation::kExchange) return a;
    if constexpr (O == Operation::kCompareAndSwap) return old == a ? b : old;
    if constexpr (O == Operation::kIncrement) return old >= a ? T{0} : static_cast<T>(old + 1);
    if constexpr (O == Operation::kDecrement) return old == 0 || old > a ? a : static_cast<T>(old - 1);
    if constexpr (!std::is_floating_point_v<T>) {
        if constexpr (O == Operation::kAnd) return old & a;
        if constexpr (O == Operation::kOr) return old | a;
        if constexpr (O == Operation::kXor) return old ^ a;
    }
    return old;
}

// Lanes one after another, in no order that anybody may rely on. Instruction::more is the space.
template <Operation O, class T>
void atomic(Warp& warp, const Instruction& i, uint32_t lanes) {
    T* const result = warp.at<T>(i.places[0]);
    uint64_t addresses[kLanes];
    if (i.more >> 8)
        for (uint32_t l = 0; l < kLanes; ++l) addresses[l] = warp.at<uint32_t>(i.places[1])[l] + i.immediate;
    else
        for (uint32_t l = 0; l < kLanes; ++l) addresses[l] = warp.at<uint64_t>(i.places[1])[l] + i.immediate;
    const T* const a = warp.at<T>(i.places[2]);
    const T* const b = warp.at<T>(i.places[3]);
    for (uint32_t l = 0; l < kLanes; ++l) {
        if (!(lanes >> l & 1)) continue;
        auto* const at = reinterpret_cast<T*>(
            warp.executor->place(warp, static_cast<Space>(i.more & 0xFF), addresses[l], sizeof(T), Access::kAtomic, l));
        T old;
        __atomic_load(at, &old, __ATOMIC_SEQ_CST);
        for (;;) {
            T next = changed<O, T>(old, a[l], b[l]);
            if (__atomic_compare_exchange(at, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) break;
        }
        result[l] = old;
    }
}

template <Operation O>
Handler handler_of(Type type) {
    constexpr bool kBitwise = O == Operation::kAnd || O == Operation::kOr || O == Operation::kXor ||
                              O == Operation::kExchange || O == Operation::kCompareAndSwap;
    constexpr bool kSteps = O == Operation::kIncrement || O == Operation::kDecrement;
    const bool is_signed = type.kind == Kind::kSigned;
    if (kSteps && type != kU32) return {};
    if (kBitwise != (type.kind == Kind::kBits)) return {};
    if constexpr (O == Operation::kAdd) {
        if (type == kF32) return both(atomic<O, float>);
        if (type == kF64) return both(atomic<O, double>);
    }
    if (type.is_float()) return {};
    if (type.bits == 32) return both(is_signed ? atomic<O, int32_t> : atomic<O, uint32_t>);
    return both(is_signed ? atomic<O, int64_t> : atomic<O, uint64_t>);
}

Handler handler_named(Coder& coder, std::string_view name, Type type) {
    if (name == "add") return handler_of<Operation::kAdd>(type);
    if (name == "min") return handler_of<Operation::kMinimum>(type);
    if (name == "max") return handler_of<Operation::kMaximum>(type);
    if (name == "exch") return handler_of<Operation::kExchange>(type);
    if (name == "cas") return handler_of<Operation::kCompareAndSwap>(type);
    if (name == "and") return handler_of<Operation::kAnd>(type);
    if (name == "or") return handler_of<Operation::kOr>(type);
    if (name == "xor") return handler_of<Operation::kXor>(type);
    if (name == "inc") return handler_of<Operation::kIncrement>(type);
    if (name == "dec") return handler_of<Operation::kDecrement>(type);
    coder.refuse("unknown operation ." + std::string(name));
}

// atom{.sem}{.scope}{.space}.op.type d, [a], b{, c}; red without d
template <bool Returns>
void translate_atomic(Coder& coder) {
    for (const char* order : {"relaxed", "acquire", "release", "acq_rel"}) {
        if (coder.accept(order)) break;
    }
    for (const char* scope : {"cta", "gpu", "sys"}) {
        if (coder.accept(scope)) break;
    }
    const Space space = accept_space(coder);
    if (space != Space::kGeneric && space != Space::kGlobal && space != Space::kShared)
        coder.refuse("not in this space");
    const std::string_view name = coder.word();
    const Type type = coder.type("b32 b64 u32 u64 s32 s64 f32 f64");
    const bool swaps = name == "cas";
    constexpr size_t kFirst = Returns ? 1 : 0;
    coder.expect_count(kFirst + (swaps ? 3 : 2));
    if (Returns)
        coder.write(coder.operand(0), type);
    else
        coder.write_nothing(type);
    const uint32_t bits = coder.read_address(coder.operand(kFirst));
    coder.read(coder.operand(kFirst + 1), type);
    if (swaps)
        coder.read(coder.operand(kFirst + 2), type);
    else
        coder.read_constant(0, type.bytes());
    coder.instruction().more = static_cast<uint32_t>(space) | (bits == 32 ? 1u << 8 : 0);
    coder.emit(handler_named(coder, name, type));
}

// Accesses take effect as they are executed, so that no fence is needed here.
void nothing(Warp&, const Instruction&, uint32_t) {}

void memory_barrier(Coder& coder) {
    coder.translation().program.has_fence = true;
    if (!coder.accept("cta")) {
        if (!coder.accept("gl")) coder.expect("sys");
        coder.translation().program.has_device_fence = true;
    }
    coder.expect_count(0);
    coder.emit(both(nothing));
}

void fence(Coder& coder) {
    coder.translation().program.has_fence = true;
    if (!coder.accept("sc")) coder.accept("acq_rel");
    if (!coder.accept("cta")) {
        if (!coder.accept("gpu")) coder.expect("sys");
        coder.translation().program.has_device_fence = true;
    }
    coder.expect_count(0);
    coder.emit(both(nothing));
}

}  // namespace

std::span<const Opcode> atomic_opcodes() {
    static constexpr Opcode kOpcodes[] = {{"atom", translate_atomic<true>},
                                          {"red", translate_atomic<false>},
                                          {"membar", memory_barrier},
                                          {"fence", fence}};
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
