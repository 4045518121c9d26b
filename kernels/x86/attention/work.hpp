// How attention is cut into units of work, and the scratch memory of each worker.
//
// Rows of a batch make *slices*: consecutive rows of one sequence at ascending positions. The lanes of a slice
// (rows times heads of a group) make panels, panels make blocks, and the cached tokens make spans; a unit is a block
// over a span for one key head, or for several where a slice is one panel. Spans follow from the positions of tokens
// and the node alone (Spans), and are merged in order, those of a group first (kSpansOfGroup), whoever computes them:
// the result of a row depends neither on the number of workers nor on the memory they are given nor on the other rows
// of a batch.
#pragma once

#include "../kit.hpp"
#include "byte_operands.hpp"
#include "problem.hpp"

#include <tessera/kernel.h>

#include <bit>

namespace tessera::x86::attention {

// Units that a slice should have for several workers to share it well.
inline constexpr int kWantedUnits = 16;
// Panels over spans for which all slices together get slots, if one of them does not need more.
inline constexpr int64_t kWantedSlots = 256;
// Consecutive spans that are merged with each other before the result is merged with those before them. A worker merges
// those that it computes one after another in its own cache, and only what it leaves of a group goes to a slot: a slot
// is memory that no cache holds, and for one token it is as large as 28 cached rows.
inline constexpr int kSpansOfGroup = 8;
// Units that a worker should have of each slice, if they are of several key heads.
inline constexpr int kUnitsOfWorker = 4;
// Rows of one sequence up to which they are computed as single ones are; verified rows of a draft are that few.
inline constexpr int kFewRows = 16;
// Rows of a packed weight that are unpacked together, at most.
inline constexpr int kMaximumGroupRows = 16;

// How rows of a weight are unpacked from their groups. Without `unpack` they are canonical.
struct PackedRows {
    void (*unpack)(int64_t elements, int64_t groups, const void* packed, void* rows) = nullptr;
    int group_rows = 1;
};

// Where the tokens of any sequence are cut into spans: after every `unit` strips for the first 32 spans, and then 16
// times between a number of tokens and its double: a worker that takes the last one delays the others by no more. Units
// are of several key heads where they can be, so that number does not lengthen spans much.
class Spans {
  public:
    explicit Spans(const Problem& problem) noexcept
        : unit_(problem.key_units > 1 ? 2 : 1), whole_(problem.variant == Variant::kProjected) {}

    // The first strip of a span.
    int64_t begin(int64_t span) const noexcept {
        if (whole_) return span == 0 ? 0 : INT32_MAX;
        if (span < 32) return unit_ * span;
        const int64_t doubled = span / 16 - 1;
        return (unit_ << doubled) * (16 + span % 16);
    }
    // Of so many strips that follow each other anywhere.
    int most(int64_t strips) const noexcept { return whole_ ? 1 : static_cast<int>((strips - 1) / unit_) + 2; }
    // Of the span with that strip.
    int with(int64_t strip) const noexcept { return count(strip + 1) - 1; }
    // Of so many strips.
    int count(int64_t strips) const noexcept {
        int spans = 1;
        while (begin(spans) < strips) ++spans;
        return spans;
    }

  private:
    int64_t unit_;
    bool whole_;  // a projected variant gains from rows, not from spans
};

// The first span after those of the same group.
constexpr int end_of_group(int span) noexcept {
    return (span / kSpansOfGroup + 1) * kSpansOfGroup;
}

// Of spans [first, end) the one that is the `index`-th when whole groups are dealt out to the workers: later spans are
// longer, and the shares of units that workers begin with are consecutive.
inline int dealt_span(int index, int first, int end, int workers) noexcept {
    for (int worker = 0; worker < workers; ++worker) {
        for (int group = (first / kSpansOfGroup + worker) * kSpansOfGroup; group < end;
             group += workers * kSpansOfGroup) {
            const int begin = std::max(group, first), count = std::min(group + kSpansOfGroup, end) - begin;
            if (index < count) return begin + index;
            index -= count;
        }
    }
    return end - 1;
}

// Decisions for a node, made once.
struct Budget {
    int panels_of_block = 1;  // at most
    int slots = 0;            // panels over spans that slices may spread over several units
    int workers = 1;
    int64_t worker_bytes = 0;
    int64_t slot_bytes = 0;
    int64_t bytes() const noexcept { return workers * worker_bytes + slots * slot_bytes; }
};

// How the result of a panel lies: [element][vectors of lanes], or by_lane [lane][padded value]; elements in the order
// of the arithmetic, or in theirs.
struct Result {
    int lanes;  // in use
    bool by_lane;
    bool in_order;
};

// Scratch of a panel that outlives a strip.
template <class Arithmetic>
struct Panel {
    typename Arithmetic::Queries queries;
    float* few_queries;  // of FewLanes, instead
    float* out;          // of the current span: elements and lanes as Result says, then top and sums [kPanel]
    float* group;        // the same of the group's spans before; none in the projected variant
    float* total;        // the same of the groups before
    int32_t* limits;     // [lanes]: last token that the lane sees; ascending
    int lanes;           // in use
    int vectors;         // of them
    bool empty;          // no strip of this span yet

