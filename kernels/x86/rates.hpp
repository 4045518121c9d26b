// What kernels of this folder do on one core, by kind of processor, for estimates. A rate is what was measured, not
// what makes the planner choose well: what that needs belongs into the cost of a node.
#pragma once

#include <tessera/types.h>

#include <cstdint>

namespace tessera::x86 {

// kAvx2BesideAmx: vectors of 256 bits with VNNI on a processor that has AMX, and so wider ones.
enum class Processor : uint8_t { kAvx2, kAvx2Vnni, kAvx2BesideAmx, kAvx512, kAvx512Vnni, kAmx };

// Multiply-adds a second of one core at Estimate::kReferenceHz.
struct Macs {
    double few_rows;   // of at most kVectorRows
    double many_rows;  // of more, but for decoding
};

// Of products with weights of a type. Any thread, as all here.
Macs product_rates(Processor processor, tsr_type weights) noexcept;
// Of products along the columns of a weight.
Macs column_rates(Processor processor) noexcept;

// Of attention.
struct AttentionRates {
    double floats, int16, bytes;
};
AttentionRates attention_rates(Processor processor) noexcept;

// Of the other ops: operations a second, and bytes that are written to a cache.
inline constexpr double kElementwiseRate = 4e9;
inline constexpr double kCacheWriteBytes = 8e9;

}  // namespace tessera::x86
