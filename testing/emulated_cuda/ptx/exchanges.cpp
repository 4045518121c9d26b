// What lanes of a warp tell each other (PTX ISA manual, "shfl.sync", "vote.sync", "match.sync", "redux.sync",
// "activemask").
#include "executor.hpp"
#include "lanes.hpp"

#include <bit>
#include <cstring>

namespace tessera::cuda::ptx {
namespace {

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

template <Shuffle Mode>
void shuffle(Warp& warp, const Instruction& i, uint32_t lanes) {
    uint32_t members = 0;
    if (!gathered_by_mask(warp, i, lanes, i.places[5], members)) return;
    alignas(64) uint32_t values[kLanes];
    std::memcpy(values, warp.at<uint32_t>(i.places[2]), sizeof values);
    const uint32_t* const b = warp.at<uint32_t>(i.places[3]);
    const uint32_t* const c = warp.at<uint32_t>(i.places[4]);
    uint32_t* const to = warp.at<uint32_t>(i.places[0]);
    uint32_t inside = 0;
    for (uint32_t l = 0; l < kLanes; ++l) {
        if (!(lanes >> l & 1)) continue;
        const uint32_t segment = c[l] >> 8 & 31, clamp = c[l] & 31, by = b[l] & 31;
        const uint32_t most = (l & segment) | (clamp & ~segment), least = l & segment;
        uint32_t source = l;
        bool valid = false;
        if constexpr (Mode == Shuffle::kUp) {
            valid = static_cast<int32_t>(l) - static_cast<int32_t>(by) >= static_cast<int32_t>(most);
            source = l - by;
        } else {
            source = Mode == Shuffle::kDown        ? l + by
                     : Mode == Shuffle::kButterfly ? l ^ by
                                                   : least | (by & ~segment & 31);
            valid = source <= most;
        }
        if (!valid) source = l;
        if (!(members >> source & 1))
            throw Trap{Fault::kLaunchFailed,
                       "the lane asks for the value of lane " + std::to_string(source) + ", which is no member", l};
        to[l] = values[source];
        inside |= static_cast<uint32_t>(valid) << l;
    }
    uint32_t& p = warp.bits(i.places[1]);
    p = (p & ~lanes) | inside;
}

void translate_shuffle(Coder& coder) {
    coder.expect("sync");
    const std::string_view mode = coder.word();
    coder.type("b32");
    const size_t pair = coder.count() > 1 && coder.operand(1).joined ? 1 : 0;
    coder.expect_count(5 + pair);
    coder.write(coder.operand(0), kB32);
    coder.write_joined_predicate(pair);
    for (size_t k = 1; k < 5; ++k) coder.read(coder.operand(k + pair), kB32);
    if (mode == "up") return coder.emit(both(shuffle<Shuffle::kUp>));
    if (mode == "down") return coder.emit(both(shuffle<Shuffle::kDown>));
    if (mode == "bfly") return coder.emit(both(shuffle<Shuffle::kButterfly>));
    if (mode == "idx") return coder.emit(both(shuffle<Shuffle::kIndex>));
    coder.refuse("unknown mode ." + std::string(mode));
}

enum class Vote { kAll, kAny, kUniform, kBallot };

template <Vote Mode>
void vote(Warp& warp, const Instruction& i, uint32_t lanes) {
    uint32_t members = 0;
    if (!gathered_by_mask(warp, i, lanes, i.places[2], members)) return;
    const uint32_t bits = (i.more ? ~warp.bits(i.places[1]) : warp.bits(i.places[1])) & lanes;
    if constexpr (Mode == Vote::kBallot) {
        uint32_t* const to = warp.at<uint32_t>(i.places[0]);
        for (uint32_t l = 0; l < kLanes; ++l) to[l] = lanes >> l & 1 ? bits : to[l];
    } else {
        const bool result = Mode == Vote::kAll   ? bits == lanes
                            : Mode == Vote::kAny ? bits != 0
                                                 : bits == lanes || bits == 0;
        uint32_t& p = warp.bits(i.places[0]);
        p = (p & ~lanes) | (result ? lanes : 0);
    }
}

void translate_vote(Coder& coder) {
    coder.expect("sync");
    const std::string_view mode = coder.word();
    const bool ballot = mode == "ballot";
    coder.type(ballot ? "b32" : "pred");
    coder.expect_count(3);
    if (ballot)
        coder.write(coder.operand(0), kB32);
    else
        coder.write_predicate(coder.operand(0));
    Operand predicate = coder.operand(1);
    coder.instruction().more = predicate.negated;
    predicate.negated = false;
    coder.read_predicate(predicate);
    coder.read(coder.operand(2), kB32);
    if (ballot) return coder.emit(both(vote<Vote::kBallot>));
    if (mode == "all") return coder.emit(both(vote<Vote::kAll>));
    if (mode == "any") return coder.emit(both(vote<Vote::kAny>));
    if (mode == "uni") return coder.emit(both(vote<Vote::kUniform>));
    coder.refuse("unknown mode ." + std::string(mode));
}

template <class T, bool All>
void match(Warp& warp, const Instruction& i, uint32_t lanes) {
    uint32_t members = 0;
    if (!gathered_by_mask(warp, i, lanes, i.places[3], members)) return;
    T values[kLanes];
    std::memcpy(values, warp.at<T>(i.places[2]), sizeof values);
    uint32_t* const to = warp.at<uint32_t>(i.places[0]);
    uint32_t whole = 0;
    for (uint32_t l = 0; l < kLanes; ++l) {
        if (!(lanes >> l & 1)) continue;
        uint32_t equal = 0;
        for (uint32_t k = 0; k < kLanes; ++k)
            equal |= static_cast<uint32_t>((lanes >> k & 1) && values[k] == values[l]) << k;
        to[l] = All && equal != lanes ? 0 : equal;
        whole |= static_cast<uint32_t>(equal == lanes) << l;
    }
    uint32_t& p = warp.bits(i.places[1]);
    p = (p & ~lanes) | whole;
}

void translate_match(Coder& coder) {
    const bool all = coder.accept("all");
    if (!all) coder.expect("any");
    coder.expect("sync");
    const Type type = coder.type("b32 b64");
    const size_t pair = all && coder.count() > 1 && coder.operand(1).joined ? 1 : 0;
    coder.expect_count(3 + pair);
    coder.write(coder.operand(0), kB32);
    coder.write_joined_predicate(pair);
    coder.read(coder.operand(1 + pair), type);
    coder.read(coder.operand(2 + pair), kB32);
    if (all) return coder.emit(both(type == kB32 ? match<uint32_t, true> : match<uint64_t, true>));
    coder.emit(both(type == kB32 ? match<uint32_t, false> : match<uint64_t, false>));
}

enum class Reduce { kAdd, kMinimum, kMaximum, kAnd, kOr, kXor };

template <Reduce R, class T>
void reduce(Warp& warp, const Instruction& i, uint32_t lanes) {
    uint32_t members = 0;
    if (!gathered_by_mask(warp, i, lanes, i.places[2], members)) return;
    const T* const values = warp.at<T>(i.places[1]);
    T result = values[std::countr_zero(lanes)];
    for (uint32_t l = static_cast<uint32_t>(std::countr_zero(lanes)) + 1; l < kLanes; ++l) {
        if (!(lanes >> l & 1)) continue;
        const T v = values[l];
        if constexpr (R == Reduce::kAdd)
            result = static_cast<T>(static_cast<uint32_t>(result) + static_cast<uint32_t>(v));
        if constexpr (R == Reduce::kMinimum) result = v < result ? v : result;
        if constexpr (R == Reduce::kMaximum) result = v > result ? v : result;
        if constexpr (R == Reduce::kAnd) result &= v;
        if constexpr (R == Reduce::kOr) result |= v;
        if constexpr (R == Reduce::kXor) result ^= v;
    }
    T* const to = warp.at<T>(i.places[0]);
    for (uint32_t l = 0; l < kLanes; ++l) to[l] = lanes >> l & 1 ? result : to[l];
}

void translate_reduce(Coder& coder) {
    coder.expect("sync");
    const std::string_view name = coder.word();
    const Type type = coder.type("b32 u32 s32");
    coder.expect_count(3);
    coder.write(coder.operand(0), type);
    coder.read(coder.operand(1), type);
    coder.read(coder.operand(2), kB32);
    const bool is_signed = type == kS32;
    if (type != kB32) {
        if (name == "add") return coder.emit(both(reduce<Reduce::kAdd, uint32_t>));
        if (name == "min")
            return coder.emit(both(is_signed ? reduce<Reduce::kMinimum, int32_t> : reduce<Reduce::kMinimum, uint32_t>));
        if (name == "max")
            return coder.emit(both(is_signed ? reduce<Reduce::kMaximum, int32_t> : reduce<Reduce::kMaximum, uint32_t>));
    } else {
        if (name == "and") return coder.emit(both(reduce<Reduce::kAnd, uint32_t>));
        if (name == "or") return coder.emit(both(reduce<Reduce::kOr, uint32_t>));
        if (name == "xor") return coder.emit(both(reduce<Reduce::kXor, uint32_t>));
    }
    coder.refuse("unknown operation ." + std::string(name));
}

void active_mask(Warp& warp, const Instruction& i, uint32_t lanes) {
    uint32_t* const to = warp.at<uint32_t>(i.places[0]);
    for (uint32_t l = 0; l < kLanes; ++l) to[l] = lanes >> l & 1 ? lanes : to[l];
}

void translate_active_mask(Coder& coder) {
    coder.type("b32");
    coder.expect_count(1);
    coder.write(coder.operand(0), kB32);
    coder.emit(both(active_mask));
}

}  // namespace

std::span<const Opcode> exchange_opcodes() {
    static constexpr Opcode kOpcodes[] = {{"shfl", translate_shuffle},
                                          {"vote", translate_vote},
                                          {"match", translate_match},
                                          {"redux", translate_reduce},
                                          {"activemask", translate_active_mask}};
    return kOpcodes;
}

}  // namespace tessera::cuda::ptx
