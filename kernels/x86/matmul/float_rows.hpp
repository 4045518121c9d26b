// Weights of f32, f16 and bf16 times rows of f32, and weights of any format read along their columns: float arithmetic.
//
// A group of kLanes outputs is stored element by element: kLanes neighbouring outputs' weights for element 0, for
// element 1 and so on. Each output is one chain of fused multiply-adds over the elements in order, in every kernel, so
// it does not depend on how many rows there are; several groups and rows at a time keep the adders busy.
//
// Isa is the policy of products with a panel; Isa::Rows that of code that reads groups of packed rows in place.
#pragma once

#include "../kit.hpp"
#include "rows.hpp"

#include <tessera/cpu/formats.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tessera::x86 {

inline constexpr int kFloatTileRows = 6;  // with two groups: twelve chains, where two adders of latency four need eight
inline constexpr int kFloatBatchRows = 48;  // of 2048 elements: 384 KiB, which stays in the second-level cache
static_assert(kFloatBatchRows % kFloatTileRows == 0);
template <class Isa>
inline constexpr int kPanelLanes = Isa::kPanelGroups* Isa::kGroupLanes;
template <class Isa>
inline constexpr int kFloatPanelElements = 4096 / kPanelLanes<Isa>;  // 16 KiB of first-level cache

// One of the plain float formats; kLanes elements at a time.
template <class Isa, tsr_type kPlainType>
struct WeightPlain {
    static constexpr tsr_type kType = kPlainType;
    using Element = std::conditional_t<kPlainType == TSR_TYPE_F32, float, uint16_t>;
    static typename Isa::Floats load(const Element* p) noexcept {
        if constexpr (kPlainType == TSR_TYPE_F32)
            return Isa::load_floats(p);
        else if constexpr (kPlainType == TSR_TYPE_F16)
            return Isa::from_f16(p);
        else
            return Isa::from_bf16(p);
    }
};

// Calls f.template operator()<1 .. kFloatTileRows>() for the width of a tile.
template <class F>
inline void with_float_width(int64_t width, F&& f) {
    switch (width) {
        case 5:
            f.template operator()<5>();
            break;
        case 6:
            f.template operator()<6>();
            break;
        default:
            with_width(width, f);
            break;
    }
}

// Rows of activations: tiles of up to kFloatTileRows rows, [element][row] in each. `data` of ActivationRows holds
// floats.
inline float* float_tile(const ActivationRows& x, int64_t first_row) noexcept {
    return reinterpret_cast<float*>(x.data) + first_row * x.elements;
}

// Copies elements [begin, end) of row `row`; x are those elements.
inline void place_float_row(const ActivationRows& to, int64_t row, const float* x, int64_t begin,
                            int64_t end) noexcept {
    const int64_t first = row / kFloatTileRows * kFloatTileRows;
    const int64_t width = std::min<int64_t>(kFloatTileRows, to.rows - first);
    float* tile = float_tile(to, first) + (row - first);
    for (int64_t i = begin; i < end; ++i) tile[i * width] = x[i - begin];
}

template <class Isa>
struct alignas(64) FloatScratch {
    float panel[kFloatPanelElements<Isa>][kPanelLanes<Isa>];
    float sums[kFloatBatchRows][kPanelLanes<Isa>];
};

// sums[row][lane] += panel . tile over `elements` elements, for the first kVectors vectors of lanes.
template <class Isa, int kRows, int kVectors>
inline void multiply_float_panel(const float (*panel)[kPanelLanes<Isa>], int64_t elements, const float* tile,
                                 float (*sums)[kPanelLanes<Isa>]) noexcept {
    typename Isa::Floats running[kRows][kVectors];
    for (int row = 0; row < kRows; ++row) {
        for (int v = 0; v < kVectors; ++v) running[row][v] = Isa::load_floats(sums[row] + v * Isa::kLanes);
    }
    for (int64_t i = 0; i < elements; ++i, tile += kRows) {
        typename Isa::Floats weights[kVectors];
        for (int v = 0; v < kVectors; ++v) weights[v] = Isa::load_floats(panel[i] + v * Isa::kLanes);
        for (int row = 0; row < kRows; ++row) {
            const auto value = Isa::broadcast(tile + row);
            for (int v = 0; v < kVectors; ++v) running[row][v] = Isa::fma(weights[v], value, running[row][v]);
        }
    }
    for (int row = 0; row < kRows; ++row) {
        for (int v = 0; v < kVectors; ++v) Isa::store_floats(sums[row] + v * Isa::kLanes, running[row][v]);
    }
}

