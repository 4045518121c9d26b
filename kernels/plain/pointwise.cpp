// Ops that work on one row at a time: get_rows, rms_norm, add, mul, silu_mul, glu, add_id, weighted_sum, rope, scale,
// scale_by_position, sigmoid_mul, hadamard.
#include "plain.hpp"
#include "sums.hpp"

#include <tessera/cpu/glu.hpp>
#include <tessera/cpu/hadamard.hpp>

#include <cmath>
#include <numbers>
#include <string>

namespace tessera::plain {

using namespace cpu;

void run_get_rows(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View table = input(node, run, 0);
    const View ids = input(node, run, 1);
    const View out = output(node, run);
    const tsr_range rows = sdk::actual_rows(*ids.tensor, run);
    const Share part = share(rows.end - rows.begin, run);
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        const int32_t id = ids.integer(r);
        if (id < 0 || id >= table.dim(1)) {
            throw sdk::Failure(TSR_INVALID_ARGUMENT, std::string("get_rows ") + (node.name ? node.name : "") +
                                                         ": row " + std::to_string(id) + " of a table of " +
                                                         std::to_string(table.dim(1)));
        }
        decode_elements(table.tensor->type, table.row(id), 0, table.dim(0), out.floats(r));
    }
}

void run_rms_norm(const tsr_node& node, uint32_t, const tsr_run& run) {
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
        const double scale = 1 / std::sqrt(dot(from, from, n) / static_cast<double>(n) + epsilon);
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] * scale * weight[i]);
    }
}

template <class Function>
void for_each_pair(const tsr_node& node, const tsr_run& run, Function function) {
    const View a = input(node, run, 0);
    const View b = input(node, run, 1);
    const View out = output(node, run);
    const bool broadcast = b.tensor->rank == 1 && b.tensor->range == TSR_RANGE_FIXED;
    const int64_t n = a.dim(0);
    // A tensor of rank 1 that is not broadcast is a single row, of which a range may be wanted.
    if (a.tensor->rank == 1) {
        const tsr_range actual = sdk::actual_rows(*a.tensor, run);
        const Share part = share(actual.end - actual.begin, run);
        const float *from = a.floats(0), *other = b.floats(0);
        float* to = out.floats(0);
        for (int64_t i = actual.begin + part.begin; i < actual.begin + part.end; ++i)
            to[i] = function(from[i], other[i]);
        return;
    }
    const RowList rows(*a.tensor, run);
    const Share part = share(rows.count(), run);
    for (int64_t r = part.begin; r < part.end; ++r) {
        const float* from = rows.floats(a, r);
        const float* other = broadcast ? b.floats(0) : rows.floats(b, r);
        float* to = rows.floats(out, r);
        for (int64_t i = 0; i < n; ++i) to[i] = function(from[i], other[i]);
    }
}

void run_add(const tsr_node& node, uint32_t, const tsr_run& run) {
    for_each_pair(node, run, [](float a, float b) { return a + b; });
}
void run_mul(const tsr_node& node, uint32_t, const tsr_run& run) {
    for_each_pair(node, run, [](float a, float b) { return a * b; });
}
void run_silu_mul(const tsr_node& node, uint32_t, const tsr_run& run) {
    for_each_pair(node, run, [](float gate, float up) {
        return static_cast<float>(gate / (1 + std::exp(-static_cast<double>(gate))) * up);
    });
}

double sigmoid(double v) {
    return 1 / (1 + std::exp(-v));
}

// NaN stays what it is: std::clamp gives it back.
double glu(const Glu& of, double gate, double up) {
    const double limit = of.limit > 0 ? of.limit : HUGE_VAL;
    switch (of.activation) {
        case Activation::kSilu:
            return std::clamp(gate * sigmoid(gate), -HUGE_VAL, limit) * std::clamp(up, -limit, limit);
        case Activation::kGelu:
            return gate / 2 *
                   (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate))) * up;
        case Activation::kSwigluOai: {
            const double g = std::clamp(gate, -HUGE_VAL, limit);
            return g * sigmoid(of.alpha * g) * (std::clamp(up, -limit, limit) + 1);
        }
    }
    return 0;
}

void run_glu(const tsr_node& node, uint32_t, const tsr_run& run) {
    const Glu of(node);
    for_each_pair(node, run, [&](float gate, float up) { return static_cast<float>(glu(of, gate, up)); });
}

void run_add_id(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View bias = input(node, run, 1);
    const View ids = input(node, run, 2);
    const View out = output(node, run);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const Share part = share(rows.end - rows.begin, run);
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        for (int64_t slot = 0; slot < x.dim(1); ++slot) {
            const int32_t id = ids.integer(slot, r);
            if (id < -1 || id >= bias.dim(1)) {
                throw sdk::Failure(TSR_INVALID_ARGUMENT, std::string("add_id ") + (node.name ? node.name : "") +
                                                             ": expert " + std::to_string(id) + " of " +
                                                             std::to_string(bias.dim(1)));
            }
            const float* from = x.floats(slot, r);
            float* to = out.floats(slot, r);
            for (int64_t i = 0; i < x.dim(0); ++i) to[i] = id < 0 ? from[i] : from[i] + bias.floats(id)[i];
        }
    }
}

void run_weighted_sum(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View weights = input(node, run, 1);
    const View out = output(node, run);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const Share part = share(rows.end - rows.begin, run);
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        const float* w = weights.floats(r);
        float* to = out.floats(r);
        for (int64_t i = 0; i < x.dim(0); ++i) {
            double sum = 0;
            for (int64_t slot = 0; slot < x.dim(1); ++slot) sum += static_cast<double>(w[slot]) * x.floats(slot, r)[i];
            to[i] = static_cast<float>(sum);
        }
    }
}

