// How fast a plan runs, by its kernels' estimates and the links between its devices.
#pragma once

#include "core/plan/plan.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// The range that tells how many rows a node works on: that of what it makes, or of what it reads first.
int32_t working_range(const Graph& graph, const Node& node);

// How much of a prompt's step counts beside a token of generation, where both have to be one number: as if a
// token were generated for every 32nd of a step of max_rows.
constexpr double kPromptShare = 1.0 / 32;

// What a copy between two devices is assumed to cost beside its bytes: an event that a queue waits for, or a host that
// is woken.
constexpr double kCopySeconds = 10e-6;

// Seconds of one step. Devices work side by side where no node waits for another, so `seconds` is the longest path
// through the graph, and the sum of `busy` may be larger.
struct StepTime {
    double seconds = 0;
    std::vector<double> busy;  // of each of Plan::devices
    // How the nodes' time is spent, summed over all devices: reading weights and activations, arithmetic, attention
    // to tokens that are cached already, calls (the fixed cost of nodes that do little), and copies between devices.
    double memory = 0, arithmetic = 0, cached = 0, calls = 0, copies = 0;
};

// `rows`: 1 to max_rows, of one sequence, of which `depth` tokens are cached before them (at most max_tokens).
// `prompt`: the rows belong to the range of prompts (TSR_RANGE_PROMPT_ROWS), else to that of generation. `states`: with
// states of all rows, where the plan gives them to drafts. Without them it is what it is without drafts, by which
// prompts are cut.
StepTime step_time(const Plan& plan, uint32_t rows, uint32_t depth, bool prompt, bool states = false);

// Seconds from the end of such a step to that of the next, where those of a long prompt follow each other: as long as a
// step, with its states, if they are taken one by one, as they are for these. Else each device begins the next one when
// it has done its part, as far as so many can be under way.
double step_interval(const Plan& plan, uint32_t rows, uint32_t depth, bool prompt);

// At depth 0 and with as many tokens cached as a sequence can have.
struct Speed {
    uint32_t depth = 0;
    double prompt = 0, generation = 0;  // tokens/s; a long prompt in steps of max_rows
    StepTime prompt_step, generation_step;
    double prompt_interval = 0;  // of prompt_step
};
std::vector<Speed> predict(const Plan& plan);

// What a typical use takes, half of it with nothing cached and half with max_tokens cached: seconds of a token of
// generation, and from one step of a long prompt to the next, of max_rows. Plans are compared by `seconds`, to which a
// prompt's step counts with kPromptShare, and by the four figures.
struct TypicalUse {
    struct At {
        double generation = 0, prompt = 0;
    };
    At empty, full;

    std::array<double, 4> figures() const { return {empty.generation, full.generation, empty.prompt, full.prompt}; }

    double seconds() const {
        return (empty.generation + full.generation + kPromptShare * (empty.prompt + full.prompt)) / 2;
    }
};
TypicalUse typical_use(const Plan& plan);

// Seconds that a node takes in a step of a prompt, half of max_tokens being cached; 0 if it belongs to generation
// alone.
double prompt_seconds(const Plan& plan, const PlannedNode& planned);

// From how many new rows on a sequence is better taken as a prompt (rows of TSR_RANGE_PROMPT_ROWS) than row by row as
// generation is: where the two estimates meet, half of max_tokens being cached. At least 1; max_rows + 1 if never.
uint32_t rows_of_a_prompt(const Plan& plan);

// Kernels compute so many rows of a sequence as single ones (kernels/x86/README.md), which is what drafts are verified
// with.
inline constexpr uint32_t kRowsAsSingle = 16;

// "memory 81 %; CUDA0 busy 60 %": the largest part of what nodes and copies take, and the device that works longest,
// of the seconds in which it does so once.
std::string bound_text(const Plan& plan, const StepTime& time, double seconds);

}  // namespace tessera