// All rows of a batch multiplied with one panel of `elements` elements from `first_element` on.
template <class Isa>
inline void multiply_float_rows_of_panel(FloatScratch<Isa>* scratch, int used, int64_t first_element, int64_t elements,
                                         const ActivationRows& x, int64_t first_row, int64_t rows) noexcept {
    static_assert(kPanelLanes<Isa> == 2 * Isa::kLanes);
    for (int64_t row = 0; row < rows; row += kFloatTileRows) {
        with_float_width(std::min<int64_t>(kFloatTileRows, rows - row), [&]<int kRows>() {
            const float* tile = float_tile(x, first_row + row) + first_element * kRows;
            const auto multiply = used * Isa::kGroupLanes > Isa::kLanes ? multiply_float_panel<Isa, kRows, 2>
                                                                        : multiply_float_panel<Isa, kRows, 1>;
            multiply(scratch->panel, elements, tile, scratch->sums + row);
        });
    }
}

// One tile of rows, packed weight: kGroups groups at a time straight from memory.
template <class Isa, class Plain, int kRows, int kGroups>
inline void float_gemv(const typename Plain::Element* weight, int64_t elements, const float* tile,
                       float (*sums)[kRows][Isa::kLanes]) noexcept {
    constexpr int64_t kLine = 64 / (Isa::kLanes * sizeof(typename Plain::Element));  // elements of a cache line
    typename Isa::Floats running[kGroups][kRows];
    for (auto& group : running) {
        for (auto& r : group) r = Isa::zero_floats();
    }
    const int64_t stride = elements * Isa::kLanes;
    for (int64_t i = 0; i < elements; ++i, tile += kRows, weight += Isa::kLanes) {
        if (i % kLine == 0) {
            for (int g = 0; g < kGroups; ++g) Isa::prefetch(weight + g * stride + 16 * kLine * Isa::kLanes);
        }
        for (int g = 0; g < kGroups; ++g) {
            const auto w = Plain::load(weight + g * stride);
            for (int row = 0; row < kRows; ++row)
                running[g][row] = Isa::fma(w, Isa::broadcast(tile + row), running[g][row]);
        }
    }
    for (int g = 0; g < kGroups; ++g) {
        for (int row = 0; row < kRows; ++row) Isa::store_floats(sums[g][row], running[g][row]);
    }
}

// As multiply_rows of rows.hpp, for plain weights. Plain: a WeightPlain of Isa::Rows.
template <class Isa, class Plain, class Emit>
inline void multiply_plain_rows(const WeightRows& weight, int64_t begin, int64_t end, const ActivationRows& x,
                                FloatScratch<Isa>* scratch, Emit&& emit) noexcept {
    using Rows = typename Isa::Rows;
    using Element = typename Plain::Element;
    constexpr int kGroupLanes = Rows::kLanes;
    const int64_t elements = x.elements;
    if (weight.packed && x.rows <= kFloatTileRows) {
        with_float_width(x.rows, [&]<int kRows>() {
            const auto some = [&]<int kGroups>(int64_t g) {
                alignas(64) float sums[kGroups][kRows][kGroupLanes];
                const auto* at = weight.data + g * kGroupLanes * weight.row_bytes;
                float_gemv<Rows, Plain, kRows, kGroups>(reinterpret_cast<const Element*>(at), elements,
                                                        float_tile(x, 0), sums);
                for (int i = 0; i < kGroups; ++i) {
                    for (int row = 0; row < kRows; ++row) emit(row, g + i, sums[i][row]);
                }
            };
            int64_t g = begin;
            constexpr int kAtOnce = kRows <= 2 ? 4 : 2;
            for (; g + kAtOnce <= end; g += kAtOnce) some.template operator()<kAtOnce>(g);
            for (; g < end; ++g) some.template operator()<1>(g);
        });
        return;
    }
    for (int64_t first = 0; first < x.rows; first += kFloatBatchRows) {
        const int64_t rows = std::min<int64_t>(kFloatBatchRows, x.rows - first);
        for (int64_t g = begin; g < end; g += Isa::kPanelGroups) {
            const int used = static_cast<int>(std::min<int64_t>(Isa::kPanelGroups, end - g));
            std::fill_n(scratch->sums[0], rows * kPanelLanes<Isa>, 0.0f);
            for (int64_t e = 0; e < elements; e += kFloatPanelElements<Isa>) {
                const int64_t count = std::min<int64_t>(kFloatPanelElements<Isa>, elements - e);
                for (int i = 0; i < used; ++i) {
                    if (weight.packed) {
                        const auto* at =
                            reinterpret_cast<const Element*>(weight.data + (g + i) * kGroupLanes * weight.row_bytes);
                        for (int64_t j = 0; j < count; ++j) {
                            Rows::store_floats(scratch->panel[j] + i * kGroupLanes,
                                               Plain::load(at + (e + j) * kGroupLanes));
                        }
                    } else {
                        for (int lane = 0; lane < kGroupLanes; ++lane) {
                            const int64_t row = std::min<int64_t>((g + i) * kGroupLanes + lane, weight.rows - 1);
                            alignas(64) float values[kFloatPanelElements<Isa>];
                            const auto* from =
                                reinterpret_cast<const Element*>(weight.data + row * weight.row_bytes) + e;
                            int64_t j = 0;
                            for (; j + kGroupLanes <= count; j += kGroupLanes) {
                                Rows::store_floats(values + j, Plain::load(from + j));
                            }
                            decode_row(Plain::kType, from + j, static_cast<size_t>(count - j), values + j);
                            for (j = 0; j < count; ++j) scratch->panel[j][i * kGroupLanes + lane] = values[j];
                        }
                    }
                }
                multiply_float_rows_of_panel<Isa>(scratch, used, e, count, x, first, rows);
            }
            for (int64_t row = 0; row < rows; ++row) {
                for (int i = 0; i < used; ++i) emit(first + row, g + i, scratch->sums[row] + i * kGroupLanes);
            }
        }
    }
}

