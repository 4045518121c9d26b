// Where prompts are cut into chunks, each of which is computed in one step.
#pragma once

#include "core/plan/plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::session {

// Predicted seconds of a step with so many rows of a prompt, after none and after `depth` cached tokens; between the
// two time is linear.
struct ChunkTime {
    uint32_t rows;
    double first = 0, deep = 0;
};

// Cuts follow from positions alone, so what a prompt's results depend on does not depend on its company. Any thread.
class ChunkCuts {
  public:
    // Smaller chunks cost speed, so they pay only where attention to many cached tokens makes a step long.
    static constexpr double kLonger = 1.25;

    // Chunks of `rows` everywhere.
    explicit ChunkCuts(uint32_t rows) noexcept : rows_(rows) {}
    // Chunks of `rows`, or of fewer, down to a page, where a step of them is predicted to take longer than `seconds`
    // and than kLonger times one at the beginning of a prompt. 0: always of `rows`. `depth`: the tokens of a sequence
    // at most. `times`: of numbers of rows, ascending, the last one `rows`.
    ChunkCuts(uint32_t rows, double seconds, uint32_t depth, std::span<const ChunkTime> times);
    // With the times that a plan predicts.
    ChunkCuts(const Plan& plan, uint32_t rows, double seconds);

    // The first cut after `position`.
    uint32_t after(uint32_t position) const noexcept;
    // Rows of the chunk that `position` is in.
    uint32_t rows_at(uint32_t position) const noexcept { return after(position) - before(position); }

  private:
    uint32_t before(uint32_t position) const noexcept;

    uint32_t rows_;
    std::vector<uint32_t> cuts_;  // ascending; none: multiples of rows_
};

}  // namespace tessera::session
