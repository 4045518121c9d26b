// Rotary embedding over an ISA policy. Frequencies are computed once; angles in double, because positions times
// frequencies need more digits than a float has.
#pragma once

#include <tessera/cpu/rows.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace tessera::cpu::elementwise {

inline constexpr int64_t kMaxPairs = 1024;

// Angles of a node's pairs for one position, before its factors. Sources: RoPE (arXiv 2104.09864), YaRN (2309.00071).
struct RopeTable {
    std::array<double, kMaxPairs> frequencies;
    double magnitude;
    bool neox;

    explicit RopeTable(const tsr_node& node) noexcept
        : magnitude(sdk::float_attribute(node, "attn_factor", 1)),
          neox(sdk::string_attribute(node, "mode", "") == "neox") {
        const auto d = static_cast<double>(node.inputs[0]->dims[0]);
        const double base = sdk::float_attribute(node, "base", 10000);
        const double interpolation = sdk::float_attribute(node, "freq_scale", 1);
        const double extrapolation = sdk::float_attribute(node, "ext_factor", 0);
        double first = 0, last = 0;  // pairs between which interpolation replaces extrapolation
        if (extrapolation != 0) {
            const auto context = static_cast<double>(sdk::int_attribute(node, "original_context", 0));
            // The pair that rotates so many times within the context.
            const auto pair_of = [&](double rotations) {
                return d * std::log(context / (rotations * 2 * std::numbers::pi)) / (2 * std::log(base));
            };
            if (sdk::find_attribute(node, "ramp_low")) {
                first = sdk::float_attribute(node, "ramp_low", 0);
                last = sdk::float_attribute(node, "ramp_high", 0);
            } else {
                first = std::max(0.0, std::floor(pair_of(sdk::float_attribute(node, "beta_fast", 32))));
                last = std::min(d - 1, std::ceil(pair_of(sdk::float_attribute(node, "beta_slow", 1))));
            }
        }
        for (int64_t i = 0; i < node.inputs[0]->dims[0] / 2; ++i) {
            const auto pair = static_cast<double>(i);
            const double ramp = std::clamp((pair - first) / std::max(0.001, last - first), 0.0, 1.0);
            const double kept = extrapolation * (1 - ramp);
            frequencies[static_cast<size_t>(i)] =
                std::pow(base, -2 * pair / d) * (interpolation + (1 - interpolation) * kept);
        }
    }
};

// Heads of a row share the sines. A row's heads go to one worker unless there are fewer rows than workers.
template <class Isa>
void run_rope(const tsr_node& node, const RopeTable& table, const tsr_run& run) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    const View x = input(node, run, 0);
    const View positions = input(node, run, 1);
    const View out = output(node, run);
    const float* factors = sdk::has_input(node, 2) ? input(node, run, 2).floats(0) : nullptr;
    const int64_t pairs = x.dim(0) / 2, heads = x.dim(1);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const int64_t count = std::max(0, rows.end - rows.begin);
    const Share part = share(count, run);
    alignas(64) float cosines[kMaxPairs], sines[kMaxPairs];
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        const double position = positions.integer(r);
        for (int64_t i = 0; i < pairs; ++i) {
            const double frequency = table.frequencies[static_cast<size_t>(i)];
            const double angle = position * (factors ? frequency / factors[i] : frequency);
            cosines[i] = static_cast<float>(std::cos(angle) * table.magnitude);
            sines[i] = static_cast<float>(std::sin(angle) * table.magnitude);
        }
        for (int64_t h = 0; h < heads; ++h) {
            const float* from = x.floats(h, r);
            float* to = out.floats(h, r);
            int64_t i = 0;
            if (table.neox) {
                for (; i + kLanes <= pairs; i += kLanes) {
                    const auto a = Isa::load(from + i), b = Isa::load(from + i + pairs);
                    const auto c = Isa::load(cosines + i), s = Isa::load(sines + i);
                    Isa::store(to + i, Isa::subtract(Isa::multiply(a, c), Isa::multiply(b, s)));
                    Isa::store(to + i + pairs, Isa::fma(a, s, Isa::multiply(b, c)));
                }
            }
            for (; i < pairs; ++i) {
                const int64_t first = table.neox ? i : 2 * i, second = table.neox ? i + pairs : 2 * i + 1;
                const float a = from[first], b = from[second];
                to[first] = a * cosines[i] - b * sines[i];
                to[second] = a * sines[i] + b * cosines[i];
            }
        }
    }
}

}  // namespace tessera::cpu::elementwise
