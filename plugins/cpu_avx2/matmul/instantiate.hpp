// Makes the table of one integer format. Included by the files that define tables, and by nothing else.
#pragma once

#include "weight_kernels.hpp"

#include <tessera/cpu/isa/avx2.hpp>
#include <tessera/cpu/matmul/packed_super.hpp>

#include <cstring>

namespace tessera::cpu_avx2 {

template <template <class> class Weight>
struct Instantiate {
    using Isa = cpu::isa::Avx2;
    using Format = Weight<Isa>;
    using Block = typename Format::Block;
    using Unit = typename Format::Unit;
    using Scratch = cpu::RowsScratch<Isa, Format>;
    static constexpr int64_t kElements = 32 * Format::kBlocks;

    static_assert(Isa::kLanes == kLanes && sizeof(Unit) == kLanes * sizeof(Block));

    static void prepare(const ActivationRows& to, int64_t row, const float* x, int64_t begin, int64_t end) {
        cpu::quantize_into<Isa, Format::kGroups>(to, row, x, Format::kCentre, begin, end);
    }
    static void multiply(const WeightRows& weight, int64_t begin, int64_t end, const ActivationRows& x, void* scratch,
                         const Sink& sink) {
        cpu::multiply_rows<Isa, Format>(weight, begin, end, x, static_cast<Scratch*>(scratch), sink);
    }
    static void pack(int64_t elements, int64_t groups, const void* rows, void* packed) {
        const int64_t units = elements / kElements;
        const WeightRows from{static_cast<const unsigned char*>(rows), units * static_cast<int64_t>(sizeof(Block)),
                              groups * kLanes, false};
        auto* to = static_cast<Unit*>(packed);
        for (int64_t g = 0; g < groups; ++g) cpu::pack_units<Isa, Format>(from, g, 0, units, to + g * units);
    }
    static void unpack(int64_t elements, int64_t groups, const void* packed, void* rows) {
        const int64_t units = elements / kElements;
        const auto* from = static_cast<const unsigned char*>(packed);
        auto* to = static_cast<unsigned char*>(rows);
        for (int64_t g = 0; g < groups; ++g) {
            for (int64_t u = 0; u < units; ++u, from += sizeof(Unit)) {
                Unit unit;
                std::memcpy(&unit, from, sizeof(Unit));
                for (int lane = 0; lane < kLanes; ++lane) {
                    Block block;
                    Format::unpack(unit, lane, block);
                    std::memcpy(to + ((g * kLanes + lane) * units + u) * sizeof(Block), &block, sizeof(Block));
                }
            }
        }
    }

    static constexpr WeightKernels table(const char* name, const char* layout, double macs) {
        return {Format::kType,
                name,
                layout,
                {Format::kGroups, Format::kCentre},
                static_cast<uint32_t>(kElements),
                sizeof(Scratch),
                macs,
                prepare,
                multiply,
                pack,
                unpack};
    }
};

}  // namespace tessera::cpu_avx2
