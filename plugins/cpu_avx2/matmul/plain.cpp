// The float formats, and any format along its columns.
#include "weight_kernels.hpp"

#include <tessera/cpu/isa/avx2.hpp>
#include <tessera/cpu/matmul/float_rows.hpp>

#include <algorithm>
#include <cstring>

namespace tessera::cpu_avx2 {

namespace {

using Isa = cpu::isa::Avx2;

// Multiply-adds a second of one worker.
constexpr double kMacs = 40e9;

void prepare_floats(const ActivationRows& to, int64_t row, const float* x, int64_t begin, int64_t end) {
    cpu::place_float_row(to, row, x, begin * kPrepareStep, std::min(end * kPrepareStep, to.elements));
}

template <tsr_type kType>
struct Plain {
    using Weight = cpu::WeightPlain<Isa, kType>;
    using Element = typename Weight::Element;

    static void multiply(const WeightRows& weight, int64_t begin, int64_t end, const ActivationRows& x, void* scratch,
                         const Sink& sink) {
        cpu::multiply_plain_rows<Isa, Weight>(weight, begin, end, x, static_cast<cpu::FloatScratch<Isa>*>(scratch),
                                              sink);
    }
    template <bool kPack>
    static void turn(int64_t elements, int64_t groups, const void* from, void* to) {
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
    static constexpr WeightKernels table(const char* name, const char* layout) {
        return {kType, name,           layout,   {0, 0},     1,          sizeof(cpu::FloatScratch<Isa>),
                kMacs, prepare_floats, multiply, turn<true>, turn<false>};
    }
};

void multiply_columns(tsr_type type, const WeightRows& weight, int64_t outputs, int64_t begin, int64_t end,
                      const ActivationRows& x, void* scratch, const Sink& sink) {
    cpu::multiply_columns<Isa>(type, weight, outputs, begin, end, x, static_cast<cpu::ColumnScratch<Isa>*>(scratch),
                               sink);
}

}  // namespace

const WeightKernels kF32 = Plain<TSR_TYPE_F32>::table("f32", "f32_x8");
const WeightKernels kF16 = Plain<TSR_TYPE_F16>::table("f16", "f16_x8");
const WeightKernels kBf16 = Plain<TSR_TYPE_BF16>::table("bf16", "bf16_x8");

const ColumnKernels& column_kernels() noexcept {
    static constexpr ColumnKernels kColumns = {
        {0, 0}, sizeof(cpu::ColumnScratch<Isa>), kMacs / 4, prepare_floats, multiply_columns};
    return kColumns;
}

}  // namespace tessera::cpu_avx2
