// One run of an attention node.
#pragma once

#include "few_lanes.hpp"
#include "work.hpp"

#include <tessera/cpu/exponential.hpp>
#include <tessera/cpu/hadamard.hpp>
#include <tessera/cpu/rows.hpp>

#include <string>

namespace tessera::cpu::attention {

// What prepare keeps.
struct State {
    const tsr_node* node;
    Problem problem;
    Budget budget;
    PackedRows wk, wv;  // projected
};

template <class Isa, class Arithmetic>
class Run {
  public:
    static constexpr int kLanes = Isa::kLanes;
    static constexpr int kPanel = Arithmetic::kPanel;
    using Few = FewLanes<Isa, Arithmetic>;

    Run(const State& state, const tsr_run& run) noexcept
        : state_(state),
          problem_(state.problem),
          shape_(state.problem.shape),
          run_(run),
          q_(view(0)),
          k_(view(1)),
          v_(view(2)),
          table_(view(5)),
          wk_(view(6)),
          wv_(view(7)),
          out_(cpu::view(*state.node, run, state.node->input_count)),
          positions_(sdk::operand_data<const int32_t>(*state.node, run, 3)),
          sequences_(sdk::operand_data<const int32_t>(*state.node, run, 4)),
          rows_(sdk::actual_rows(*q_.tensor, run)) {}

    // Throws before the first barrier, in all workers alike.
    void go() {
        check_rows();
        Arena arena(static_cast<char*>(run_.workspace) + run_.worker * state_.budget.worker_bytes);
        slots_ = static_cast<char*>(run_.workspace) + state_.budget.workers * state_.budget.worker_bytes;
        if (run_.worker < static_cast<uint32_t>(state_.budget.workers)) {
            scratch_ = Scratch<Arithmetic>::take(arena, problem_);
            panels_ = arena.take<Panel<Arithmetic>>(state_.budget.panels_of_block);
            for (int i = 0; i < state_.budget.panels_of_block; ++i) panels_[i] = Panel<Arithmetic>::take(arena, shape_);
            attend();
        }
        if (!spread_) return;
        run_.barrier(run_.team, run_.worker);
        merge_spread();
    }

  private:
    using SegmentList = Segments<Arithmetic>;

    View view(uint32_t index) const noexcept {
        return sdk::has_input(*state_.node, index) ? cpu::view(*state_.node, run_, index) : View{};
    }
    SegmentList segments() const noexcept { return {problem_, state_.budget, positions_, sequences_, rows_}; }
    uint32_t workers() const noexcept { return std::min(run_.workers, static_cast<uint32_t>(state_.budget.workers)); }

    [[noreturn]] void fail(const std::string& what) const {
        throw sdk::Failure(TSR_INVALID_ARGUMENT,
                           std::string("attention ") + (state_.node->name ? state_.node->name : "") + ": " + what);
    }

    void check_rows() {
        SegmentList list = segments();
        for (Segment s; list.next(s);) {
            if (s.sequence < 0 || s.sequence >= table_.dim(1))
                fail("sequence slot " + std::to_string(s.sequence) + " of " + std::to_string(table_.dim(1)));
            if (s.first_position < 0 || s.tokens() > table_.dim(0) * TSR_PAGE_TOKENS)
                fail("position " + std::to_string(s.tokens() - 1) + " of " +
                     std::to_string(table_.dim(0) * TSR_PAGE_TOKENS));
            for (int64_t page = 0; page * TSR_PAGE_TOKENS < s.tokens(); ++page) {
                const int32_t id = table_.integer(page, s.sequence);
                if (id < 0 || id >= k_.dim(2) || (v_.tensor && id >= v_.dim(2)))
                    fail("page " + std::to_string(id) + " of " + std::to_string(k_.dim(2)));
            }
            if (s.first_slot >= 0) spread_ = true;
        }
    }