    static Panel take(Arena& arena, const Problem& problem) noexcept {
        const HeadShape& shape = problem.shape;
        Panel panel{};
        panel.queries = Arithmetic::take_queries(arena, shape.padded_key());
        if (const int few = problem.most_few_lanes(); few > 0)
            panel.few_queries = arena.take<float>(int64_t{few_width(few)} * shape.padded_key());
        panel.out = take_result(arena, shape);
        if (problem.variant != Variant::kProjected) {
            panel.group = take_result(arena, shape);
            panel.total = take_result(arena, shape);
        }
        panel.limits = arena.take<int32_t>(Arithmetic::kPanel);
        return panel;
    }
    // Elements, tops and sums in one buffer: what a span leaves.
    static int64_t result_floats(const HeadShape& shape) noexcept {
        return int64_t{shape.padded_value()} * Arithmetic::kPanel;
    }
    static int64_t all_floats(const HeadShape& shape) noexcept { return result_floats(shape) + 2 * Arithmetic::kPanel; }
    static float* take_result(Arena& arena, const HeadShape& shape) noexcept {
        return arena.take<float>(all_floats(shape));
    }
};

// Scratch of a worker that is not a panel's.
template <class Arithmetic>
struct Scratch {
    using Bytes = ByteOperands<Arithmetic::kLanes>;
    typename Arithmetic::Strip strip;
    typename Arithmetic::Weights weights;
    // The rest is for the projected variant. Latent rows, and the weights of a head as queries over them:
    typename Arithmetic::Strip latents;
    typename Arithmetic::Queries* projections;
    // or, over byte pages, these instead:
    typename Bytes::Strip byte_latents;
    typename Bytes::Queries* byte_projections;
    char* group_rows;    // [kMaximumGroupRows] canonical rows of a weight
    float* weight_rows;  // [lanes][padded latent]
    float* keys;         // [kStrip + kStripPadding][key_stride]
    float* values;       // [kStrip + kStripPadding][value_stride]
    int key_panels = 0, value_panels = 0;
    int64_t key_stride = 0, value_stride = 0;

    static Scratch take(Arena& arena, const Problem& problem) noexcept {
        Scratch s{};
        s.strip = Arithmetic::take_strip(arena, problem.shape);
        s.weights = Arithmetic::take_weights(arena);
        if (problem.variant != Variant::kProjected) return s;
        constexpr int kPanel = Arithmetic::kPanel;
        s.key_panels = (problem.projected_key() + kPanel - 1) / kPanel;
        s.value_panels = (problem.shape.value + kPanel - 1) / kPanel;
        s.key_stride = std::max(s.key_panels * kPanel, problem.shape.padded_key());
        s.value_stride = s.value_panels * kPanel;
        const int latent = problem.latent_shape().padded_key();
        s.group_rows = arena.take<char>(kMaximumGroupRows * problem.weight_row_bytes);
        s.weight_rows = arena.take<float>(int64_t{kPanel} * latent);
        s.keys = arena.take<float>((kStrip + kStripPadding) * s.key_stride);
        s.values = arena.take<float>((kStrip + kStripPadding) * s.value_stride);
        if (problem.byte_pages) {
            s.byte_latents = Bytes::take_strip(arena, problem.row_shape(), kStrip);
            s.byte_projections = take_panels<Bytes>(arena, s.key_panels + s.value_panels, latent);
        } else {
            s.latents = Arithmetic::take_strip(arena, problem.latent_shape());
            s.projections = take_panels<Arithmetic>(arena, s.key_panels + s.value_panels, latent);
        }
        return s;
    }

