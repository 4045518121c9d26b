// Attention in one arithmetic over one vector unit. Included by the files of a plugin that instantiate it.
#pragma once

#include "../kit.hpp"
#include "../rates.hpp"
#include "byte_operands.hpp"
#include "float_operands.hpp"
#include "int16_operands.hpp"
#include "run.hpp"

#include <cstdint>

// Plans ask for budgets: budget.cpp has them for any processor.
namespace tessera::x86::attention {

extern template Budget make_budget<Int16Operands<8>>(const Problem&, int, int64_t, int64_t&) noexcept;
extern template Budget make_budget<Int16Operands<16>>(const Problem&, int, int64_t, int64_t&) noexcept;
extern template Budget make_budget<ByteOperands<8>>(const Problem&, int, int64_t, int64_t&) noexcept;
extern template Budget make_budget<ByteOperands<16>>(const Problem&, int, int64_t, int64_t&) noexcept;
extern template Budget make_budget<FloatOperands<8>>(const Problem&, int, int64_t, int64_t&) noexcept;
extern template Budget make_budget<FloatOperands<16>>(const Problem&, int, int64_t, int64_t&) noexcept;

}  // namespace tessera::x86::attention

namespace tessera::x86 {

struct AttentionCode {
    const char* arithmetic;  // for people
    int lanes;               // of a vector
    double AttentionRates::*rate;
    // As attention::make_budget and attention::Run::go.
    attention::Budget (*budget)(const attention::Problem& problem, int workers, int64_t cap, int64_t& minimum) noexcept;
    void (*run)(const attention::State& state, const tsr_run& run);
};

// Whether Int16Pages and the vector unit agree about the order of elements.
template <class Isa>
constexpr bool same_order() noexcept {
    for (int e = 0; e < 64; ++e) {
        if (Int16Pages{64, Isa::kLanes}.place_of(e) != Isa::place_of(e)) return false;
    }
    return true;
}

template <class Isa, class Arithmetic>
constexpr AttentionCode attention_code() noexcept {
    using Operands = typename Arithmetic::Operands;
    static_assert(same_order<Isa>());
    static_assert(sizeof(attention::Panel<Operands>) == sizeof(attention::Panel<Arithmetic>));
    return {
        Arithmetic::kName, Isa::kLanes, Arithmetic::kRate, attention::make_budget<Operands>,
        [](const attention::State& state, const tsr_run& run) { attention::Run<Isa, Arithmetic>(state, run).go(); }};
}

}  // namespace tessera::x86
