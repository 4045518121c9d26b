// What the key heads of a unit have of cached rows, to be asked for before it is read.
#pragma once

#include "../kit.hpp"
#include "operands.hpp"

#include <tessera/cpu/formats.hpp>

#include <cstdint>

namespace tessera::x86::attention {

// `elements` of each row of a cache, from element `first` on, in the tokens of a slice.
class CachedRows {
  public:
    CachedRows(const Operands& operands, const View& cache, const Slice& s, int64_t first, int64_t elements) noexcept
        : operands_(operands), cache_(cache), slice_(s) {
        const FormatSize size = format_size(cache.tensor->type);
        begin_ = size.prefix + first / size.elements * size.bytes;
        bytes_ = elements / size.elements * size.bytes;
    }
    const char* operator()(int32_t token) const noexcept {
        return operands_.row_of_token(cache_, slice_, token) + begin_;
    }
    int64_t bytes() const noexcept { return bytes_; }
    // Whether those of a page lie one after the other.
    bool contiguous() const noexcept { return cache_.tensor->strides[1] == bytes_; }
    // Cache lines of `rows` of them, if they are asked for in so many steps.
    int lines(int rows, int steps) const noexcept { return static_cast<int>((bytes_ / 64 + 1) * rows / steps) + 1; }

  private:
    const Operands& operands_;
    const View& cache_;
    const Slice& slice_;
    int64_t begin_, bytes_;
};

}  // namespace tessera::x86::attention
