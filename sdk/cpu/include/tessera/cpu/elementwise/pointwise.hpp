// rms_norm, add, mul, silu_mul, glu, add_id, scale, scale_by_position, sigmoid_mul, weighted_sum over an ISA policy.
// Operands and meaning are those of ops.h; the checks of the kit have accepted the node. Work is cut into rows or
// pieces of rows of a fixed size, so results do not depend on the number of workers.
#pragma once

#include <tessera/cpu/exponential.hpp>
#include <tessera/cpu/glu.hpp>
#include <tessera/cpu/rows.hpp>

namespace tessera::cpu::elementwise {

// Elements of a row that one worker takes at a time.
inline constexpr int64_t kPiece = 1024;

template <class Isa>
float sum_of_squares(const float* x, int64_t n) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    auto a = Isa::zero(), b = Isa::zero(), c = Isa::zero(), d = Isa::zero();
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
        const auto p = Isa::load(x + i), q = Isa::load(x + i + kLanes);
        const auto r = Isa::load(x + i + 2 * kLanes), s = Isa::load(x + i + 3 * kLanes);
        a = Isa::fma(p, p, a);
        b = Isa::fma(q, q, b);
        c = Isa::fma(r, r, c);
        d = Isa::fma(s, s, d);
    }
    for (; i < n; i += kLanes) {
        const auto p = Isa::load_first(x + i, static_cast<int>(std::min(n - i, kLanes)));
        a = Isa::fma(p, p, a);
    }
    return Isa::sum(Isa::add(Isa::add(a, b), Isa::add(c, d)));
}

template <class Isa>
void run_rms_norm(const tsr_node& node, const tsr_run& run) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    const View x = input(node, run, 0);
    const View out = output(node, run);
    const float* weight = input(node, run, 1).floats(0);
    const int64_t n = x.dim(0);
    const double epsilon = sdk::float_attribute(node, "epsilon", 0);
    const RowList rows(*x.tensor, run);
    const Share part = share(rows.count(), run);
    for (int64_t r = part.begin; r < part.end; ++r) {
        const float* from = rows.floats(x, r);
        float* to = rows.floats(out, r);
        const double mean = static_cast<double>(sum_of_squares<Isa>(from, n)) / static_cast<double>(n);
        const auto scale = static_cast<float>(1 / std::sqrt(mean + epsilon));
        const auto factor = Isa::splat(scale);
        int64_t i = 0;
        for (; i + kLanes <= n; i += kLanes) {
            Isa::store(to + i, Isa::multiply(Isa::multiply(Isa::load(from + i), factor), Isa::load(weight + i)));
        }
        for (; i < n; ++i) to[i] = from[i] * scale * weight[i];
    }
}

// 1 / (1 + exp(-v)).
template <class Isa>
typename Isa::Floats sigmoid(typename Isa::Floats v) noexcept {
    const auto one = Isa::splat(1.0f);
    const auto e = exp_not_positive<Isa>(Isa::subtract(Isa::zero(), Isa::magnitude(v)));
    // exp(-|v|) is the numerator of a negative v, one that of the others.
    const auto numerator = Isa::add(e, Isa::where_not_less(v, Isa::zero(), Isa::subtract(one, e)));
    return Isa::divide(numerator, Isa::add(one, e));
}

// gate / (1 + exp(-gate)) * up.
template <class Isa>
typename Isa::Floats silu_mul(typename Isa::Floats gate, typename Isa::Floats up) noexcept {
    return Isa::multiply(Isa::multiply(gate, sigmoid<Isa>(gate)), up);
}

