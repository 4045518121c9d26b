// What steps take beside what the plan predicts of them.
#pragma once

#include "core/plan/plan.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace tessera {

// Steps of one kind that were compared.
struct ComparedSteps {
    uint64_t steps = 0, tokens = 0;
    double measured_seconds = 0, predicted_seconds = 0;  // sums
    // Measured speed over predicted speed: the median of the last steps, so that one step that the system held up does
    // not count. 0: no step was compared.
    double ratio = 0;
};

struct StepComparisons {
    ComparedSteps prompts, generation;
};

// Compares steps that one sequence has to itself: of one row, and of many rows of a prompt. The first of each kind is
// left out, since caches and mapped files are cold then. One thread.
class StepComparison {
  public:
    // `prompt_rows_from`: from how many rows on a sequence's new rows count as a prompt. Calls step_time six
    // times, and up to 36 where experts are streamed.
    StepComparison(const Plan& plan, uint32_t prompt_rows_from);

    // A step of `rows` rows of one sequence after `depth` cached tokens took so long, with all threads of the plan and
    // nothing else in it: no packing of weights, no other step under way.
    void finished(uint32_t rows, uint32_t depth, double seconds);

    StepComparisons compared() const { return {prompt_kind_.compared, generation_kind_.compared}; }

  private:
    // Predicted seconds with nothing cached and with max_tokens; linear in rows and tokens between two of them.
    struct Prediction {
        uint32_t rows;
        double empty, full;
    };
    static constexpr size_t kRemembered = 64;
    struct Kind {
        ComparedSteps compared;
        bool begun = false;
        std::array<double, kRemembered> ratios{};  // of the last steps
        void add(uint32_t tokens, double measured, double predicted);
    };

    double predicted(uint32_t rows, uint32_t depth) const;

    uint32_t fewest_rows_;  // of a prompt's step that is compared
    uint32_t max_tokens_;
    Prediction token_;                 // of one row
    std::vector<Prediction> prompts_;  // by rising rows; empty: no steps have so many
    Kind prompt_kind_, generation_kind_;
};

}  // namespace tessera
