// A loaded model: cached sequences and steps over batches of their new tokens.
#pragma once

#include "core/base/notice.hpp"
#include "core/cache/paged_cache.hpp"
#include "core/gguf/reader.hpp"
#include "core/hardware/hardware.hpp"
#include "core/hardware/numa.hpp"
#include "core/model/model.hpp"
#include "core/plan/plan.hpp"
#include "core/registry/registry.hpp"
#include "core/run/executor.hpp"
#include "core/session/step_comparison.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tessera {

using Token = int32_t;

// What a caller asks of an engine; ScheduleOptions follow from it. With lock_memory, weights are packed at load.
struct EngineOptions : PlanOptions {
    uint32_t context = 0;      // cached tokens of all sequences (-c); 0: 4,096, or the model's maximum if that is less
    uint32_t sequences = 1;    // at once
    uint32_t rows = 512;       // of one step (-ub)
    uint32_t output_rows = 0;  // rows of one step whose logits are wanted; 0: one a sequence
    bool hidden_states = false;   // as of GraphLimits
    bool states = false;          // as of GraphLimits: what drafts of a layer of prediction begin with
    bool prediction = false;      // as of GraphLimits
    uint32_t threads = 0;         // of generation (-t); 0: the physical cores
    uint32_t prompt_threads = 0;  // of prompts (-tb); 0: as threads
    // A sequence that brings at least this many new rows at once counts as a prompt (-mla 2 and 3); 0: as the plan
    // estimates.
    uint32_t expand_from = 0;
    bool lock_memory = false;
    bool check_order = false;  // checks the order of all accesses on devices in every step (slow)
    NumaMode numa = NumaMode::kNone;
    ExpertReduction experts;
    bool allow_unused = false;  // as of GraphLimits
};

// The plan for a model, from its header alone; Plan::notes lists options that had to be changed.
// `registry` and `hardware` outlive the plan. Throws Error as make_plan does.
struct PlannedModel {
    ModelInfo info;
    std::vector<std::string> file_notes;  // BuiltModel::notes
    std::shared_ptr<const OpSet> ops;
    uint32_t context = 0;  // as planned: whole pages, with one more for each sequence but the first
    // That one sequence may hold: what the model was made for, or the context that was asked for, where that is more;
    // of the context that was asked for, whole pages.
    uint32_t sequence_tokens = 0;
    std::vector<Notice> notices;  // on the options
    Plan plan;
};
PlannedModel plan_model(const gguf::GgufFile& file, const Registry& registry, const Hardware& hardware,
                        const EngineOptions& options);

// The largest context, in tokens and whole pages, for which the plan fits every device; 0 if none does.
uint32_t largest_context(const gguf::GgufFile& file, const Registry& registry, const Hardware& hardware,
                         const EngineOptions& options);

// New tokens of one sequence in a step.
struct BatchEntry {
    SequenceId sequence = 0;
    std::span<const Token> tokens;
    bool output = true;  // logits of the last token are wanted; of all tokens if `all_outputs`
    bool all_outputs = false;
    bool hidden = false;  // in place of logits, hidden states: of all entries of a step that have outputs, or of none
    // Of a layer of prediction: info().embedding floats a token, the state before it; needed there, else empty.
    std::span<const float> states = {};
};

// One thread at a time.
class Engine {
  public:
    // Checks that the plan fits, allocates and loads. `planned`: of this file, by plan_model with the other arguments.
    // `registry` and `hardware` outlive the engine. Throws Error: TSR_DOES_NOT_FIT naming device and bytes, and what
    // GgufFile and Executor throw.
    Engine(gguf::GgufFile file, PlannedModel planned, const Registry& registry, const Hardware& hardware,
           const EngineOptions& options, const LoadProgress& progress = {});
    // Plans, too. Throws what plan_model throws as well.
    Engine(gguf::GgufFile file, const Registry& registry, const Hardware& hardware, const EngineOptions& options,
           const LoadProgress& progress = {});
    ~Engine();