template <class Isa>
typename Isa::Floats glu(const Glu& of, typename Isa::Floats gate, typename Isa::Floats up) noexcept {
    const auto limit = Isa::splat(of.limit), below = Isa::splat(-of.limit);
    // Of a NaN minimum and maximum give their second operand.
    const auto within = [&](typename Isa::Floats v) { return Isa::maximum(below, Isa::minimum(limit, v)); };
    switch (of.activation) {
        case Activation::kSilu:
            if (of.limit == 0) return silu_mul<Isa>(gate, up);
            return Isa::multiply(Isa::minimum(limit, Isa::multiply(gate, sigmoid<Isa>(gate))), within(up));
        case Activation::kGelu: {
            // (1 + tanh(z)) / 2 is the sigmoid of 2 z.
            constexpr float kTwoRoots = 1.5957691216057308f;  // 2 * sqrt(2 / pi)
            const auto cubic = Isa::fma(Isa::multiply(gate, gate), Isa::splat(0.044715f), Isa::splat(1.0f));
            const auto z = Isa::multiply(Isa::multiply(gate, Isa::splat(kTwoRoots)), cubic);
            return Isa::multiply(Isa::multiply(gate, sigmoid<Isa>(z)), up);
        }
        case Activation::kSwigluOai: {
            const auto g = Isa::minimum(limit, gate);
            const auto active = Isa::multiply(g, sigmoid<Isa>(Isa::multiply(Isa::splat(of.alpha), g)));
            return Isa::multiply(active, Isa::add(within(up), Isa::splat(1.0f)));
        }
    }
    return Isa::zero();
}

// to = function(a, b) over pieces of rows; function takes and gives vectors.
template <class Isa, class Function>
void run_pair(const tsr_node& node, const tsr_run& run, Function function) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    const View a = input(node, run, 0);
    const View b = input(node, run, 1);
    const View out = output(node, run);
    const bool broadcast = b.tensor->rank == 1 && b.tensor->range == TSR_RANGE_FIXED;
    // A tensor of rank 1 is one row, of which the range may be wanted.
    const bool one_row = a.tensor->rank == 1;
    const tsr_range actual = one_row ? sdk::actual_rows(*a.tensor, run) : tsr_range{0, static_cast<int32_t>(a.dim(0))};
    const int64_t n = actual.end - actual.begin;
    if (n <= 0) return;
    const RowList rows(*a.tensor, run);
    const int64_t pieces = (n + kPiece - 1) / kPiece;
    const Share part = share(rows.count() * pieces, run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t row = item / pieces;
        const int64_t begin = actual.begin + item % pieces * kPiece;
        const int64_t end = std::min<int64_t>(begin + kPiece, actual.end);
        const float* from = rows.floats(a, row);
        const float* other = broadcast ? b.floats(0) : rows.floats(b, row);
        float* to = rows.floats(out, row);
        int64_t i = begin;
        for (; i + kLanes <= end; i += kLanes) Isa::store(to + i, function(Isa::load(from + i), Isa::load(other + i)));
        if (i < end) {
            const int count = static_cast<int>(end - i);
            alignas(64) float last[kLanes];
            Isa::store(last, function(Isa::load_first(from + i, count), Isa::load_first(other + i, count)));
            std::copy_n(last, count, to + i);
        }
    }
}

template <class Isa>
void run_add(const tsr_node& node, const tsr_run& run) noexcept {
    run_pair<Isa>(node, run, [](auto a, auto b) { return Isa::add(a, b); });
}
template <class Isa>
void run_mul(const tsr_node& node, const tsr_run& run) noexcept {
    run_pair<Isa>(node, run, [](auto a, auto b) { return Isa::multiply(a, b); });
}
template <class Isa>
void run_silu_mul(const tsr_node& node, const tsr_run& run) noexcept {
    run_pair<Isa>(node, run, [](auto a, auto b) { return silu_mul<Isa>(a, b); });
}

template <class Isa>
void run_glu(const tsr_node& node, const tsr_run& run) noexcept {
    const Glu of(node);
    run_pair<Isa>(node, run, [&](auto gate, auto up) { return glu<Isa>(of, gate, up); });
}

template <class Isa>
void run_add_id(const tsr_node& node, const tsr_run& run) {
    constexpr int64_t kLanes = Isa::kLanes;
    const View x = input(node, run, 0);
    const View bias = input(node, run, 1);
    const View ids = input(node, run, 2);
    const View out = output(node, run);
    const int64_t n = x.dim(0), slots = x.dim(1);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const Share part = share(std::max(0, rows.end - rows.begin) * slots, run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t r = rows.begin + item / slots, slot = item % slots;
        const int32_t id = ids.integer(slot, r);
        if (id < -1 || id >= bias.dim(1)) {
            throw sdk::Failure(TSR_INVALID_ARGUMENT, std::string("add_id ") + (node.name ? node.name : "") +
                                                         ": expert " + std::to_string(id) + " of " +
                                                         std::to_string(bias.dim(1)));
        }
        const float* from = x.floats(slot, r);
        float* to = out.floats(slot, r);
        if (id < 0) {
            if (to != from) std::copy_n(from, n, to);
            continue;
        }
        const float* added = bias.floats(id);
        int64_t i = 0;
        for (; i + kLanes <= n; i += kLanes) Isa::store(to + i, Isa::add(Isa::load(from + i), Isa::load(added + i)));
        for (; i < n; ++i) to[i] = from[i] + added[i];
    }
}