// Columns of a canonical weight of any format: outputs are its elements, `outputs` of them, and its rows are what is
// summed over. Panels of two groups of outputs; a row is decoded kColumnElements at a time, whole blocks of every
// format.
inline constexpr int kColumnElements = 256;

template <class Isa>
struct alignas(64) ColumnScratch {
    FloatScratch<Isa> one;
    float decoded[kFloatPanelElements<Isa>][kColumnElements];
};

// Spans [begin, end) of kColumnElements outputs each. weight.rows is what is summed over (x.elements). As multiply_rows
// otherwise.
template <class Isa, class Emit>
inline void multiply_columns(tsr_type type, const WeightRows& weight, int64_t outputs, int64_t begin, int64_t end,
                             const ActivationRows& x, ColumnScratch<Isa>* scratch, Emit&& emit) noexcept {
    constexpr int kStep = kPanelLanes<Isa>, kElements = kFloatPanelElements<Isa>, kGroupLanes = Isa::kGroupLanes;
    for (int64_t first = 0; first < x.rows; first += kFloatBatchRows) {
        const int64_t rows = std::min<int64_t>(kFloatBatchRows, x.rows - first);
        for (int64_t span = begin; span < end; ++span) {
            const int64_t from = span * kColumnElements;
            const int64_t wide = std::min<int64_t>(kColumnElements, outputs - from);
            // Rows past one panel are few in practice (heads have 128): decode a panel's rows for the whole span, and
            // again for each pair of groups only what does not fit.
            for (int64_t at = 0; at < wide; at += kStep) {
                std::fill_n(scratch->one.sums[0], rows * kStep, 0.0f);
                for (int64_t e = 0; e < weight.rows; e += kElements) {
                    const int64_t count = std::min<int64_t>(kElements, weight.rows - e);
                    if (at == 0 || weight.rows > kElements) {
                        for (int64_t j = 0; j < count; ++j) {
                            decode_part(type, weight.data + (e + j) * weight.row_bytes, static_cast<size_t>(from),
                                        static_cast<size_t>(wide), scratch->decoded[j]);
                        }
                    }
                    const int64_t here = std::min<int64_t>(kStep, wide - at);
                    for (int64_t j = 0; j < count; ++j) {
                        float* to = scratch->one.panel[j];
                        std::memcpy(to, scratch->decoded[j] + at, static_cast<size_t>(here) * sizeof(float));
                        std::fill(to + here, to + kStep, 0.0f);
                    }
                    multiply_float_rows_of_panel<Isa>(&scratch->one, Isa::kPanelGroups, e, count, x, first, rows);
                }
                for (int64_t row = 0; row < rows; ++row) {
                    for (int i = 0; i < Isa::kPanelGroups && at + i * kGroupLanes < wide; ++i) {
                        emit(first + row, (from + at) / kGroupLanes + i, scratch->one.sums[row] + i * kGroupLanes);
                    }
                }
            }
        }
    }
}

}  // namespace tessera::x86