    // Units are numbered segment by segment, key by key, blocks of panels before spans.
    void attend() noexcept {
        int64_t count = 0;
        SegmentList list = segments();
        for (Segment s; list.next(s);) count += int64_t{s.units()} * problem_.key_units();
        // A worker's own units rise, so the list goes on from where it is; what is taken from others begins it anew.
        Segment s;
        int64_t first = 0, end = 0;  // of the segment's units
        list = segments();
        sdk::for_pieces(run_, run_.worker, workers(), count, [&](int64_t index) {
            if (index < first) {
                list = segments();
                end = 0;
            }
            while (index >= end) {
                list.next(s);
                first = end;
                end += int64_t{s.units()} * problem_.key_units();
            }
            const auto unit_of_key = static_cast<int>((index - first) % s.units());
            unit(s, static_cast<int>((index - first) / s.units()), unit_of_key % s.blocks, unit_of_key / s.blocks);
        });
    }

    // ---- one unit ----

    void unit(const Segment& s, int key, int block, int span) noexcept {
        if (problem_.form == Form::kProjected) load_projections(key);
        const int64_t first = int64_t{block} * s.block_panels;
        const int panels = static_cast<int>(std::min<int64_t>(s.block_panels, s.panels - first));
        if (s.first_slot >= 0) {
            for (int i = 0; i < panels; ++i) load_panel(s, key, first + i, panels_[i]);
            // Results are made where they are merged from.
            const auto place = [&](int i, float* out) {
                panels_[i].out = out;
                panels_[i].top = top_of(out);
            };
            for (int i = 0; i < panels; ++i) place(i, slot(s, key, first + i, span));
            attend_span(s, key, panels, span);
            for (int i = 0; i < panels; ++i) place(i, panels_[i].home);
        } else if (s.spans == 1) {
            for (int i = 0; i < panels; ++i) load_panel(s, key, first + i, panels_[i]);
            attend_span(s, key, panels, 0);
            for (int i = 0; i < panels; ++i) write(s, key, first + i, panels_[i].out);
        } else {
            // All spans of a panel by one worker, merged as if they had been spread.
            for (int i = 0; i < panels; ++i) {
                load_panel(s, key, first + i, panels_[0]);
                for (int p = 0; p < s.spans; ++p) {
                    attend_span(s, key, 1, p);
                    if (p == 0)
                        std::copy_n(panels_[0].out, result_floats(), scratch_.earlier);
                    else
                        merge(scratch_.earlier, panels_[0].out, vectors(s, first + i));
                }
                write(s, key, first + i, scratch_.earlier);
            }
        }
    }

    int64_t result_floats() const noexcept { return Panel<Arithmetic>::result_floats(shape_) + 2 * kPanel; }
    float* slot(const Segment& s, int key, int64_t panel, int span) const noexcept {
        const int64_t index = s.first_slot + (int64_t{key} * s.panels + panel) * s.spans + span;
        return reinterpret_cast<float*>(slots_ + index * state_.budget.slot_bytes);
    }
    int lanes_of(const Segment& s, int64_t panel) const noexcept {
        return static_cast<int>(std::min<int64_t>(kPanel, s.lanes - panel * kPanel));
    }
    int vectors(const Segment& s, int64_t panel) const noexcept { return lanes_of(s, panel) > kLanes ? 2 : 1; }

    // Row and head of a lane of a segment.
    int32_t row_of(const Segment& s, int64_t lane) const noexcept {
        return static_cast<int32_t>(s.begin + lane / problem_.group);
    }
    int head_of(int key, int64_t lane) const noexcept {
        return static_cast<int>(key * problem_.group + lane % problem_.group);
    }

