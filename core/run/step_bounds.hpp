// How large a step is: what executors are given, and the bounds that kernels of devices are launched with.
#pragma once

#include "core/cache/cache_rule.hpp"

#include <tessera/kernel.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace tessera {

using StepRanges = std::array<tsr_range, TSR_RANGE_COUNT>;

struct StepSize {
    // NOLINTNEXTLINE(google-explicit-constructor): a step of which only the rows are known
    StepSize(const StepRanges& rows) : ranges(rows) {}
    StepSize(const StepRanges& rows, int64_t longest, const std::array<int64_t, TSR_RANGE_COUNT>& held)
        : ranges(rows), tokens(longest), pages(held) {}

    StepRanges ranges;
    // Tokens of the longest sequence of the step, its new ones included. 0: not known.
    int64_t tokens = 0;
    // Of each range the pages that sequences with rows of it have, all together. Meaningless where `tokens` is 0.
    std::array<int64_t, TSR_RANGE_COUNT> pages{};
};

// No step that is launched with them is larger.
struct StepBounds {
    int32_t rows[TSR_RANGE_COUNT] = {};
    int64_t tokens = 0;  // of a sequence
    int64_t pages[TSR_RANGE_COUNT] = {};

    // Bounds of steps with so many rows of which each may be of another sequence of up to `tokens` tokens.
    static StepBounds of_rows(const int32_t (&rows)[TSR_RANGE_COUNT], int64_t tokens, int64_t sequences) {
        StepBounds bounds;
        bounds.tokens = tokens;
        for (int i = 0; i < TSR_RANGE_COUNT; ++i) {
            bounds.rows[i] = rows[i];
            bounds.pages[i] = std::min<int64_t>(rows[i], sequences) * int64_t{pages_for(static_cast<uint64_t>(tokens))};
        }
        return bounds;
    }

    // The step's own size. `most_tokens` and `sequences`: of the plan, for what the step does not say.
    static StepBounds of_step(const StepSize& step, int64_t most_tokens, int64_t sequences) {
        int32_t rows[TSR_RANGE_COUNT];
        for (int i = 0; i < TSR_RANGE_COUNT; ++i) rows[i] = std::max(step.ranges[i].end - step.ranges[i].begin, 0);
        if (step.tokens == 0) return of_rows(rows, most_tokens, sequences);
        StepBounds bounds = of_rows(rows, step.tokens, sequences);
        std::ranges::copy(step.pages, bounds.pages);
        return bounds;
    }

    bool covers(const StepBounds& other) const {
        return std::ranges::equal(other.rows, rows, std::ranges::less_equal()) && other.tokens <= tokens &&
               std::ranges::equal(other.pages, pages, std::ranges::less_equal());
    }
    bool operator==(const StepBounds&) const = default;
};

}  // namespace tessera