  private:
    template <class Product>
    static typename Product::Queries* take_panels(Arena& arena, int count, int padded_elements) noexcept {
        auto* panels = arena.take<typename Product::Queries>(count);
        for (int i = 0; i < count; ++i) {
            const auto queries = Product::take_queries(arena, padded_elements);
            if (panels) panels[i] = queries;
        }
        return panels;
    }
};

template <class Arithmetic>
int64_t worker_bytes(const Problem& problem, int panels) noexcept {
    Arena arena(nullptr);
    Scratch<Arithmetic>::take(arena, problem);
    arena.take<Panel<Arithmetic>>(panels);
    for (int i = 0; i < panels; ++i) Panel<Arithmetic>::take(arena, problem);
    return arena.used();
}

// The budget within `cap` bytes (0: no cap), or with workers = 0 if even the minimum, one worker's `minimum_bytes`,
// does not fit.
template <class Arithmetic>
Budget make_budget(const Problem& problem, int workers, int64_t cap, int64_t& minimum_bytes) noexcept {
    // Panels of a block stay in the second-level cache beside a strip; expanded keys are worth more rows.
    constexpr int64_t kBlockBytes = 384 << 10, kProjectedBlockBytes = 512 << 10;
    constexpr int64_t kRowsWithSlots = 4;  // at most
    Budget budget;
    budget.workers = std::max(1, workers);
    minimum_bytes = worker_bytes<Arithmetic>(problem, 1);
    Arena slot(nullptr);
    Panel<Arithmetic>::take_result(slot, problem.shape);
    const int64_t result_bytes = slot.used();
    slot.take<int32_t>(1);  // spans that it holds
    budget.slot_bytes = slot.used();
    if (cap > 0 && cap < minimum_bytes) {
        budget.workers = 0;
        return budget;
    }
    const int64_t one = worker_bytes<Arithmetic>(problem, 1), two = worker_bytes<Arithmetic>(problem, 2);
    const bool merges = problem.variant != Variant::kProjected;
    const int64_t used = two - one - (merges ? 2 * result_bytes : 0);  // what was merged is needed once a span
    const int64_t wanted = problem.variant == Variant::kProjected ? kProjectedBlockBytes : kBlockBytes;
    int64_t maximum = (problem.max_rows * problem.group + Arithmetic::kPanel - 1) / Arithmetic::kPanel;
    // Or one panel of each key head.
    if (problem.variant == Variant::kPlain) maximum = std::max<int64_t>(maximum, problem.key_units);
    budget.panels_of_block = static_cast<int>(std::clamp<int64_t>(wanted / used, 1, maximum));
    int64_t slots_of_row = 0;
    if (merges) {
        const int64_t panels_of_row = (problem.group + Arithmetic::kPanel - 1) / Arithmetic::kPanel;
        const Spans cuts(problem);
        int64_t spans = cuts.count((problem.max_tokens + kStrip - 1) / kStrip);
        if (problem.window > 0)
            spans = std::min<int64_t>(spans, cuts.most((problem.window + kFewRows + kStrip - 1) / kStrip + 1));
        slots_of_row = panels_of_row * problem.key_units * spans;
        const int64_t all = slots_of_row * std::min(kRowsWithSlots, problem.max_rows);
        budget.slots = static_cast<int>(std::clamp(kWantedSlots, slots_of_row, all));
    }
    while (true) {
        budget.worker_bytes = worker_bytes<Arithmetic>(problem, budget.panels_of_block);
        if (cap == 0 || budget.bytes() <= cap) return budget;
        if (budget.slots > slots_of_row)
            budget.slots = static_cast<int>(std::max(slots_of_row, budget.slots - slots_of_row));
        else if (budget.panels_of_block > 1)
            budget.panels_of_block = (budget.panels_of_block + 1) / 2;
        else if (budget.slots > 0)
            budget.slots /= 2;
        else
            --budget.workers;
    }
}

// Lanes of all key heads of a unit, as wide as few_width() says, whose scores fit the scratch memory of a panel's.
template <class Arithmetic>
inline constexpr int kMostFewWidth = (kStrip + kStripPadding) * Arithmetic::kPanel / kFewBlock;

// Rows begin .. end of one sequence; they see tokens up to their own position, `tokens` at most.
struct Slice {
    int32_t begin, end;
    int32_t sequence;
    int32_t first_position;
    int64_t lanes;
    int64_t panels;
    int blocks, block_panels;
    int keys, key_groups;       // key heads of a unit, at most, and how many groups of them there are
    int32_t first_token;        // of the first page with a token that any of the rows sees
    int first_span, spans_end;  // with that token, and past the last one
    int strips;
    int first_slot;  // -1: its spans are not spread over units
    bool few;        // computed by FewLanes
    int64_t tokens() const noexcept { return int64_t{first_position} + (end - begin); }
    int spans() const noexcept { return spans_end - first_span; }
    // Units of one group of key heads.
    int units() const noexcept { return first_slot >= 0 ? blocks * spans() : blocks; }
    // Whether a panel is the only one of its block.
    bool alone(int64_t panel) const noexcept {
        const int64_t first = panel / block_panels * block_panels;
        return std::min<int64_t>(block_panels, panels - first) == 1;
    }
};

// Walks over the slices of a batch, always in the same order and with the same cuts.
template <class Arithmetic>
class Slices {
  public:
    // few: kFewRows rows or less become slices of so few lanes that FewLanes computes them.
    Slices(const Problem& problem, const Budget& budget, const int32_t* positions, const int32_t* sequences,
           tsr_range rows, bool few) noexcept
        : problem_(&problem),
          budget_(&budget),
          positions_(positions),
          sequences_(sequences),
          next_(rows.begin),
          end_(rows.end),
          few_rows_(few ? std::max(1, kFewLanes / problem.group) : 0) {}