    void load_panel(const Segment& s, int key, int64_t panel, Panel<Arithmetic>& to) noexcept {
        const float* rows[kPanel] = {};
        const int lanes = lanes_of(s, panel);
        for (int i = 0; i < kPanel; ++i) {
            const int64_t lane = panel * kPanel + std::min(i, lanes - 1);
            const int32_t row = row_of(s, lane);
            if (i < lanes) rows[i] = q_.floats(head_of(key, lane), row);
            to.limits[i] = s.first_position + (row - s.begin);
        }
        Arithmetic::load_queries(to.queries, shape_, rows, vectors(s, panel), problem_.scale);
        to.vectors = vectors(s, panel);
    }

    // Whether a segment has so few lanes that they go through the cache by themselves.
    bool few(const Segment& s) const noexcept {
        if (s.lanes > Few::kMost || problem_.form == Form::kProjected) return false;
        const View& values = problem_.form == Form::kPlain ? v_ : k_;
        return Few::takes(k_.tensor->type, shape_.key) && Few::takes(values.tensor->type, shape_.value);
    }

    void attend_span(const Segment& s, int key, int panels, int span) noexcept {
        for (int i = 0; i < panels; ++i) {
            std::fill_n(panels_[i].top, kPanel, kHidden);
            std::fill_n(panels_[i].top + kPanel, kPanel, 0.0f);
            panels_[i].empty = true;
        }
        const int32_t most = panels_[panels - 1].limits[kPanel - 1];
        for (int chunk = s.span_begin(span); chunk < s.span_begin(span + 1); ++chunk) {
            const int32_t first = chunk * kChunk;
            const int tokens = std::min(kChunk, most + 1 - first);
            if (tokens <= 0) break;
            if (few(s)) {
                attend_few(s, key, panels_[0], first, tokens);
                continue;
            }
            if (panels == 1 && problem_.form != Form::kProjected) {
                if (panels_[0].vectors == 2)
                    attend_chunk_alone<2>(s, key, panels_[0], first, tokens);
                else
                    attend_chunk_alone<1>(s, key, panels_[0], first, tokens);
                continue;
            }
            load_chunk(s, key, first, tokens);
            for (int i = 0; i < panels; ++i) {
                if (panels_[i].vectors == 2)
                    attend_chunk<2>(panels_[i], first, tokens);
                else
                    attend_chunk<1>(panels_[i], first, tokens);
            }
        }
        for (int i = 0; i < panels; ++i) {
            if (panels_[i].empty) std::fill_n(panels_[i].out, Panel<Arithmetic>::result_floats(shape_), 0.0f);
        }
    }

    const char* cached_row(const View& cache, const Segment& s, int64_t token) const noexcept {
        return cache.row(token % TSR_PAGE_TOKENS, table_.integer(token / TSR_PAGE_TOKENS, s.sequence));
    }

    // The cached rows of a chunk.
    void find_rows(const View& cache, const Segment& s, int32_t first, int tokens, const char** rows) const noexcept {
        for (int t = 0; t < tokens; ++t) rows[t] = cached_row(cache, s, first + t);
    }
    // Asks for elements [first, first + elements) of `count` rows.
    void fetch(const View& cache, const char* const* rows, int count, int64_t first, int64_t elements) const noexcept {
        const FormatSize size = format_size(cache.tensor->type);
        const int64_t begin = first / size.elements * size.bytes, end = (first + elements) / size.elements * size.bytes;
        for (int t = 0; t < count; ++t) {
            for (int64_t line = begin; line < end; line += 64) Isa::prefetch(rows[t] + line);
        }
    }
    // Heads' parts of rows lie apart, so nothing else fetches them in time.
    void fetch_part(const View& cache, const char* const* rows, int count, int64_t first,
                    int64_t elements) const noexcept {
        if (elements != cache.dim(0)) fetch(cache, rows, count, first, elements);
    }

