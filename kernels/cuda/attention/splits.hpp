// Into how many spans of tokens, each a block of its own, attention cuts what a row sees.
#pragma once

#include "cache.hpp"
#include "combine.hpp"

#include <algorithm>
#include <cstdint>

namespace tessera::cuda_ops {

// A launch of few rows fills the card by spans, one of many by rows. Launches of up to 4, 16, 64 .. rows have spans
// alike: rows beside it change a row's result only where their number passes such a bound.
class Splits {
  public:
    Splits() = default;
    // `tiles`: blocks of one row without splits. `blocks`: that fill the card. `row_bytes`: of the partial sums of a
    // row and span. `cap`: of workspace, 0 for none.
    Splits(int64_t tiles, int64_t blocks, int64_t maximum_tokens, int64_t maximum_rows, uint64_t row_bytes,
           uint64_t cap) noexcept
        : rows_(maximum_rows), row_bytes_(row_bytes) {
        const int64_t pages = (maximum_tokens + cuda_kernels::kPageTokens - 1) / cuda_kernels::kPageTokens;
        first_ = std::clamp<int64_t>((blocks + tiles - 1) / std::max<int64_t>(tiles, 1), 1,
                                     std::clamp<int64_t>(pages, 1, cuda_kernels::kMaximumSplits));
        while (cap > 0 && first_ > 1 && workspace_bytes() > cap) --first_;
    }

    // Of a launch of up to `rows` rows.
    int64_t of(int64_t rows) const noexcept {
        int64_t splits = first_;
        for (int64_t limit = kFewRows; limit < rows && splits > 1; limit *= 4) splits /= 4;
        return std::max<int64_t>(splits, 1);
    }
    uint64_t workspace_bytes() const noexcept {
        uint64_t bytes = 0;
        for (int64_t limit = kFewRows;; limit *= 4) {
            const int64_t rows = std::min(limit, rows_), splits = of(limit);
            if (splits > 1) bytes = std::max(bytes, static_cast<uint64_t>(rows * splits) * row_bytes_);
            if (limit >= rows_ || splits == 1) return bytes;
        }
    }

    static constexpr int64_t kFewRows = 4;

  private:
    int64_t first_ = 1, rows_ = 1;
    uint64_t row_bytes_ = 0;
};

// Into how many parts, each of a block of its own, the kernel that joins spans cuts a head of `dv` elements: as many as
// two blocks a multiprocessor take together with those of all rows and heads (`blocks`), since a block waits for memory
// most of the time.
inline uint32_t combine_parts(int64_t blocks, int64_t dv, uint32_t processors) noexcept {
    const int64_t wanted = 2 * static_cast<int64_t>(processors > 0 ? processors : 30);
    const int64_t parts = (dv + cuda_kernels::kCombineColumns - 1) / cuda_kernels::kCombineColumns;
    blocks = std::max<int64_t>(blocks, 1);
    return static_cast<uint32_t>(std::clamp<int64_t>((wanted + blocks - 1) / blocks, 1, parts));
}

}  // namespace tessera::cuda_ops