    bool next(Slice& s) noexcept {
        if (next_ >= end_) return false;
        s.begin = next_;
        s.end = next_ + 1;
        while (s.end < end_ && sequences_[s.end] == sequences_[s.begin] &&
               positions_[s.end] == positions_[s.end - 1] + 1)
            ++s.end;
        // What is left of a run of few rows is few rows, too.
        if (next_ >= run_end_) {
            run_end_ = s.end;
            few_run_ = few_rows_ > 0 && s.end - s.begin <= kFewRows;
        }
        s.few = few_run_;
        if (s.few) s.end = std::min(s.end, s.begin + few_rows_);
        next_ = s.end;
        s.sequence = sequences_[s.begin];
        s.first_position = positions_[s.begin];
        s.lanes = int64_t{s.end - s.begin} * problem_->group;
        s.panels = (s.lanes + Arithmetic::kPanel - 1) / Arithmetic::kPanel;
        s.strips = static_cast<int>((s.tokens() + kStrip - 1) / kStrip);
        const int64_t all = s.panels * problem_->key_units;
        s.first_token =
            static_cast<int32_t>(problem_->first_seen(s.first_position) / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS);
        const Spans cuts(*problem_);
        s.spans_end = cuts.count(s.strips);
        s.first_span = s.first_token == 0 ? 0 : cuts.with(s.first_token / kStrip);
        const int64_t spans = s.spans();
        s.first_slot = -1;
        if (spans > 1 && slots_used_ + all * spans <= budget_->slots) {
            s.first_slot = slots_used_;
            slots_used_ += static_cast<int>(all * spans);
        }
        // Enough units for several workers, but projected keys are worth as many rows as there are.
        const int64_t maximum = std::min<int64_t>(budget_->panels_of_block, s.panels);
        const int64_t units = s.first_slot >= 0 ? all * spans : all;
        const int64_t wanted = problem_->variant == Variant::kProjected ? maximum : units / kWantedUnits;
        s.block_panels = static_cast<int>(std::clamp<int64_t>(wanted, 1, maximum));
        s.blocks = static_cast<int>((s.panels + s.block_panels - 1) / s.block_panels);
        s.keys = keys_of_unit(s);
        s.key_groups = (problem_->key_units + s.keys - 1) / s.keys;
        return true;
    }

  private:
    // As many as leave each worker enough units: the more, the longer are the runs of memory that a unit reads.
    int keys_of_unit(const Slice& s) const noexcept {
        if (problem_->variant != Variant::kPlain || s.panels > 1) return 1;
        int keys = std::min(problem_->key_units, budget_->panels_of_block);
        if (s.few) keys = std::min(keys, kMostFewWidth<Arithmetic> / few_width(problem_->group));
        while (keys > 1 && int64_t{s.units()} * problem_->key_units < int64_t{keys} * kUnitsOfWorker * budget_->workers)
            keys = (keys + 1) / 2;
        return keys;
    }

    const Problem* problem_;
    const Budget* budget_;
    const int32_t* positions_;
    const int32_t* sequences_;
    int32_t next_, end_;
    int few_rows_;         // of a slice
    int32_t run_end_ = 0;  // of consecutive rows of one sequence
    bool few_run_ = false;
    int slots_used_ = 0;
};

}  // namespace tessera::x86::attention