    void load_chunk(const Segment& s, int key, int32_t first, int tokens) noexcept {
        if (problem_.form == Form::kProjected) return expand_chunk(s, first, tokens);
        const char* rows[kChunk] = {};
        find_rows(k_, s, first, tokens, rows);
        fetch_part(k_, rows, tokens, int64_t{key} * shape_.key, shape_.key);
        Arithmetic::load_keys(scratch_.chunk, shape_, k_.tensor->type, rows, int64_t{key} * shape_.key, 0, tokens, 0);
        load_values(s, key, first, tokens);
    }
    void load_values(const Segment& s, int key, int32_t first, int tokens) noexcept {
        if (problem_.form != Form::kPlain) return;
        const char* rows[kChunk] = {};
        find_rows(v_, s, first, tokens, rows);
        fetch_part(v_, rows, tokens, int64_t{key} * shape_.value, shape_.value);
        Arithmetic::load_values(scratch_.chunk, shape_, v_.tensor->type, rows, int64_t{key} * shape_.value, tokens);
    }

    // One panel uses each key once: keys go no further than the first cache.
    template <int V>
    void attend_chunk_alone(const Segment& s, int key, Panel<Arithmetic>& panel, int32_t first, int tokens) noexcept {
        constexpr int kRows = Arithmetic::template kTileRows<V>;
        // A tile is met with all queries before the next one is read, too long a pause for the hardware's prefetching.
        constexpr int kAhead = 2 * kRows;
        const char* rows[kChunk + kAhead];
        const int known = std::min(tokens + kAhead, panel.limits[kPanel - 1] + 1 - first);
        find_rows(k_, s, first, known, rows);
        const bool whole = shape_.key == k_.dim(0);
        fetch_part(k_, rows, tokens, int64_t{key} * shape_.key, shape_.key);
        for (int t = 0; t < tokens; t += kRows) {
            const int count = std::min(kRows, tokens - t);
            if (whole && t + kAhead < known)
                fetch(k_, rows + t + kAhead, std::min(kRows, known - t - kAhead), 0, shape_.key);
            Arithmetic::load_keys(scratch_.chunk, shape_, k_.tensor->type, rows + t, int64_t{key} * shape_.key, t,
                                  count, 0);
            Arithmetic::template scores<V>(panel.queries, scratch_.chunk, shape_, t, count, 0, scratch_.weights.scores,
                                           V * kLanes);
        }
        load_values(s, key, first, tokens);
        weigh_chunk<V>(panel, first, tokens);
    }

    // A panel of few lanes, of which none is beyond those of the segment.
    void attend_few(const Segment& s, int key, Panel<Arithmetic>& panel, int32_t first, int tokens) noexcept {
        const int lanes = static_cast<int>(s.lanes);
        const float* queries[Few::kMost] = {};
        for (int i = 0; i < lanes; ++i) queries[i] = q_.floats(head_of(key, i), row_of(s, i));
        const char* rows[kChunk];
        find_rows(k_, s, first, tokens, rows);
        float* scores = scratch_.weights.scores;
        Few::scores(queries, lanes, problem_.scale, k_.tensor->type, rows, int64_t{key} * shape_.key, shape_.key,
                    tokens, scores);
        hide<1>(panel, first, tokens);
        alignas(64) float top[kLanes], sum[kLanes], correction[kPanel], share[kPanel];
        softmax_f32<Isa>(scores, kLanes, tokens, top, sum);
        join<1>(panel.top, top, sum, correction, share);
        const View& values = problem_.form == Form::kPlain ? v_ : k_;
        if (problem_.form == Form::kPlain) find_rows(v_, s, first, tokens, rows);
        Few::add_values(scores, lanes, values.tensor->type, rows, int64_t{key} * shape_.value, shape_.value, tokens,
                        panel.empty, correction, share, panel.out);
        panel.empty = false;
    }

