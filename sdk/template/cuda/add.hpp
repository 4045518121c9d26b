// What the host passes to the kernel, by value: addresses of the device, strides in bytes. Freestanding, for NVRTC.
#pragma once

#include <stdint.h>

namespace example {

struct RowRange {
    int32_t begin, end;
};

// y = a + b for tensors of one shape, whose rows are dense. Rows are numbered by two inner dimensions and the slowest
// one.
struct Add {
    const char *a, *b;
    char* y;
    const RowRange* rows;  // of the slowest dimension, on the device; nullptr: 0 to all
    int32_t all;
    int32_t n;              // elements of a row
    int32_t inner[2];       // extents of the inner dimensions
    int64_t strides[3][3];  // of a, b and y: of the inner dimensions, then of the slowest
};

inline constexpr int kThreads = 128;

}  // namespace example
