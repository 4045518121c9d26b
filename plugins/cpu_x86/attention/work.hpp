// How attention is cut into units of work, and the scratch memory of each worker.
//
// Rows of a batch form *segments*: consecutive rows of one sequence at ascending positions. The lanes of a segment
// (rows times heads of a group) form panels, panels form blocks, and the cached tokens form spans; a unit is a block
// over a span for one key head. Cuts follow from the segment and the node alone, never from the number of workers, and
// spans are merged in order.
#pragma once

#include "../kit.hpp"
#include "problem.hpp"

#include <tessera/kernel.h>

namespace tessera::cpu_x86::attention {

inline constexpr int kMaxSpans = 16;
// Rows of a packed weight that are unpacked together, at most.
inline constexpr int kMaximumGroupRows = 16;

// How rows of a weight are unpacked from their groups. Without `unpack` they are canonical.
struct PackedRows {
    void (*unpack)(int64_t elements, int64_t groups, const void* packed, void* rows) = nullptr;
    int group_rows = 1;
};

// Decisions for a node, made once.
struct Budget {
    int panels_of_block = 1;   // at most
    int slots_of_segment = 0;  // panels over spans that a segment may spread over several units
    int slots = 0;             // of all segments
    int workers = 1;
    int64_t worker_bytes = 0;
    int64_t slot_bytes = 0;
    int64_t bytes() const noexcept { return workers * worker_bytes + slots * slot_bytes; }
};

// Scratch of a panel that outlives a chunk.
template <class Arithmetic>
struct Panel {
    typename Arithmetic::Queries queries;
    float* home;      // the panel's own memory for out, top and sums
    float* out;       // [padded_value][lanes]: in the panel's own memory, or in a slot
    float* top;       // [lanes], and after it the sums [lanes]
    int32_t* limits;  // [lanes]: last token that the lane sees; ascending
    int vectors;      // of lanes in use
    bool empty;       // no chunk of this span yet

    static Panel take(Arena& arena, const HeadShape& shape) noexcept {
        Panel panel{};
        panel.queries = Arithmetic::take_queries(arena, shape.padded_key());
        panel.home = panel.out = take_result(arena, shape);
        panel.top = panel.out ? panel.out + result_floats(shape) : nullptr;
        panel.limits = arena.take<int32_t>(Arithmetic::kPanel);
        return panel;
    }
    // out, top and sums in one piece: what a span leaves.
    static int64_t result_floats(const HeadShape& shape) noexcept {
        return int64_t{shape.padded_value()} * Arithmetic::kPanel;
    }
    static float* take_result(Arena& arena, const HeadShape& shape) noexcept {
        return arena.take<float>(result_floats(shape) + 2 * Arithmetic::kPanel);
    }
};

// Scratch of a worker that is not a panel's.
template <class Arithmetic>
struct Scratch {
    typename Arithmetic::Chunk chunk;
    typename Arithmetic::Weights weights;
    float* earlier;  // result of the spans before, where one worker takes all spans of a panel
    // projected only
    typename Arithmetic::Chunk latents;
    typename Arithmetic::Queries* projections;
    char* group_rows;    // [kMaximumGroupRows] canonical rows of a weight
    float* weight_rows;  // [lanes][padded latent]
    float* keys;         // [kChunk + kChunkPadding][key_stride]
    float* values;       // [kChunk + kChunkPadding][value_stride]
    int key_panels = 0, value_panels = 0;
    int64_t key_stride = 0, value_stride = 0;