    // What lanes must not see of a chunk.
    template <int V>
    void hide(const Panel<Arithmetic>& panel, int32_t first, int tokens) const noexcept {
        constexpr int kWidth = V * kLanes;
        const auto hidden = Isa::splat(kHidden);
        for (int t = std::max(0, panel.limits[0] + 1 - first); t < tokens; ++t) {
            for (int v = 0; v < V; ++v) {
                float* x = scratch_.weights.scores + t * kWidth + v * kLanes;
                Isa::store(x, Isa::hide(Isa::load(x), panel.limits + v * kLanes, first + t, hidden));
            }
        }
    }

    template <int V>
    void attend_chunk(Panel<Arithmetic>& panel, int32_t first, int chunk_tokens) noexcept {
        const int tokens = std::min(chunk_tokens, panel.limits[kPanel - 1] + 1 - first);
        if (tokens <= 0) return;
        Arithmetic::template scores<V>(panel.queries, scratch_.chunk, shape_, 0, tokens, 0, scratch_.weights.scores,
                                       V * kLanes);
        weigh_chunk<V>(panel, first, tokens);
    }

    // From the scores of a chunk to the panel's result.
    template <int V>
    void weigh_chunk(Panel<Arithmetic>& panel, int32_t first, int tokens) noexcept {
        const auto& weights = scratch_.weights;
        hide<V>(panel, first, tokens);
        alignas(64) float top[kPanel], sum[kPanel], step[kPanel], correction[kPanel], share[kPanel];
        Arithmetic::template softmax<V>(weights, scratch_.chunk, tokens, top, sum, step);
        join<V>(panel.top, top, sum, correction, share);
        Arithmetic::template add_values<V>(weights, scratch_.chunk, shape_, tokens, panel.empty, step, correction,
                                           share, panel.out);
        panel.empty = false;
    }

    // Joins tops and sums of lanes (running[0 .. kPanel) tops, then sums) with those of what follows. correction: what
    // the running results are to be multiplied by; share: what the others are.
    template <int V>
    static void join(float* running, const float* top, const float* sum, float* correction, float* share) noexcept {
        for (int v = 0; v < V; ++v) {
            const int i = v * kLanes;
            const auto old_top = Isa::load(running + i), new_top = Isa::load(top + i);
            const auto highest = Isa::maximum(old_top, new_top);
            const auto c = exp_not_positive<Isa>(Isa::subtract(old_top, highest));
            const auto e = exp_not_positive<Isa>(Isa::subtract(new_top, highest));
            Isa::store(correction + i, c);
            Isa::store(share + i, e);
            Isa::store(running + i, highest);
            float* total = running + kPanel + i;
            Isa::store(total, Isa::fma(Isa::load(sum + i), e, Isa::multiply(Isa::load(total), c)));
        }
    }

    // ---- projected keys and values ----

    static void decode(tsr_type type, const char* row, int64_t first, int64_t count, float* to) noexcept {
        int64_t i = 0;
        if (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) {
            const auto* x = reinterpret_cast<const uint16_t*>(row) + first;
            for (; i + kLanes <= count; i += kLanes) {
                Isa::store(to + i, type == TSR_TYPE_F16 ? Isa::from_f16(x + i) : Isa::from_bf16(x + i));
            }
        }
        if (i < count) decode_elements(type, row, first + i, count - i, to + i);
    }

    // The weights of a head, as queries over latent rows.
    void load_projections(int head) noexcept {
        const HeadShape latent = problem_.latent_shape();
        const auto load = [&](const View& weight, const PackedRows& packing, int rows, int panels,
                              typename Arithmetic::Queries* to) {
            for (int panel = 0; panel < panels; ++panel) {
                const float* lanes[kPanel] = {};
                for (int i = 0; i < kPanel && panel * kPanel + i < rows; ++i) {
                    float* row = scratch_.weight_rows + int64_t{i} * latent.padded_key();
                    decode_elements(weight.tensor->type, canonical_row(weight, packing, panel * kPanel + i, head), 0,
                                    problem_.latent, row);
                    if (problem_.hadamard) hadamard(row, problem_.latent);
                    lanes[i] = row;
                }
                Arithmetic::load_queries(to[panel], latent, lanes, 2, 1.0f);
            }
        };
        load(wk_, state_.wk, problem_.projected_key(), scratch_.key_panels, scratch_.projections);
        load(wv_, state_.wv, shape_.value, scratch_.value_panels, scratch_.projections + scratch_.key_panels);
    }

