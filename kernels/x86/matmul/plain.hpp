// The float formats, and any format along its columns, over the ISA policy of a plugin. Included by the one file of a
// plugin that defines them.
#pragma once

#include "float_rows.hpp"
#include "weight_kernels.hpp"

#include <algorithm>
#include <cstring>

namespace tessera::x86 {

inline void prepare_floats(const ActivationRows& to, int64_t row, const float* x, int64_t begin, int64_t end) {
    place_float_row(to, row, x, begin * kPrepareStep, std::min(end * kPrepareStep, to.elements));
}

template <class Isa, tsr_type kType>
struct Plain {
    using Weight = WeightPlain<typename Isa::Rows, kType>;
    using Element = typename Weight::Element;

    static void multiply(const PanelTable&, const WeightRows& weight, int64_t begin, int64_t end,
                         const ActivationRows& x, void* scratch, const Sink& sink) {
        multiply_plain_rows<Isa, Weight>(weight, begin, end, x, static_cast<FloatScratch<Isa>*>(scratch), sink);
    }
    template <bool kPack>
    static void transpose(int64_t elements, int64_t groups, const void* from, void* to) {
        const auto* in = static_cast<const unsigned char*>(from);
        auto* out = static_cast<unsigned char*>(to);
        for (int64_t g = 0; g < groups; ++g) {
            for (int64_t lane = 0; lane < kLanes; ++lane) {
                for (int64_t i = 0; i < elements; ++i) {
                    const int64_t canonical =
                        ((g * kLanes + lane) * elements + i) * static_cast<int64_t>(sizeof(Element));
                    const int64_t packed = ((g * elements + i) * kLanes + lane) * static_cast<int64_t>(sizeof(Element));
                    std::memcpy(out + (kPack ? packed : canonical), in + (kPack ? canonical : packed), sizeof(Element));
                }
            }
        }
    }
    static constexpr WeightKernels table() {
        return {kType,
                cpu::format_name(kType),
                cpu::packed_layout_name(kType),
                {},
                1,
                sizeof(FloatScratch<Isa>),
                false,
                prepare_floats,
                multiply,
                transpose<true>,
                transpose<false>};
    }
};

template <class Isa>
void columns_product(tsr_type type, const WeightRows& weight, int64_t outputs, int64_t begin, int64_t end,
                     const ActivationRows& x, void* scratch, const Sink& sink) {
    multiply_columns<Isa>(type, weight, outputs, begin, end, x, static_cast<ColumnScratch<Isa>*>(scratch), sink);
}

template <class Isa>
constexpr ColumnKernels column_table() noexcept {
    return {{}, sizeof(ColumnScratch<Isa>), prepare_floats, columns_product<Isa>};
}

}  // namespace tessera::x86
