// Makes the table of one integer format. Included by the sources that the build writes from the list of formats
// (kernels/x86/CMakeLists.txt), and by nothing else.
#pragma once

#include "packed.hpp"
#include "packed_any.hpp"
#include "packed_codebook.hpp"
#include "packed_few_bits.hpp"
#include "packed_levels.hpp"
#include "packed_super.hpp"
#include "packed_trellis.hpp"
#include "weight_kernels.hpp"

#include <tessera/cpu/isa/avx2.hpp>

#include <cstring>

namespace tessera::x86 {

template <class BlockType>
struct Instantiate {
    using Isa = cpu::isa::Avx2;
    using Block = BlockType;
    using Format = PackedWeight<Isa, Block>;
    using Unit = typename Format::Unit;
    using Scratch = RowsScratch<Isa, Format>;
    static constexpr int64_t kElements = 32 * Format::kBlocks;
    static constexpr int64_t kPrefix = cpu::kPrefixBytes<Block>;

    static_assert(Isa::kLanes == kLanes && sizeof(Unit) == kLanes * sizeof(Block));
    // Sums of unsigned copies of signed codes start at a value for this centre (isa/avx512.hpp).
    static_assert(!Format::kSigned || Format::kCentre == 8);

    static constexpr int64_t bytes_of_row(int64_t units) noexcept {
        return kPrefix + units * static_cast<int64_t>(sizeof(Block));
    }
    static void prepare(const ActivationRows& to, int64_t row, const float* x, int64_t begin, int64_t end) {
        quantize_into<Isa, Format::kDivision>(to, row, x, Format::kCentre, begin, end);
    }
    static void multiply(const PanelTable& panels, const WeightRows& weight, int64_t begin, int64_t end,
                         const ActivationRows& x, void* scratch, const Sink& sink) {
        multiply_rows<Isa, Format>(panels, weight, begin, end, x, static_cast<Scratch*>(scratch), sink);
    }
    static void pack(int64_t elements, int64_t groups, const void* rows, void* packed) {
        const int64_t units = elements / kElements, row_bytes = bytes_of_row(units);
        const WeightRows from{static_cast<const unsigned char*>(rows), row_bytes, groups * kLanes, false};
        auto* to = static_cast<unsigned char*>(packed);
        for (int64_t g = 0; g < groups; ++g) {
            for (int lane = 0; lane < kLanes; ++lane, to += kPrefix) {
                std::memcpy(to, from.data + (g * kLanes + lane) * row_bytes, kPrefix);
            }
            pack_units<Isa, Format>(from, g, 0, units, reinterpret_cast<Unit*>(to));
            to += units * static_cast<int64_t>(sizeof(Unit));
        }
    }
    static void unpack(int64_t elements, int64_t groups, const void* packed, void* rows) {
        const int64_t units = elements / kElements, row_bytes = bytes_of_row(units);
        const auto* from = static_cast<const unsigned char*>(packed);
        auto* to = static_cast<unsigned char*>(rows);
        for (int64_t g = 0; g < groups; ++g, to += kLanes * row_bytes) {
            for (int lane = 0; lane < kLanes; ++lane, from += kPrefix) {
                std::memcpy(to + lane * row_bytes, from, kPrefix);
            }
            for (int64_t u = 0; u < units; ++u, from += sizeof(Unit)) {
                Unit unit;
                std::memcpy(&unit, from, sizeof(Unit));
                for (int lane = 0; lane < kLanes; ++lane) {
                    Block block;
                    Format::unpack(unit, lane, block);
                    std::memcpy(to + lane * row_bytes + kPrefix + u * static_cast<int64_t>(sizeof(Block)), &block,
                                sizeof(Block));
                }
            }
        }
    }

    static constexpr WeightKernels table() {
        return {Format::kType,
                cpu::format_name(Format::kType),
                cpu::packed_layout_name(Format::kType),
                {Format::kDivision, Format::kCentre},
                static_cast<uint32_t>(kElements),
                sizeof(Scratch),
                kTakesTiles<PanelShapeOf<Format>>,
                prepare,
                multiply,
                pack,
                unpack};
    }
};

}  // namespace tessera::x86
