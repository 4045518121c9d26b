// matmul and matmul_id. Weights are decoded in strips on the stack; sums are kept in double.
#include "plain.hpp"
#include "sums.hpp"

#include <string>

namespace tessera::plain {

using namespace cpu;

namespace {

// out[r] of `count` rows: the dot product of x's row r with one weight row of k elements.
void row_products(tsr_type type, const char* weight_row, int64_t k, const float* const* x, int64_t count,
                  double* out) noexcept {
    float strip[kStrip];
    std::fill_n(out, count, 0.0);
    for (int64_t first = 0; first < k; first += kStrip) {
        const int64_t n = std::min(kStrip, k - first);
        decode_elements(type, weight_row, first, n, strip);
        for (int64_t r = 0; r < count; ++r) out[r] += dot(strip, x[r] + first, n);
    }
}

// Outputs first .. first + n (at most kStrip) of `count` rows: weight rows are along k, outputs along their elements.
void column_products(const View& weight, int64_t batch, int64_t first, int64_t n, const float* const* x, int64_t count,
                     float* const* out) noexcept {
    double sums[kRowsAtOnce][kStrip];
    float strip[kStrip];
    for (int64_t r = 0; r < count; ++r) std::fill_n(sums[r], n, 0.0);
    for (int64_t i = 0; i < weight.dim(1); ++i) {
        decode_elements(weight.tensor->type, weight.row(i, batch), first, n, strip);
        for (int64_t r = 0; r < count; ++r) {
            const double factor = x[r][i];
            for (int64_t j = 0; j < n; ++j) sums[r][j] += factor * static_cast<double>(strip[j]);
        }
    }
    for (int64_t r = 0; r < count; ++r) {
        for (int64_t j = 0; j < n; ++j) out[r][first + j] = static_cast<float>(sums[r][j]);
    }
}

// Row r of a tensor [n, R] or [n, B, R].
float* matmul_row(const View& view, int64_t batch, int64_t r) noexcept {
    return view.tensor->rank == 3 ? view.floats(batch, r) : view.floats(r);
}

}  // namespace

void run_matmul(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View weight = input(node, run, 1);
    const View out = output(node, run);
    const bool transposed = matmul_transposed(node);
    const int64_t n = out.dim(0);
    const int64_t batches = x.tensor->rank == 3 ? x.dim(1) : 1;
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const int64_t step = transposed ? kStrip : 1;  // outputs of one item
    const int64_t items_a_batch = (n + step - 1) / step;
    const Share part = share(items_a_batch * batches, run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t batch = item / items_a_batch;
        const int64_t first = item % items_a_batch * step;
        for (int64_t begin = rows.begin; begin < rows.end; begin += kRowsAtOnce) {
            const int64_t count = std::min<int64_t>(kRowsAtOnce, rows.end - begin);
            const float* from[kRowsAtOnce];
            float* to[kRowsAtOnce];
            for (int64_t r = 0; r < count; ++r) {
                from[r] = matmul_row(x, batch, begin + r);
                to[r] = matmul_row(out, batch, begin + r);
            }
            if (transposed) {
                column_products(weight, batch, first, std::min(kStrip, n - first), from, count, to);
            } else {
                double sums[kRowsAtOnce];
                row_products(weight.tensor->type, weight.row(first, batch), x.dim(0), from, count, sums);
                for (int64_t r = 0; r < count; ++r) to[r][first] = static_cast<float>(sums[r]);
            }
        }
    }
}

void run_matmul_id(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View weight = input(node, run, 1);
    const View ids = input(node, run, 2);
    const View out = output(node, run);
    const int64_t used = ids.dim(0);
    const int64_t experts = weight.dim(2);
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const Share part = share(out.dim(0), run);
    if (part.begin == part.end) return;

    const auto from = [&](int64_t slot, int64_t r) { return x.tensor->rank == 3 ? x.floats(slot, r) : x.floats(r); };
    const float* sources[kRowsAtOnce];
    float* targets[kRowsAtOnce];
    double sums[kRowsAtOnce];
    for (int64_t expert = -1; expert < experts; ++expert) {
        int64_t count = 0;
        const auto flush = [&] {
            for (int64_t o = part.begin; o < part.end && count > 0; ++o) {
                row_products(weight.tensor->type, weight.row(o, expert), x.dim(0), sources, count, sums);
                for (int64_t i = 0; i < count; ++i) targets[i][o] = static_cast<float>(sums[i]);
            }
            count = 0;
        };
        for (int64_t r = rows.begin; r < rows.end; ++r) {
            for (int64_t slot = 0; slot < used; ++slot) {
                const int32_t id = ids.integer(slot, r);
                if (id < -1 || id >= experts) {
                    throw sdk::Failure(TSR_INVALID_ARGUMENT, std::string("matmul_id ") + (node.name ? node.name : "") +
                                                                 ": expert " + std::to_string(id) + " of " +
                                                                 std::to_string(experts));
                }
                if (id != expert) continue;
                float* to = out.floats(slot, r);
                if (id == -1) {
                    std::fill(to + part.begin, to + part.end, 0.0f);
                    continue;
                }
                sources[count] = from(slot, r);
                targets[count] = to;
                if (++count == kRowsAtOnce) flush();
            }
        }
        flush();
    }
}

}  // namespace tessera::plain
