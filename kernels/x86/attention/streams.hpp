// Asks for the cached rows of a unit before they are read: for the keys of some tokens, their values, the keys of the
// next ones, and so on, rows whole and a few cache lines at a time between other work.
#pragma once

#include "../kit.hpp"
#include "asking.hpp"
#include "cached_rows.hpp"

#include <tessera/tensor.h>

#include <algorithm>
#include <cstdint>

namespace tessera::x86::attention {

class Streams {
  public:
    // What follows reads tokens from `first` on, up to `end`: keys and then values of `block` tokens (which divide
    // TSR_PAGE_TOKENS or are a multiple of it) at a time. Goes on where an earlier strip of the source ended.
    void begin(int64_t source, int32_t first, int32_t end, int block) noexcept {
        block_ = block;
        const int64_t at = key_row(first);
        if (source != source_ || next_ < at || next_ > at + 4 * kStrip) {
            next_ = at;
            offset_ = 0;
            begin_ = first;
        }
        source_ = source;
        end_ = end;
    }

    // Rows in the order in which they are read.
    int64_t key_row(int32_t token) const noexcept { return int64_t{token / block_} * 2 * block_ + token % block_; }
    int64_t value_row(int32_t token) const noexcept { return key_row(token) + block_; }
    // The first row of the block after that of a token.
    int64_t next_block(int32_t token) const noexcept { return int64_t{token / block_ + 1} * 2 * block_; }

    // Asks for `lines` cache lines, but for no row from `until` on. values: nullptr where they are keys.
    template <class Isa>
    void ask(int64_t until, int lines, const CachedRows& keys, const CachedRows* values) noexcept {
        while (lines > 0 && next_ < until && finds_row(until, values)) {
            const CachedRows& rows = of_values() ? *values : keys;
            const char* const at = rows(token());
            for (; lines > 0 && offset_ < rows.bytes(); offset_ += 64, --lines) Isa::prefetch_far(at + offset_);
            if (offset_ < rows.bytes()) return;
            offset_ = 0;
            ++next_;
        }
    }

    // The same, but only names the lines, of which there may be fewer: those that lie one after the other.
    Lines lines(int64_t until, int lines, const CachedRows& keys, const CachedRows* values) noexcept {
        if (lines <= 0 || !finds_row(until, values)) return {nullptr, 0};
        const CachedRows& rows = of_values() ? *values : keys;
        int count = 1;
        if (rows.contiguous()) {
            count = std::min({end_ - token(), TSR_PAGE_TOKENS - token() % TSR_PAGE_TOKENS, block_ - token() % block_});
            count = static_cast<int>(std::min<int64_t>(count, until - next_));
        }
        const auto left = static_cast<int>((count * rows.bytes() - offset_ + 63) / 64);
        const Lines named{rows(token()) + offset_, std::min(lines, left)};
        offset_ += int64_t{named.count} * 64;
        const bool all = named.count == left;
        next_ += all ? count : offset_ / rows.bytes();
        offset_ = all ? 0 : offset_ % rows.bytes();
        return named;
    }

  private:
    int32_t token() const noexcept { return static_cast<int32_t>(next_ / (2 * block_) * block_ + next_ % block_); }
    bool of_values() const noexcept { return next_ / block_ % 2 == 1; }
    // Whether there is a row before `until`; goes on to it past those that nobody reads.
    bool finds_row(int64_t until, const CachedRows* values) noexcept {
        while (next_ < until && next_ / (2 * block_) * block_ < end_) {
            if (token() >= end_ || (of_values() && !values))
                next_ = (next_ / block_ + 1) * block_;
            else if (token() < begin_)
                ++next_;
            else
                return true;
        }
        return false;
    }

    int block_ = TSR_PAGE_TOKENS;
    int64_t source_ = -1;
    int32_t begin_ = 0, end_ = 0;
    int64_t next_ = 0;    // row
    int64_t offset_ = 0;  // of what has not been asked for in it
};

}  // namespace tessera::x86::attention
