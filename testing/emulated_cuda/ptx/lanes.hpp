// Instructions that do the same in each lane: loops that compilers make vectors of.
#pragma once

#include "translate.hpp"
#include "warp.hpp"

#include <utility>

namespace tessera::cuda::ptx {

// places[0] = F(places[1], ...), of the types D and S.
template <auto F, class D, class... S>
struct Elementwise {
    template <bool Whole>
    static void run(Warp& warp, const Instruction& instruction, uint32_t lanes) {
        places<Whole>(warp, instruction, lanes, std::index_sequence_for<S...>{});
    }

  private:
    template <bool Whole, size_t... I>
    static void places(Warp& warp, const Instruction& instruction, uint32_t lanes, std::index_sequence<I...>) {
        loop<Whole>(lanes, warp.at<D>(instruction.places[0]), warp.at<const S>(instruction.places[1 + I])...);
    }
    template <bool Whole>
    static void loop(uint32_t lanes, D* to, const S*... from) {
        // A result may lie where an operand does, lane by lane.
#pragma GCC ivdep
        for (uint32_t l = 0; l < kLanes; ++l) {
            const D value = static_cast<D>(F(from[l]...));
            if constexpr (Whole)
                to[l] = value;
            else
                to[l] = lanes >> l & 1 ? value : to[l];
        }
    }
};

template <auto F, class D, class... S>
inline constexpr Handler kElementwise{&Elementwise<F, D, S...>::template run<true>,
                                      &Elementwise<F, D, S...>::template run<false>};

// One that looks at the lanes itself.
constexpr Handler both(Run run) {
    return {run, run};
}

// Of operands and a result of one type.
template <auto F, class T, int Operands>
constexpr Handler of_one_type() {
    if constexpr (Operands == 1)
        return kElementwise<F, T, T>;
    else if constexpr (Operands == 2)
        return kElementwise<F, T, T, T>;
    else
        return kElementwise<F, T, T, T, T>;
}

// Of integers of 16, 32 or 64 bits. Types of bits count as unsigned.
template <auto F, int Operands>
Handler of_integers(Type type) {
    const bool is_signed = type.kind == Kind::kSigned;
    switch (type.bits) {
        case 16:
            return is_signed ? of_one_type<F, int16_t, Operands>() : of_one_type<F, uint16_t, Operands>();
        case 32:
            return is_signed ? of_one_type<F, int32_t, Operands>() : of_one_type<F, uint32_t, Operands>();
        case 64:
            return is_signed ? of_one_type<F, int64_t, Operands>() : of_one_type<F, uint64_t, Operands>();
        default:
            return {};
    }
}
// The same where the sign does not matter.
template <auto F, int Operands>
Handler of_bits(Type type) {
    return of_integers<F, Operands>({Kind::kUnsigned, type.bits});
}

// d, a, b, ... of one type.
inline void write_and_read(Coder& coder, Type type, size_t operands) {
    coder.expect_count(1 + operands);
    coder.write(coder.operand(0), type);
    for (size_t i = 1; i <= operands; ++i) coder.read(coder.operand(i), type);
}

}  // namespace tessera::cuda::ptx
