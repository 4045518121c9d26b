// Rotary positions over an ISA policy. Frequencies are worked out once; angles in double, because positions times
// frequencies need more digits than a float has.
#pragma once

#include <tessera/cpu/reference/pointwise.hpp>

#include <array>

namespace tessera::cpu::elementwise {

inline constexpr int64_t kMaxPairs = 1024;

// Plain frequencies of a node, before its factors.
struct RopeTable {
    std::array<double, kMaxPairs> frequencies;
    double magnitude;
    bool neox;

    explicit RopeTable(const tsr_node& node) noexcept {
        const int64_t d = node.inputs[0]->dims[0];
        const reference::Rotation rotation(node, d);
        for (int64_t i = 0; i < d / 2; ++i) frequencies[static_cast<size_t>(i)] = rotation.frequency(i, 1);
        magnitude = rotation.magnitude();
        neox = sdk::string_attribute(node, "mode", "") == "neox";
    }
};

// Heads of a row share the sines. A row's heads go to one worker unless there are fewer rows than workers.
template <class Isa>
void run_rope(const tsr_node& node, const RopeTable& table, const tsr_run& run) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    const reference::View x = reference::input(node, run, 0);
    const reference::View positions = reference::input(node, run, 1);
    const reference::View out = reference::output(node, run);
    const float* factors = sdk::has_input(node, 2) ? reference::input(node, run, 2).floats(0) : nullptr;
    const int64_t pairs = x.dim(0) / 2, heads = x.dim(1);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const int64_t count = std::max(0, rows.end - rows.begin);
    const reference::Share part = reference::share(count, run);
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