// scale_by_position: what a row at this position is multiplied with.
inline double position_factor(const tsr_node& node, int64_t position) noexcept {
    const auto length = static_cast<double>(sdk::int_attribute(node, "length", 1));
    const auto at = static_cast<double>(position + sdk::int_attribute(node, "offset", 0));
    return 1 + sdk::float_attribute(node, "scale", 0) * std::log(std::floor(at / length) + 1);
}

template <class Isa>
void scale_row(const float* from, float* to, int64_t n, float scale) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    const auto factor = Isa::splat(scale);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) Isa::store(to + i, Isa::multiply(Isa::load(from + i), factor));
    for (; i < n; ++i) to[i] = from[i] * scale;
}

template <class Isa>
void run_scale(const tsr_node& node, const tsr_run& run) noexcept {
    const View x = input(node, run, 0);
    const View out = output(node, run);
    const auto factor = static_cast<float>(sdk::float_attribute(node, "factor", 1));
    const RowList rows(*x.tensor, run);
    const Share part = share(rows.count(), run);
    for (int64_t r = part.begin; r < part.end; ++r)
        scale_row<Isa>(rows.floats(x, r), rows.floats(out, r), x.dim(0), factor);
}

template <class Isa>
void run_scale_by_position(const tsr_node& node, const tsr_run& run) noexcept {
    const View x = input(node, run, 0);
    const View positions = input(node, run, 1);
    const View out = output(node, run);
    const RowList rows(*x.tensor, run);
    const tsr_range actual = sdk::actual_rows(*x.tensor, run);
    const int64_t inner = rows.count() / std::max(1, actual.end - actual.begin);
    const Share part = share(rows.count(), run);
    for (int64_t r = part.begin; r < part.end; ++r) {
        const auto scale = static_cast<float>(position_factor(node, positions.integer(actual.begin + r / inner)));
        scale_row<Isa>(rows.floats(x, r), rows.floats(out, r), x.dim(0), scale);
    }
}

template <class Isa>
void run_sigmoid_mul(const tsr_node& node, const tsr_run& run) noexcept {
    const View x = input(node, run, 0);
    const View gate = input(node, run, 1);
    const View out = output(node, run);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const int64_t heads = x.dim(1);
    const Share part = share(std::max(0, rows.end - rows.begin) * heads, run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t r = rows.begin + item / heads, h = item % heads;
        const auto factor = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(gate.floats(r)[h]))));
        scale_row<Isa>(x.floats(h, r), out.floats(h, r), x.dim(0), factor);
    }
}

template <class Isa>
void run_weighted_sum(const tsr_node& node, const tsr_run& run) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    const View x = input(node, run, 0);
    const View weights = input(node, run, 1);
    const View out = output(node, run);
    const int64_t n = x.dim(0), terms = x.dim(1);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const int64_t pieces = (n + kPiece - 1) / kPiece;
    const Share part = share(std::max(0, rows.end - rows.begin) * pieces, run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t r = rows.begin + item / pieces;
        const int64_t begin = item % pieces * kPiece, end = std::min(begin + kPiece, n);
        const float* w = weights.floats(r);
        float* to = out.floats(r);
        int64_t i = begin;
        for (; i + kLanes <= end; i += kLanes) {
            auto sum = Isa::zero();
            for (int64_t k = 0; k < terms; ++k)
                sum = Isa::fma(Isa::load(x.floats(k, r) + i), Isa::broadcast(w + k), sum);
            Isa::store(to + i, sum);
        }
        for (; i < end; ++i) {
            float sum = 0;
            for (int64_t k = 0; k < terms; ++k) sum = std::fma(x.floats(k, r)[i], w[k], sum);
            to[i] = sum;
        }
    }
}

}  // namespace tessera::cpu::elementwise
