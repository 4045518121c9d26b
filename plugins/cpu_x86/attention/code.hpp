// Attention in one arithmetic over one vector unit. Included by the files of a plugin that instantiate it.
#pragma once

#include "run.hpp"

#include <cstdint>

namespace tessera::cpu_x86 {

struct AttentionCode {
    int lanes;    // of a vector
    double macs;  // a second of one worker, for estimates
    // As cpu::attention::make_budget and cpu::attention::Run::go.
    cpu::attention::Budget (*budget)(const cpu::attention::Problem& problem, int workers, int64_t cap,
                                     int64_t& minimum) noexcept;
    void (*run)(const cpu::attention::State& state, const tsr_run& run);
};

template <class Isa, class Arithmetic>
constexpr AttentionCode attention_code(double macs) noexcept {
    return {Isa::kLanes, macs, cpu::attention::make_budget<Arithmetic>,
            [](const cpu::attention::State& state, const tsr_run& run) {
                cpu::attention::Run<Isa, Arithmetic>(state, run).go();
            }};
}

}  // namespace tessera::cpu_x86
