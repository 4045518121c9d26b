// Control flow and barriers (PTX ISA manual, "Control Flow Instructions", "bar", "bar.warp.sync").
#include "executor.hpp"
#include "lanes.hpp"

#include <bit>

namespace tessera::cuda::ptx {
namespace {

void branch(Warp& warp, const Instruction& i, uint32_t lanes) {
    const uint32_t from = warp.pc;
    if (lanes != warp.active) return part(warp, lanes, i.more, false);
    warp.pc = i.more;
    if (!warp.others.empty()) warp.limit = 0;  // they may be ahead now
    if (i.more < from) warp.executor->went_back(warp, from - i.more);
}

void translate_branch(Coder& coder) {
    coder.accept("uni");
    coder.expect_count(1);
    if (coder.operand(0).kind != OperandKind::kLabel) coder.refuse("expected a label");
    coder.emit(both(branch), Flow::kJump);
}

void end(Warp& warp, const Instruction&, uint32_t lanes) {
    warp.executor->end_lanes(warp, lanes);
}

void translate_end(Coder& coder) {
    coder.accept("uni");
    coder.expect_count(0);
    coder.emit(both(end), Flow::kEnd);
}

void trap(Warp&, const Instruction&, uint32_t lanes) {
    throw Trap{Fault::kLaunchFailed, "the kernel executes a trap", static_cast<uint32_t>(std::countr_zero(lanes))};
}

void translate_trap(Coder& coder) {
    coder.expect_count(0);
    coder.emit(both(trap), Flow::kEnd);
}

// The number is the same in all lanes.
uint32_t of_all(const Warp& warp, Place place, uint32_t lanes, const char* what) {
    const uint32_t* const values = warp.at<uint32_t>(place);
    const uint32_t value = values[std::countr_zero(lanes)];
    for (uint32_t l = 0; l < kLanes; ++l) {
        if ((lanes >> l & 1) && values[l] != value)
            throw Trap{Fault::kLaunchFailed, std::string("lanes of a warp come to the barrier with different ") + what,
                       l};
    }
    return value;
}

template <bool Waits>
void barrier(Warp& warp, const Instruction& i, uint32_t lanes) {
    if (!all_gathered(warp, i, lanes, false)) return;
    const uint32_t number = of_all(warp, i.places[0], lanes, "numbers");
    const uint32_t threads = of_all(warp, i.places[1], lanes, "counts");
    warp.executor->arrive(warp, i, lanes, number, threads, Waits);
}

// bar{.cta}.sync a{, b}; bar{.cta}.arrive a, b; barrier with .aligned
void translate_barrier(Coder& coder) {
    if (coder.accept("warp")) {
        coder.expect("sync");
        coder.expect_count(1);
        coder.read(coder.operand(0), kB32);
        return coder.emit(both([](Warp& warp, const Instruction& i, uint32_t lanes) {
            uint32_t members = 0;
            if (gathered_by_mask(warp, i, lanes, i.places[0], members)) warp.executor->order_lanes(warp);
        }));
    }
    coder.accept("cta");
    const bool arrives = coder.accept("arrive");
    if (!arrives) coder.expect("sync");
    coder.accept("aligned");
    coder.expect_count(arrives ? 2 : 1, 2);
    coder.read(coder.operand(0), kU32);
    if (coder.count() == 2)
        coder.read(coder.operand(1), kU32);
    else
        coder.read_constant(0, 4);
    coder.emit(both(arrives ? barrier<false> : barrier<true>));
}

}  // namespace

std::span<const Opcode> control_opcodes() {
    static constexpr Opcode kOpcodes[] = {
        {"bra", translate_branch}, {"ret", translate_end}, {"exit", translate_end}, {"trap", translate_trap}};
    return kOpcodes;
}

std::span<const Opcode> barrier_opcodes() {
    static constexpr Opcode kOpcodes[] = {{"bar", translate_barrier}, {"barrier", translate_barrier}};
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