    const ModelInfo& info() const noexcept;
    const Plan& plan() const noexcept;
    // What loading found out about the devices, a line each.
    std::span<const std::string> notes() const noexcept;
    const gguf::GgufFile& file() const noexcept;
    uint32_t context() const noexcept;          // tokens that the cache holds in all
    uint32_t sequence_tokens() const noexcept;  // PlannedModel::sequence_tokens
    uint32_t max_rows() const noexcept;         // of one step
    uint32_t max_sequences() const noexcept;
    uint32_t max_outputs() const noexcept;  // rows of one step whose logits are wanted

    // Up to how many rows a sequence may bring so that each is computed as a single one would be: drafts have so many.
    // Where the host alone computes they have the same bits then, on devices about the same (docs/server.md).
    uint32_t rows_as_single() const noexcept;
    bool rows_have_same_bits() const noexcept;

    // Maximum of threads of the next steps; 0: as it is. Where others hold the processors, fewer take part
    // (WorkerTuner). Throws Error(TSR_INVALID_ARGUMENT) for more than the options asked for.
    void set_threads(uint32_t generation, uint32_t prompt);

    // The contents of a page of the cache, page_bytes() of its group, to be kept or to be written back: between steps,
    // after those under way. read_page() throws what step() throws, and so does write_page(), after which the page is
    // undefined.
    uint64_t page_bytes(GroupIndex group) const;
    std::vector<uint64_t> page_bytes() const;  // of each group
    void read_page(GroupIndex group, PageId page, std::span<std::byte> to);
    void write_page(GroupIndex group, PageId page, std::span<const std::byte> from);

    PagedCache& cache() noexcept;
    const PagedCache& cache() const noexcept;

    // Whether entries may ask for hidden states.
    bool gives_hidden_states() const noexcept;

    // Appends the tokens to their sequences and computes the wanted logits: one span of vocabulary() floats for each
    // output, or of info().embedding for hidden states, in the order of the entries, valid until the next step. A
    // sequence occurs in at most one entry. Throws Error: TSR_INVALID_ARGUMENT for tokens outside the vocabulary, too
    // many rows, outputs or sequences; TSR_DOES_NOT_FIT if the cache is full; what Executor::run throws. After an error
    // no step is under way, and the sequences are as before all steps that were. `states`: those of tokens without
    // logits are wanted, too, which take the last layer's time.
    std::vector<std::span<const float>> step(std::span<const BatchEntry> entries, bool states = true);

    // Where the options ask for states: of every token of an entry of the last step(), by its place among them, if they
    // were wanted; of a layer of prediction of tokens whose logits were computed. info().embedding floats each, valid
    // until the next step. Empty for a step of hidden states.
    std::span<const float> states(size_t entry) const;

    // The same without outputs, and without waiting for the end where devices alone compute: as many steps as
    // plan().step.slots are under way then, and the sequences have their tokens already. They may be extended, but
    // not shortened or removed before finish(). Throws what step() throws, also for the steps before.
    void submit(std::span<const BatchEntry> entries);
    // Waits for all steps that were submitted.
    void finish();
    // How many of them have not been waited for yet. The others have ended.
    size_t under_way() const noexcept;

    // Processes many tokens in steps of max_rows(), several in flight where the plan allows it, and returns the
    // logits of the last one. `keep_going` is asked after each step was started; false ends with Error(TSR_CANCELLED),
    // and the sequence keeps the tokens of finished steps. After another error it is as long as before the call.
    std::span<const float> prefill(SequenceId sequence, std::span<const Token> tokens,
                                   const std::function<bool(size_t done, size_t total)>& keep_going = {});

    // The step that runs ends early, with Error(TSR_CANCELLED), and is rolled back. Any thread.
    void cancel() noexcept;

    // Calls work(i) for every i below `count` on the threads of generation, each once. Throws the first of what the
    // calls throw. Not while a step runs.
    void each_on_team(size_t count, const std::function<void(size_t i)>& work);

    // As of Executor: weights that are packed between steps.
    void pack_one();
    PackingProgress packing() const noexcept;

    // Of steps that one sequence had to itself, with all threads that were planned for, since weights are packed. Where
    // the host alone computes, those that other processes disturbed do not count.
    StepComparisons compared() const;

    // As Executor::measure: one number for each of plan().nodes.
    void measure(std::span<double> seconds) noexcept;

  private:
    void load(gguf::GgufFile file, PlannedModel planned, const Registry& registry, const Hardware& hardware,
              const EngineOptions& options, const LoadProgress& progress);

    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tessera