// The rotation of pair i of a head of d elements, as ops.h defines it.
class Rotation {
  public:
    Rotation(const tsr_node& node, int64_t d) noexcept
        : d_(static_cast<double>(d)),
          base_(sdk::float_attribute(node, "base", 10000)),
          freq_scale_(sdk::float_attribute(node, "freq_scale", 1)),
          ext_factor_(sdk::float_attribute(node, "ext_factor", 0)),
          attn_factor_(sdk::float_attribute(node, "attn_factor", 1)) {
        if (ext_factor_ == 0) return;
        const double context = static_cast<double>(sdk::int_attribute(node, "original_context", 0));
        const auto correction = [&](double beta) {
            return d_ * std::log(context / (beta * 2 * std::numbers::pi)) / (2 * std::log(base_));
        };
        if (sdk::find_attribute(node, "ramp_low")) {
            low_ = sdk::float_attribute(node, "ramp_low", 0);
            high_ = sdk::float_attribute(node, "ramp_high", 0);
            return;
        }
        low_ = std::max(0.0, std::floor(correction(sdk::float_attribute(node, "beta_fast", 32))));
        high_ = std::min(d_ - 1, std::ceil(correction(sdk::float_attribute(node, "beta_slow", 1))));
    }
    double frequency(int64_t i, double factor) const noexcept {
        const double plain = std::pow(base_, -2 * static_cast<double>(i) / d_) / factor;
        if (ext_factor_ == 0) return plain * freq_scale_;
        const double ramp = 1 - std::clamp((static_cast<double>(i) - low_) / std::max(0.001, high_ - low_), 0.0, 1.0);
        const double mix = ramp * ext_factor_;
        return plain * (freq_scale_ * (1 - mix) + mix);
    }
    double magnitude() const noexcept { return attn_factor_; }

  private:
    double d_, base_, freq_scale_, ext_factor_, attn_factor_;
    double low_ = 0, high_ = 0;
};

void run_rope(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View positions = input(node, run, 1);
    const View out = output(node, run);
    const float* factors = sdk::has_input(node, 2) ? input(node, run, 2).floats(0) : nullptr;
    const int64_t d = x.dim(0);
    const bool neox = sdk::string_attribute(node, "mode", "") == "neox";
    const Rotation rotation(node, d);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const Share part = share(rows.end - rows.begin, run);
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        const double position = positions.integer(r);
        for (int64_t i = 0; i < d / 2; ++i) {
            const double angle = position * rotation.frequency(i, factors ? factors[i] : 1);
            const double cosine = std::cos(angle) * rotation.magnitude();
            const double sine = std::sin(angle) * rotation.magnitude();
            const int64_t first = neox ? i : 2 * i;
            const int64_t second = neox ? i + d / 2 : 2 * i + 1;
            for (int64_t h = 0; h < x.dim(1); ++h) {
                const float* from = x.floats(h, r);
                float* to = out.floats(h, r);
                const double a = from[first], b = from[second];
                to[first] = static_cast<float>(a * cosine - b * sine);
                to[second] = static_cast<float>(a * sine + b * cosine);
            }
        }
    }
}

void run_scale_by_position(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View positions = input(node, run, 1);
    const View out = output(node, run);
    const RowList rows(*x.tensor, run);
    const tsr_range actual = sdk::actual_rows(*x.tensor, run);
    const int64_t inner = rows.count() / std::max(1, actual.end - actual.begin);
    const double length = static_cast<double>(sdk::int_attribute(node, "length", 1));
    const double offset = static_cast<double>(sdk::int_attribute(node, "offset", 0));
    const double scale = sdk::float_attribute(node, "scale", 0);
    const Share part = share(rows.count(), run);
    for (int64_t r = part.begin; r < part.end; ++r) {
        const double position = positions.integer(actual.begin + r / inner);
        const double factor = 1 + scale * std::log(std::floor((position + offset) / length) + 1);
        const float* from = rows.floats(x, r);
        float* to = rows.floats(out, r);
        for (int64_t i = 0; i < x.dim(0); ++i) to[i] = static_cast<float>(from[i] * factor);
    }
}

void run_scale(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View out = output(node, run);
    const RowList rows(*x.tensor, run);
    const double factor = sdk::float_attribute(node, "factor", 1);
    const Share part = share(rows.count(), run);
    for (int64_t r = part.begin; r < part.end; ++r) {
        const float* from = rows.floats(x, r);
        float* to = rows.floats(out, r);
        for (int64_t i = 0; i < x.dim(0); ++i) to[i] = static_cast<float>(from[i] * factor);
    }
}

void run_sigmoid_mul(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View gate = input(node, run, 1);
    const View out = output(node, run);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const Share part = share(rows.end - rows.begin, run);
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        for (int64_t h = 0; h < x.dim(1); ++h) {
            const double factor = sigmoid(gate.floats(r)[h]);
            const float* from = x.floats(h, r);
            float* to = out.floats(h, r);
            for (int64_t i = 0; i < x.dim(0); ++i) to[i] = static_cast<float>(from[i] * factor);
        }
    }
}

void run_hadamard(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View out = output(node, run);
    const RowList rows(*x.tensor, run);
    const Share part = share(rows.count(), run);
    for (int64_t r = part.begin; r < part.end; ++r) {
        float* to = rows.floats(out, r);
        if (const float* from = rows.floats(x, r); from != to) std::copy_n(from, x.dim(0), to);
        hadamard(to, x.dim(0));
    }
}

}  // namespace tessera::plain