    static Scratch take(Arena& arena, const Problem& problem) noexcept {
        Scratch s{};
        s.chunk = Arithmetic::take_chunk(arena, problem.shape);
        s.weights = Arithmetic::take_weights(arena);
        s.earlier = Panel<Arithmetic>::take_result(arena, problem.shape);
        if (problem.form != Form::kProjected) return s;
        const HeadShape latent = problem.latent_shape();
        constexpr int kPanel = Arithmetic::kPanel;
        s.latents = Arithmetic::take_chunk(arena, latent);
        s.key_panels = (problem.projected_key() + kPanel - 1) / kPanel;
        s.value_panels = (problem.shape.value + kPanel - 1) / kPanel;
        s.key_stride = std::max(s.key_panels * kPanel, problem.shape.padded_key());
        s.value_stride = s.value_panels * kPanel;
        s.group_rows = arena.take<char>(kMaximumGroupRows * problem.weight_row_bytes);
        s.weight_rows = arena.take<float>(int64_t{kPanel} * latent.padded_key());
        s.keys = arena.take<float>((kChunk + kChunkPadding) * s.key_stride);
        s.values = arena.take<float>((kChunk + kChunkPadding) * s.value_stride);
        s.projections = arena.take<typename Arithmetic::Queries>(s.key_panels + s.value_panels);
        for (int i = 0; i < s.key_panels + s.value_panels; ++i) {
            const auto queries = Arithmetic::take_queries(arena, latent.padded_key());
            if (s.projections) s.projections[i] = queries;
        }
        return s;
    }
};

template <class Arithmetic>
int64_t worker_bytes(const Problem& problem, int panels) noexcept {
    Arena arena(nullptr);
    Scratch<Arithmetic>::take(arena, problem);
    arena.take<Panel<Arithmetic>>(panels);
    for (int i = 0; i < panels; ++i) Panel<Arithmetic>::take(arena, problem.shape);
    return arena.used();
}

// The budget within `cap` bytes (0: no cap), or with workers = 0 if even the minimum, one worker's `minimum_bytes`,
// does not fit.
template <class Arithmetic>
Budget make_budget(const Problem& problem, int workers, int64_t cap, int64_t& minimum_bytes) noexcept {
    // Panels of a block stay in the second-level cache beside a chunk; expanded keys are worth more rows.
    constexpr int64_t kBlockBytes = 384 << 10, kProjectedBlockBytes = 512 << 10;
    constexpr int64_t kSegmentsWithSlots = 4;
    Budget budget;
    budget.workers = std::max(1, workers);
    minimum_bytes = worker_bytes<Arithmetic>(problem, 1);
    Arena slot(nullptr);
    Panel<Arithmetic>::take_result(slot, problem.shape);
    budget.slot_bytes = slot.used();
    if (cap > 0 && cap < minimum_bytes) {
        budget.workers = 0;
        return budget;
    }
    const int64_t one = worker_bytes<Arithmetic>(problem, 1), two = worker_bytes<Arithmetic>(problem, 2);
    const int64_t wanted = problem.form == Form::kProjected ? kProjectedBlockBytes : kBlockBytes;
    const int64_t maximum = (problem.max_rows * problem.group + Arithmetic::kPanel - 1) / Arithmetic::kPanel;
    budget.panels_of_block = static_cast<int>(std::clamp<int64_t>(wanted / (two - one), 1, maximum));
    if (problem.form != Form::kProjected) {
        const int64_t panels_of_row = (problem.group + Arithmetic::kPanel - 1) / Arithmetic::kPanel;
        budget.slots_of_segment = static_cast<int>(std::min<int64_t>(kMaxSpans * panels_of_row, 1024));
        budget.slots = static_cast<int>(budget.slots_of_segment *
                                        std::min({kSegmentsWithSlots, problem.max_sequences, problem.max_rows}));
    }
    while (true) {
        budget.worker_bytes = worker_bytes<Arithmetic>(problem, budget.panels_of_block);
        if (cap == 0 || budget.bytes() <= cap) return budget;
        if (budget.slots > budget.slots_of_segment)
            budget.slots -= budget.slots_of_segment;
        else if (budget.panels_of_block > 1)
            budget.panels_of_block = (budget.panels_of_block + 1) / 2;
        else if (budget.slots > 0)
            budget.slots = budget.slots_of_segment = 0;
        else
            --budget.workers;
    }
}

// Rows begin .. end of one sequence; they see tokens up to their own position, `tokens` at most.
struct Segment {
    int32_t begin, end;
    int32_t sequence;
    int32_t first_position;
    int64_t lanes;
    int64_t panels;
    int blocks, block_panels;
    int spans;
    int chunks;
    int first_slot;  // -1: its spans are not spread over units
    int64_t tokens() const noexcept { return int64_t{first_position} + (end - begin); }
    int span_begin(int span) const noexcept { return static_cast<int>(int64_t{chunks} * span / spans); }
    // Units of one key head.
    int units() const noexcept { return first_slot >= 0 ? blocks * spans : blocks; }
};

// Walks over the segments of a batch, always in the same order and with the same cuts.
template <class Arithmetic>
class Segments {
  public:
    Segments(const Problem& problem, const Budget& budget, const int32_t* positions, const int32_t* sequences,
             tsr_range rows) noexcept
        : problem_(&problem),
          budget_(&budget),
          positions_(positions),
          sequences_(sequences),
          next_(rows.begin),
          end_(rows.end) {}

    bool next(Segment& s) noexcept {
        if (next_ >= end_) return false;
        s.begin = next_;
        s.end = next_ + 1;
        while (s.end < end_ && sequences_[s.end] == sequences_[s.begin] &&
               positions_[s.end] == positions_[s.end - 1] + 1)
            ++s.end;
        next_ = s.end;
        s.sequence = sequences_[s.begin];
        s.first_position = positions_[s.begin];
        s.lanes = int64_t{s.end - s.begin} * problem_->group;
        s.panels = (s.lanes + Arithmetic::kPanel - 1) / Arithmetic::kPanel;
        s.chunks = static_cast<int>((s.tokens() + kChunk - 1) / kChunk);
        const int64_t all = s.panels * problem_->key_units;
        int64_t spans = 1;
        if (problem_->form != Form::kProjected) {
            spans = std::min<int64_t>(kMaxSpans / std::min(kMaxSpans, problem_->key_units),
                                      all <= 2 ? s.chunks : s.chunks / 2);
            while (spans > 1 && all * spans > budget_->slots_of_segment) spans /= 2;
            spans = std::max<int64_t>(1, spans);
        }
        s.spans = static_cast<int>(spans);
        // Enough units for several workers, but projected keys are worth as many rows as there are.
        const int64_t maximum = std::min<int64_t>(budget_->panels_of_block, s.panels);
        const int64_t wanted = problem_->form == Form::kProjected ? maximum : all * spans / kMaxSpans;
        s.block_panels = static_cast<int>(std::clamp<int64_t>(wanted, 1, maximum));
        s.blocks = static_cast<int>((s.panels + s.block_panels - 1) / s.block_panels);
        s.first_slot = -1;
        if (s.spans > 1 && slots_used_ + all * spans <= budget_->slots) {
            s.first_slot = slots_used_;
            slots_used_ += static_cast<int>(all * spans);
        }
        return true;
    }

  private:
    const Problem* problem_;
    const Budget* budget_;
    const int32_t* positions_;
    const int32_t* sequences_;
    int32_t next_, end_;
    int slots_used_ = 0;
};

}  // namespace tessera::cpu_x86::attention