    // Rows of a head are asked for one after another, so a group is unpacked once.
    const char* canonical_row(const View& weight, const PackedRows& packing, int row, int head) const noexcept {
        if (!packing.unpack) return weight.row(row, head);
        const int within = row % packing.group_rows;
        if (within == 0) packing.unpack(problem_.latent, 1, weight.row(row, head), scratch_.group_rows);
        return scratch_.group_rows + within * weight.tensor->strides[1];
    }

    void expand_chunk(const Segment& s, int32_t first, int tokens) noexcept {
        const HeadShape latent = problem_.latent_shape();
        const tsr_type type = k_.tensor->type;
        const char* rows[kChunk];
        find_rows(k_, s, first, tokens, rows);
        Arithmetic::load_keys(scratch_.latents, latent, type, rows, 0, 0, tokens, 0);
        for (int i = 0; i < scratch_.key_panels; ++i) {
            Arithmetic::template scores<2>(scratch_.projections[i], scratch_.latents, latent, 0, tokens, 0,
                                           scratch_.keys + i * kPanel, scratch_.key_stride);
        }
        for (int i = 0; i < scratch_.value_panels; ++i) {
            Arithmetic::template scores<2>(scratch_.projections[scratch_.key_panels + i], scratch_.latents, latent, 0,
                                           tokens, 0, scratch_.values + i * kPanel, scratch_.value_stride);
        }
        const char *keys[kChunk], *values[kChunk];
        for (int t = 0; t < tokens; ++t) {
            float* key = scratch_.keys + t * scratch_.key_stride;
            decode(type, rows[t], problem_.latent, problem_.turned, key + problem_.projected_key());
            keys[t] = reinterpret_cast<const char*>(key);
            values[t] = reinterpret_cast<const char*>(scratch_.values + t * scratch_.value_stride);
        }
        Arithmetic::load_keys(scratch_.chunk, shape_, TSR_TYPE_F32, keys, 0, 0, tokens, 0);
        Arithmetic::load_values(scratch_.chunk, shape_, TSR_TYPE_F32, values, 0, tokens);
    }

    // ---- results ----

    float* top_of(float* result) const noexcept { return result + Panel<Arithmetic>::result_floats(shape_); }

    // Joins `later`, the result of the next span, to `result`.
    void merge(float* result, const float* later, int vectors) const noexcept {
        alignas(64) float correction[kPanel], share[kPanel];
        const float* tops = later + Panel<Arithmetic>::result_floats(shape_);
        if (vectors == 2)
            join<2>(top_of(result), tops, tops + kPanel, correction, share);
        else
            join<1>(top_of(result), tops, tops + kPanel, correction, share);
        merge_elements(result, later, vectors, 0, shape_.padded_value(), correction, share);
    }
    static void merge_elements(float* result, const float* later, int vectors, int begin, int end,
                               const float* correction, const float* share) noexcept {
        for (int d = begin; d < end; ++d) {
            for (int v = 0; v < vectors; ++v) {
                float* to = result + (int64_t{d} * vectors + v) * kLanes;
                const auto x = Isa::load(later + (int64_t{d} * vectors + v) * kLanes);
                Isa::store(to, Isa::fma(x, Isa::load(share + v * kLanes),
                                        Isa::multiply(Isa::load(to), Isa::load(correction + v * kLanes))));
            }
        }
    }

