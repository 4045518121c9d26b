// Attention in one arithmetic over one vector unit. Included by the files of a plugin that instantiate it.
#pragma once

#include "float_operands.hpp"
#include "int16_operands.hpp"
#include "run.hpp"

#include <cstdint>

// Plans ask for budgets: budget.cpp has them for any processor.
namespace tessera::cpu::attention {

extern template Budget make_budget<Int16Operands<8>>(const Problem&, int, int64_t, int64_t&) noexcept;
extern template Budget make_budget<Int16Operands<16>>(const Problem&, int, int64_t, int64_t&) noexcept;
extern template Budget make_budget<FloatOperands<8>>(const Problem&, int, int64_t, int64_t&) noexcept;
extern template Budget make_budget<FloatOperands<16>>(const Problem&, int, int64_t, int64_t&) noexcept;

}  // namespace tessera::cpu::attention

namespace tessera::cpu_x86 {

struct AttentionCode {
    int lanes;    // of a vector
    double macs;  // a second of one core at Estimate::kReferenceHz
    // As cpu::attention::make_budget and cpu::attention::Run::go.
    cpu::attention::Budget (*budget)(const cpu::attention::Problem& problem, int workers, int64_t cap,
                                     int64_t& minimum) noexcept;
    void (*run)(const cpu::attention::State& state, const tsr_run& run);
};

template <class Isa, class Arithmetic>
constexpr AttentionCode attention_code(double macs) noexcept {
    using Operands = typename Arithmetic::Operands;
    static_assert(sizeof(cpu::attention::Panel<Operands>) == sizeof(cpu::attention::Panel<Arithmetic>));
    return {Isa::kLanes, macs, cpu::attention::make_budget<Operands>,
            [](const cpu::attention::State& state, const tsr_run& run) {
                cpu::attention::Run<Isa, Arithmetic>(state, run).go();
            }};
}

}  // namespace tessera::cpu_x86
