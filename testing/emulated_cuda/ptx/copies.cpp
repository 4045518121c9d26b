// cp.async (PTX ISA manual, "Data Movement and Conversion Instructions: Asynchronous copy"). Data arrives as late as it
// may: when it is waited for.
#include "executor.hpp"
#include "lanes.hpp"

#include <algorithm>

namespace tessera::cuda::ptx {
namespace {

template <class T>
uint64_t address(const Warp& warp, Place place, uint32_t lane) {
    return warp.at<const T>(place)[lane];
}

// Instruction::more: bytes in all; 1 << 8 if addresses of shared memory have 32 bits.
void copy(Warp& warp, const Instruction& i, uint32_t lanes) {
    const uint32_t size = i.more & 0xFF;
    for (uint32_t l = 0; l < kLanes; ++l) {
        if (!(lanes >> l & 1)) continue;
        const uint64_t to =
            (i.more >> 8 ? address<uint32_t>(warp, i.places[0], l) : address<uint64_t>(warp, i.places[0], l)) +
            i.immediate;
        const uint64_t from = address<uint64_t>(warp, i.places[1], l) + address<uint64_t>(warp, i.places[2], l);
        const uint32_t bytes = warp.at<uint32_t>(i.places[3])[l];
        if (bytes > size)
            throw Trap{
                Fault::kLaunchFailed,
                "of " + std::to_string(size) + " bytes that are copied, " + std::to_string(bytes) + " are to be read",
                l};
        warp.executor->copy_later(warp, l, to, from, bytes, size);
    }
}

void commit(Warp& warp, const Instruction&, uint32_t lanes) {
    for (uint32_t l = 0; l < kLanes; ++l) warp.committed[l] += lanes >> l & 1;
}

// Instruction::more: how many groups may be under way.
void wait(Warp& warp, const Instruction& i, uint32_t lanes) {
    const auto done = [&](const PendingCopy& copy) {
        return (lanes >> copy.lane & 1) != 0 && uint64_t{copy.group} + i.more < warp.committed[copy.lane];
    };
    for (const PendingCopy& copy : warp.copies) {
        if (done(copy)) warp.executor->land(warp, copy);
    }
    std::erase_if(warp.copies, done);
}

void wait_all(Warp& warp, const Instruction& i, uint32_t lanes) {
    commit(warp, i, lanes);
    wait(warp, i, lanes);
}

void translate_copy(Coder& coder) {
    coder.expect("async");
    if (coder.accept("commit_group")) {
        coder.expect_count(0);
        return coder.emit(both(commit));
    }
    if (coder.accept("wait_all")) {
        coder.expect_count(0);
        return coder.emit(both(wait_all));
    }
    if (coder.accept("wait_group")) {
        coder.expect_count(1);
        const Operand& groups = coder.operand(0);
        if (groups.kind != OperandKind::kInteger || groups.bits > UINT32_MAX)
            coder.refuse("expected a number of groups");
        coder.instruction().more = static_cast<uint32_t>(groups.bits);
        return coder.emit(both(wait));
    }
    const bool around = coder.accept("cg");
    if (!around) coder.expect("ca");
    if (accept_space(coder) != Space::kShared || accept_space(coder) != Space::kGlobal)
        coder.refuse("copies from .global to .shared only");
    while (coder.peek().starts_with("L2::") && !coder.peek().ends_with("hint")) coder.word();
    coder.expect_count(3, 4);
    const Operand& size = coder.operand(2);
    if (size.kind != OperandKind::kInteger || (size.bits != 16 && (around || (size.bits != 4 && size.bits != 8))))
        coder.refuse("copies 16 bytes, or with .ca 4 or 8");
    const uint32_t bits = coder.read_address(coder.operand(0));
    const uint64_t offset = coder.instruction().immediate;
    if (coder.read_address(coder.operand(1)) != 64) coder.refuse("addresses of global memory have 64 bits");
    coder.read_constant(coder.instruction().immediate, 8);
    coder.instruction().immediate = offset;
    if (coder.count() == 4)
        coder.read(coder.operand(3), kU32);
    else
        coder.read_constant(size.bits, 4);
    coder.instruction().more = static_cast<uint32_t>(size.bits) | (bits == 32 ? 1u << 8 : 0);
    coder.emit(both(copy));
}

}  // namespace

std::span<const Opcode> copy_opcodes() {
    static constexpr Opcode kOpcodes[] = {{"cp", translate_copy}};
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