    // Panels whose spans lie in slots: each in parts, by all workers.
    void merge_spread() noexcept {
        constexpr int kParts = 4;
        const int width = static_cast<int>(rounded_up((shape_.padded_value() + kParts - 1) / kParts, 32));
        int64_t item = 0;
        SegmentList list = segments();
        for (Segment s; list.next(s);) {
            if (s.first_slot < 0) continue;
            for (int key = 0; key < problem_.key_units(); ++key) {
                for (int64_t panel = 0; panel < s.panels; ++panel) {
                    for (int part = 0; part < kParts; ++part) {
                        if (item++ % run_.workers != run_.worker || part * width >= shape_.padded_value()) continue;
                        merge_part(s, key, panel, part * width, std::min((part + 1) * width, shape_.padded_value()));
                    }
                }
            }
        }
    }

    void merge_part(const Segment& s, int key, int64_t panel, int begin, int end) noexcept {
        const int v = vectors(s, panel);
        float* result = slot(s, key, panel, 0);
        // Other workers read the tops and sums of these slots, too: the running ones live here.
        alignas(64) float running[2 * kPanel], correction[kPanel], share[kPanel];
        std::copy_n(top_of(result), 2 * kPanel, running);
        for (int span = 1; span < s.spans; ++span) {
            float* later = slot(s, key, panel, span);
            if (v == 2)
                join<2>(running, top_of(later), top_of(later) + kPanel, correction, share);
            else
                join<1>(running, top_of(later), top_of(later) + kPanel, correction, share);
            merge_elements(result, later, v, begin, end, correction, share);
        }
        write_part(s, key, panel, result, running + kPanel, begin, end);
    }

    void write(const Segment& s, int key, int64_t panel, float* result) const noexcept {
        write_part(s, key, panel, result, top_of(result) + kPanel, 0, shape_.padded_value());
    }

    // Places begin .. end (multiples of 32) of a result, divided by the sums, to the output.
    void write_part(const Segment& s, int key, int64_t panel, const float* result, const float* sums, int begin,
                    int end) const noexcept {
        constexpr int kRun = Arithmetic::kOutRun;
        const int lanes = lanes_of(s, panel), width = vectors(s, panel) * kLanes;
        for (int lane0 = 0; lane0 < lanes; lane0 += kLanes) {
            float* rows[kLanes];
            for (int i = 0; i < kLanes; ++i) {
                const int64_t lane = panel * kPanel + std::min(lane0 + i, lanes - 1);
                rows[i] = out_.floats(head_of(key, lane), row_of(s, lane));
            }
            const auto inverse = Isa::divide(Isa::splat(1.0f), Isa::load(sums + lane0));
            // Elements e .. e + kRun of a value lie side by side in a result, from out_place(e) on.
            for (int e = begin; e < std::min(end, shape_.value); e += kLanes) {
                typename Isa::Floats r[kLanes];
                for (int i = 0; i < kLanes; ++i) {
                    const int place = Arithmetic::out_place(e + i / kRun * kRun) + i % kRun;
                    r[i] = Isa::multiply(Isa::load(result + int64_t{place} * width + lane0), inverse);
                }
                Isa::transpose(r);
                const int count = std::min(kLanes, shape_.value - e);
                for (int i = 0; i < kLanes && lane0 + i < lanes; ++i) {
                    if (count == kLanes) {
                        Isa::store(rows[i] + e, r[i]);
                    } else {
                        alignas(64) float some[kLanes];
                        Isa::store(some, r[i]);
                        std::copy_n(some, count, rows[i] + e);
                    }
                }
            }
        }
    }

    const State& state_;
    const Problem& problem_;
    const HeadShape& shape_;
    const tsr_run& run_;
    View q_, k_, v_, table_, wk_, wv_, out_;
    const int32_t* positions_;
    const int32_t* sequences_;
    tsr_range rows_;
    bool spread_ = false;
    Scratch<Arithmetic> scratch_{};
    Panel<Arithmetic>* panels_ = nullptr;
    char* slots_ = nullptr;
};

}  // namespace tessera::cpu::attention
