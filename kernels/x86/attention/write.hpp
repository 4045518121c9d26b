// From the results of panels to the output.
#pragma once

#include "../kit.hpp"
#include "../past_caches.hpp"
#include "operands.hpp"

namespace tessera::x86::attention {

// Elements [begin, end) (multiples of 32) of a panel's result that lies by lanes, divided by the sums of its lanes.
template <class Arithmetic>
void write_part_by_lane(const Operands& o, const Slice& s, int key, int64_t panel, const Result& lies,
                        const float* result, const float* sums, int begin, int end) noexcept {
    constexpr int kRun = Arithmetic::kOutRun;
    end = std::min(end, o.shape().value);
    const bool past = pays_past_caches(o.run(), int64_t{o.shape().value} * lies.lanes * int64_t{sizeof(float)});
    for (int i = 0; i < lies.lanes; ++i) {
        const int64_t lane = panel * Arithmetic::kPanel + i;
        float* row = o.out.floats(o.head_of(key, lane), o.row_of(s, lane));
        const float inverse = 1.0f / sums[i];
        for (int e = begin; e < end; e += kRun) {
            const float* from =
                result + int64_t{i} * o.shape().padded_value() + (lies.in_order ? e : Arithmetic::out_place(e));
            if (e + kRun <= end && past) {
                alignas(16) float run[kRun];
                for (int n = 0; n < kRun; ++n) run[n] = from[n] * inverse;
                write_past_caches(row + e, run, kRun);
                continue;
            }
            for (int n = 0; n < std::min(kRun, end - e); ++n) row[e + n] = from[n] * inverse;
        }
    }
    if (past) end_past_caches();
}

// The same of any result.
template <class Isa, class Arithmetic>
void write_part(const Operands& o, const Slice& s, int key, int64_t panel, const Result& lies, const float* result,
                const float* sums, int begin, int end) noexcept {
    if (lies.by_lane) return write_part_by_lane<Arithmetic>(o, s, key, panel, lies, result, sums, begin, end);
    constexpr int kLanes = Isa::kLanes;
    constexpr int kPanel = Arithmetic::kPanel;
    constexpr int kRun = Arithmetic::kOutRun;
    const int value = o.shape().value;
    const int lanes = Lanes<Isa, Arithmetic>::count(s, panel);
    const int width = Lanes<Isa, Arithmetic>::vectors(s, panel) * kLanes;
    for (int lane0 = 0; lane0 < lanes; lane0 += kLanes) {
        float* rows[kLanes];
        for (int i = 0; i < kLanes; ++i) {
            const int64_t lane = panel * kPanel + std::min(lane0 + i, lanes - 1);
            rows[i] = o.out.floats(o.head_of(key, lane), o.row_of(s, lane));
        }
        const auto inverse = Isa::divide(Isa::splat(1.0f), Isa::load(sums + lane0));
        // Elements e .. e + kRun of a value are adjacent in a result, from out_place(e) on.
        for (int e = begin; e < std::min(end, value); e += kLanes) {
            typename Isa::Floats r[kLanes];
            for (int i = 0; i < kLanes; ++i) {
                const int place = Arithmetic::out_place(e + i / kRun * kRun) + i % kRun;
                r[i] = Isa::multiply(Isa::load(result + int64_t{place} * width + lane0), inverse);
            }
            Isa::transpose(r);
            const int count = std::min(kLanes, value - e);
            for (int i = 0; i < kLanes && lane0 + i < lanes; ++i) {
                if (count == kLanes) {
                    Isa::store(rows[i] + e, r[i]);
                } else {
                    alignas(64) float some[kLanes];
                    Isa::store(some, r[i]);
                    std::copy_n(some, count, rows[i] + e);
                }
            }
        }
    }
}

}  // namespace tessera::x86::attention
