// Asks for cached rows before they are needed, a few cache lines at a time between other work: in one burst they would
// wait for each other.
#pragma once

#include "../kit.hpp"
#include "asking.hpp"
#include "shape.hpp"

#include <tessera/tensor.h>

#include <algorithm>

namespace tessera::x86::attention {

class Ahead {
  public:
    // What follows reads rows of tokens first .. end of a source (a sequence, or parts of its rows), `bytes` of each.
    // Goes on where an earlier strip of the source ended.
    void begin(int64_t source, int32_t first, int32_t end, int64_t bytes) noexcept {
        if (source != source_ || next_ < first || next_ > first + 2 * kStrip) {
            next_ = first;
            offset_ = 0;
        }
        source_ = source;
        end_ = end;
        bytes_ = bytes;
    }

    // Asks for `lines` cache lines, but for no token from `until` on. row(token): its first byte.
    template <class Isa, class Row>
    void ask(int32_t until, int lines, Row&& row) noexcept {
        until = std::min(until, end_);
        while (lines > 0 && next_ < until) {
            const char* const at = row(next_);
            for (; lines > 0 && offset_ < bytes_; offset_ += 64, --lines) Isa::prefetch_far(at + offset_);
            if (offset_ < bytes_) return;
            offset_ = 0;
            ++next_;
        }
    }

    // The same, but only names the lines, of which there may be fewer: those that lie one after the other. For rows
    // that do so, up to the end of a page.
    template <class Row>
    Lines lines(int32_t until, int lines, Row&& row) noexcept {
        until = std::min(until, end_);
        if (lines <= 0 || next_ >= until) return {nullptr, 0};
        const int rows = std::min(until - next_, TSR_PAGE_TOKENS - next_ % TSR_PAGE_TOKENS);
        const Lines next{row(next_) + offset_,
                         static_cast<int>(std::min<int64_t>(lines, (rows * bytes_ - offset_ + 63) / 64))};
        offset_ += int64_t{next.count} * 64;
        next_ += static_cast<int32_t>(offset_ / bytes_);
        offset_ %= bytes_;
        return next;
    }

  private:
    int64_t source_ = -1;
    int32_t next_ = 0, end_ = 0;
    int64_t offset_ = 0;  // of what has not been asked for in row next_
    int64_t bytes_ = 0;
};

}  // namespace tessera::x86::attention
